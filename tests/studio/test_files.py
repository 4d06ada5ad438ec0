"""Images come from the connected Label Studio and from nowhere else."""

from __future__ import annotations

import pytest

from studio.client import Client
from studio.files import ForeignFile, fetch


@pytest.mark.parametrize(
    "address",
    [
        "http://elsewhere.test/data/x.png",
        "http://studio.test.evil.test/data/x.png",
        "http://studio.test@evil.test/data/x.png",
        "//elsewhere.test/data/x.png",
        "file:///etc/passwd",
        "/etc/passwd",
        "/data/../api/current-user/token",
        "/data/%2e%2e/api/current-user/token",
        "/data/%252e%252e/api/current-user/token",
        "/api/current-user/token",
        "data/x.png",
        "http://studio.test//[",
        "http://studio.test//℀/data/x.png",
        "",
    ],
)
def test_an_address_elsewhere_is_not_even_asked_for(address: str) -> None:
    with pytest.raises(ForeignFile):
        fetch(Client("http://studio.test", "t" * 40), address)
