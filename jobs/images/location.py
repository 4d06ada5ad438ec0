"""An address taken apart: by which scheme, from whom, and under which path."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from jobs.images.reasons import SetAside, shown

WEB_PORTS = {"http": 80, "https": 443}
LONGEST = 8192  # characters
MOST_ENCODED = 3  # times, one inside the other

_STEP_UP = re.compile(r"(?:^|[/\\?&=#;])\.\.(?:$|[/\\?&#;])")


@dataclass(frozen=True)
class Location:
    scheme: str
    host: str
    """Of a cloud address the bucket or container, spelled as given."""
    port: int | None
    path: str
    query: str = ""

    @property
    def is_web(self) -> bool:
        return self.scheme in WEB_PORTS

    def covers(self, other: Location) -> bool:
        """Whether the other lies here or below, where only whole names between slashes count."""
        here = self.path.rstrip("/")
        same = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return same and (other.path == here or other.path.startswith(f"{here}/"))


def locate(address: str) -> Location:
    """Raises SetAside for an address that is not a full one, or that is made to mean something else than it shows."""
    check_signs(address)
    scheme, found, rest = address.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        raise SetAside(f"{shown(address)} is a plain path; images come from /data/…, https://… or the like")
    scheme = scheme.lower()
    if scheme in WEB_PORTS:
        return _locate_on_web(address)
    bucket, _, path = rest.partition("/")
    if not bucket:
        raise SetAside(f"{shown(address)} names no bucket")
    return Location(scheme, bucket, None, f"/{path}")


def check_signs(address: str) -> None:
    """Raises SetAside for control characters, and for '..' between slashes, also where it is percent-encoded; and for
    what would take long to look through: too many characters, or encoded too many times."""
    if len(address) > LONGEST:
        raise SetAside(f"the address has more than {LONGEST:,} characters")
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in address):
        raise SetAside(f"{shown(address)} has a control character in it")
    decoded = address
    for _ in range(MOST_ENCODED + 1):
        if _STEP_UP.search(decoded):
            raise SetAside(f"{shown(address)} climbs up with '..'")
        before, decoded = decoded, unquote(decoded)
        if decoded == before:
            return
    raise SetAside(f"{shown(address)} is percent-encoded too many times")


def _locate_on_web(address: str) -> Location:
    if "\\" in address:
        raise SetAside(f"{shown(address)} has a backslash in it")
    try:
        parts = urlsplit(address)
        port, host = parts.port, _host(parts.hostname or "")
    except ValueError as error:  # a port that is no number, an address in brackets that is none
        raise SetAside(f"{shown(address)} is not a web address") from error
    if "@" in parts.netloc:
        raise SetAside(f"{shown(address)} names a user in front of its host")
    if not host:
        raise SetAside(f"{shown(address)} names no host")
    return Location(parts.scheme, host, port or WEB_PORTS[parts.scheme], parts.path or "/", parts.query)


def _host(name: str) -> str:
    """One spelling for each host: small letters, international names as DNS has them, IPv6 at its shortest."""
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name if name.isascii() else name.encode("idna").decode()
