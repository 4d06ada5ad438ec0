"""From where images may be fetched besides Label Studio itself: addresses that begin with an allowed prefix."""

from __future__ import annotations

from collections.abc import Iterable

import fsspec

from jobs.images.location import Location, locate
from jobs.images.reasons import SetAside, shown
from jobs.settings import SettingsError

_VARIABLE = "IWES_IMAGE_PREFIXES"
_EXPECTED = "give one like https://images.example.org/photos/ or s3://bucket/folder/"

_OF_THIS_MACHINE = {"file", "local", "asynclocal", "git", "dvc", "dask"}
_AROUND_OTHERS = {
    *("zip", "tar", "libarchive", "reference", "generic", "dir", "data"),
    *("cached", "blockcache", "filecache", "simplecache", "async_wrapper", "asyncwrapper"),
}


class OriginError(SettingsError):
    """A prefix that cannot be used; the message names it and what is expected."""


class Origins:
    """The allowed prefixes, checked. Without any, images come from Label Studio alone."""

    def __init__(self, prefixes: Iterable[str] = ()) -> None:
        self._allowed = tuple(_check(prefix) for prefix in prefixes)

    def covering(self, location: Location) -> Location | None:
        """The allowed prefix under which it lies."""
        return next((prefix for prefix in self._allowed if prefix.covers(location)), None)

    def find(self, address: str) -> tuple[Location, Location]:
        """Where the address points, and the prefix that allows it. Raises SetAside where none does."""
        if _is_of_this_machine(address):
            raise SetAside(f"{shown(address)} is a file of this machine; such are never read")
        location = locate(address)
        if not _is_fetched_by(location.scheme):
            raise SetAside(f"{shown(address)}: images are not fetched by {location.scheme}://")
        prefix = self.covering(location)
        if prefix is None:
            raise SetAside(f"{shown(address)} is not on the connected Label Studio and under no allowed prefix")
        return location, prefix


def _check(prefix: str) -> Location:
    if "*" in prefix:
        raise OriginError(
            f"{_VARIABLE}: the image prefix {prefix!r} has a wildcard, which is not supported; {_EXPECTED}"
        )
    if _is_of_this_machine(prefix):
        raise OriginError(
            f"{_VARIABLE}: the image prefix {prefix!r} is on this machine, from where images never come; {_EXPECTED}"
        )
    try:
        location = locate(prefix.strip())
    except SetAside as error:
        raise OriginError(f"{_VARIABLE}: the image prefix {prefix!r} cannot be used: {error}; {_EXPECTED}") from error
    if not _is_fetched_by(location.scheme):
        raise OriginError(
            f"{_VARIABLE}: the image prefix {prefix!r}: images are not fetched by {location.scheme}://; {_EXPECTED}"
        )
    if location.is_web and ("?" in prefix or "#" in prefix):
        raise OriginError(f"{_VARIABLE}: the image prefix {prefix!r} goes on after its path; {_EXPECTED}")
    return location


def _is_of_this_machine(address: str) -> bool:
    return address.partition(":")[0].strip().lower() in _OF_THIS_MACHINE


def _is_fetched_by(scheme: str) -> bool:
    """Everything fsspec knows, except what reads files of this machine or what is wrapped around another address."""
    return scheme in fsspec.available_protocols() and scheme not in _OF_THIS_MACHINE | _AROUND_OTHERS
