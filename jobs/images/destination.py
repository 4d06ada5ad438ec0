"""To which addresses of the network an image may be asked for, once the name of its host is resolved."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from jobs.images.location import Location
from jobs.images.reasons import Away, SetAside

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], list[Address]]

_METADATA = {ipaddress.ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "fd00:ec2::254")}
"""Where clouds tell a machine its own secrets, besides the link-local 169.254.169.254."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")


def resolve(host: str, port: int) -> list[Address]:
    """The addresses DNS has for a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def destinations(location: Location, prefix: Location, resolver: Resolve) -> list[Address]:
    """Where to connect to: the only lookup there is, so that a name cannot mean one host now and another then.

    Private networks are fine for an allowed prefix, this machine and its link are not, unless the prefix itself
    names them by number (or as localhost). Raises SetAside where a single address is out of bounds.
    """
    try:
        found = resolver(location.host, location.port or 0)
    except (OSError, UnicodeError) as error:
        raise Away(f"the host {location.host} cannot be found: {error}") from error
    for address in found:
        kind = _out_of_bounds(_plain(address), prefix.host)
        if kind:
            raise SetAside(f"{location.host} is {address}, {kind}, from where nothing is fetched")
    return found


def _out_of_bounds(address: Address, named: str) -> str | None:
    if address.is_unspecified or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "an unspecified address"
    if address.is_multicast:
        return "a multicast address"
    if address in _METADATA:
        return "a cloud's metadata address"
    if named == address.compressed or (named == "localhost" and address.is_loopback):
        return None
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    return "a reserved address" if address.is_reserved else None


def _plain(address: Address) -> Address:
    """The IPv4 address that is meant by an IPv6 one."""
    if isinstance(address, IPv6Address):
        meant = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            meant = IPv4Address(int(address) & 0xFFFFFFFF)
        return meant or address
    return address
