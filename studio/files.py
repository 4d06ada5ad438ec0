"""Fetches a task's image from the connected Label Studio, and from nowhere else."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from studio.client import Client
from studio.errors import StudioError

MOST_BYTES = 40 * 2**20


class ForeignFile(StudioError):
    """The address is not one of the connected Label Studio; it is not fetched."""


class FileTooLarge(StudioError):
    """The file has more bytes than an image may have here."""


def fetch(client: Client, address: str) -> bytes:
    """The bytes behind `/data/...`, or behind the same written out with the server's own address."""
    path = _path_on_server(client, address)
    answer = client.request("GET", path, stream=True)
    parts, size = [], 0
    for part in answer.iter_content(2**16):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            answer.close()
            raise FileTooLarge(f"{address[:120]} has more than {MOST_BYTES // 2**20} MB")
    return b"".join(parts)


def _path_on_server(client: Client, address: str) -> str:
    if address.startswith(client.url + "/"):
        address = address[len(client.url) :]
    try:
        parts = urlsplit(address)
    except ValueError as error:  # a second slash, and then what cannot be a host
        raise ForeignFile(f"{address[:120]} is not an address of a file") from error
    if parts.scheme or parts.netloc or not address.startswith("/") or address.startswith("//"):
        raise ForeignFile(f"{address[:120]} is not on the connected Label Studio {client.url}")
    if not parts.path.startswith("/data/") or ".." in unquote(unquote(parts.path)).split("/"):
        raise ForeignFile(f"{address[:120]} is not a file Label Studio serves under /data/")
    return address
