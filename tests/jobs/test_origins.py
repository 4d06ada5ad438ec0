"""Images are fetched from under the allowed prefixes and from nowhere else, however an address is dressed up."""

from __future__ import annotations

import pytest

from jobs.images.location import check_signs
from jobs.images.origins import OriginError, Origins
from jobs.images.reasons import SetAside


@pytest.mark.parametrize(
    ("prefix", "address"),
    [
        ("https://a.example/img", "https://a.example/img/x.png"),
        ("https://a.example/img/", "https://a.example/img/deep/x.png?width=3"),
        ("https://a.example", "https://a.example/x.png"),
        ("https://A.example/", "HTTPS://a.EXAMPLE/x.png"),
        ("https://a.example:443/", "https://a.example/x.png"),
        ("http://a.example/", "http://a.example:80/x.png"),
        ("http://a.example:8080/", "http://a.example:8080/x.png"),
        ("http://[2001:db8::1]/", "http://[2001:0db8:0:0::1]/x.png"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/x.png"),
        ("https://a.example/my photos/", "https://a.example/my photos/x y.png"),
        ("s3://bucket", "s3://bucket/x.png"),
        ("s3://bucket/photos/", "s3://bucket/photos/100%?.png"),
        ("gs://bucket/a", "gs://bucket/a/b/c.png"),
        ("az://container/", "az://container/x.png"),
        ("memory://bucket/", "memory://bucket/x.png"),
    ],
)
def test_what_lies_under_a_prefix_is_allowed(prefix: str, address: str) -> None:
    location, covering = Origins(["https://other.example/", prefix]).find(address)
    assert covering.covers(location)


@pytest.mark.parametrize(
    ("prefix", "address", "reason"),
    [
        ("https://a.example/img", "https://a.example/imgx/x.png", "under no allowed prefix"),
        ("https://a.example/img", "https://a.example.evil/img/x.png", "under no allowed prefix"),
        ("https://a.example/img", "https://evil.a.example/img/x.png", "under no allowed prefix"),
        ("https://a.example/img", "http://a.example/img/x.png", "under no allowed prefix"),
        ("https://a.example/img", "https://a.example:8443/img/x.png", "under no allowed prefix"),
        ("https://a.example/img", "https://a.example/IMG/x.png", "under no allowed prefix"),
        ("https://a.example/img", "https://a.example//img/x.png", "under no allowed prefix"),
        ("https://a.example/", "https://a.example@evil/x.png", "names a user in front of its host"),
        ("https://a.example/", "https://user:secret@a.example/x.png", "names a user in front of its host"),
        ("https://a.example/", "https://a.example\\@evil/x.png", "backslash"),
        ("https://a.example/", "https://a.example:port/x.png", "not a web address"),
        ("https://a.example/", "https://[::1/x.png", "not a web address"),
        ("https://a.example/", "https:///x.png", "names no host"),
        ("https://a.example/", "https://a.exa\nmple/x.png", "control character"),
        ("https://a.example/img", "https://a.example/img/../x.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/..", "climbs up"),
        ("https://a.example/img", "https://a.example/img/%2e%2E/x.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/%252e%252e/x.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/%25252e%25252e/x.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/%2525252e%2525252e/x.png", "percent-encoded too many times"),
        ("https://a.example/img", "https://a.example/img/..%2fx.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/..%5cx.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/..;/x.png", "climbs up"),
        ("https://a.example/img", "https://a.example/img/?d=../../etc/passwd", "climbs up"),
        ("s3://bucket/a/", "s3://bucket/a/../b/x.png", "climbs up"),
        ("s3://bucket", "s3://bucket2/x.png", "under no allowed prefix"),
        ("s3://bucket", "gs://bucket/x.png", "under no allowed prefix"),
        ("s3://bucket", "s3:///x.png", "names no bucket"),
        ("s3://bucket", "file:///etc/passwd", "is a file of this machine"),
        ("s3://bucket", "file:/etc/passwd", "is a file of this machine"),
        ("s3://bucket", "FILE://localhost/etc/passwd", "is a file of this machine"),
        ("s3://bucket", "local:///etc/passwd", "is a file of this machine"),
        ("s3://bucket", "/etc/passwd", "is a plain path"),
        ("s3://bucket", "photos/x.png", "is a plain path"),
        ("s3://bucket", "//a.example/x.png", "is a plain path"),
        ("s3://bucket", "C:\\photos\\x.png", "is a plain path"),
        ("s3://bucket", "gopher://a.example/x", "not fetched by gopher://"),
        ("s3://bucket", "javascript:alert(1)", "is a plain path"),
        ("s3://bucket", "zip://x.png::file:///etc/passwd.zip", "not fetched by zip://"),
        ("s3://bucket", "simplecache::s3://bucket/x.png", "is a plain path"),
    ],
)
def test_everything_else_is_set_aside_with_its_reason(prefix: str, address: str, reason: str) -> None:
    with pytest.raises(SetAside, match=reason):
        Origins([prefix]).find(address)


def test_without_a_prefix_nothing_is_allowed() -> None:
    with pytest.raises(SetAside, match="under no allowed prefix"):
        Origins().find("https://a.example/x.png")


def test_a_reason_shows_no_more_than_the_beginning_of_a_long_address() -> None:
    with pytest.raises(SetAside) as caught:
        Origins().find("https://a.example/" + "x" * 8_000)
    assert len(str(caught.value)) < 250


def test_an_address_may_be_percent_encoded_three_times() -> None:
    check_signs("/data/upload/a%252520b.png")
    with pytest.raises(SetAside, match="is percent-encoded too many times"):
        check_signs("/data/upload/a%25252520b.png")


def test_an_address_encoded_thousands_of_times_is_not_decoded_to_its_end() -> None:
    with pytest.raises(SetAside, match="is percent-encoded too many times"):
        check_signs("/data/upload/%" + "25" * 4_000)


def test_an_address_may_have_8192_characters() -> None:
    check_signs("/data/upload/".ljust(8192, "x"))
    with pytest.raises(SetAside, match="the address has more than 8,192 characters"):
        check_signs("/data/upload/".ljust(8193, "x"))


@pytest.mark.parametrize(
    ("prefix", "complaint"),
    [
        ("a.example/img", "plain path"),
        ("/img", "plain path"),
        ("", "plain path"),
        ("https://", "names no host"),
        ("s3://", "names no bucket"),
        ("https://user@a.example/", "names a user"),
        ("https://a.example:eighty/", "not a web address"),
        ("https://*.example/", "wildcard"),
        ("s3://bucket/*", "wildcard"),
        ("https://a.example/img?x=1", "goes on after its path"),
        ("https://a.example/img#x", "goes on after its path"),
        ("https://a.example/a/../b", "climbs up"),
        ("file:///photos/", "on this machine"),
        ("gopher://a.example/", "not fetched by gopher://"),
        ("zip://a/", "not fetched by zip://"),
    ],
)
def test_a_prefix_that_cannot_be_used_is_named_with_what_is_expected(prefix: str, complaint: str) -> None:
    with pytest.raises(OriginError, match=complaint) as caught:
        Origins([prefix])
    assert repr(prefix) in str(caught.value)
    assert "give one like https://images.example.org/photos/ or s3://bucket/folder/" in str(caught.value)
