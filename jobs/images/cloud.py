"""Fetches images from cloud storages, by whatever fsspec package speaks their protocol."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

import fsspec
from fsspec.registry import known_implementations

from jobs.images.location import Location
from jobs.images.reasons import WHOLE_SECONDS, Away, NotServed, SetAside, shown
from studio.files import MOST_BYTES


def fetch(location: Location, address: str, *, whole_seconds: float = WHOLE_SECONDS) -> bytes:
    """The bytes behind an address that was found to be allowed. Credentials are found by the package itself, in the
    environment. Raises SetAside, or Away where the storage and not the image is to blame."""
    outcome: SimpleQueue[bytes | SetAside] = SimpleQueue()

    def work() -> None:
        try:
            outcome.put(_read(location, address))
        except SetAside as reason:
            outcome.put(reason)

    # in a thread that can be left behind: not every package has a time limit of its own
    threading.Thread(target=work, name="cloud", daemon=True).start()
    try:
        found = outcome.get(timeout=whole_seconds)
    except Empty:
        raise Away(f"{shown(address)} took longer than {whole_seconds:g} s") from None
    if isinstance(found, SetAside):
        raise found
    return found


def _read(location: Location, address: str) -> bytes:
    try:
        content = _content(location.scheme, address)
    except ImportError as error:
        raise Away(_missing(location.scheme, error)) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotServed(f"{shown(address)} is not there") from error
    except PermissionError as error:  # whether for this image alone or for the key, storages do not say
        raise NotServed(f"{shown(address)} may not be read: {error}") from error
    except Exception as error:  # every package has errors of its own
        raise Away(f"{shown(address)} cannot be fetched: {type(error).__name__}: {error}") from error
    if content is None:
        raise SetAside(f"{shown(address)} has more than {MOST_BYTES // 2**20} MB")
    return content


def _content(scheme: str, address: str) -> bytes | None:
    """None where there is more than may be read."""
    # not fsspec.open, which takes a '::' in an address for another address within
    options = fsspec.get_filesystem_class(scheme)._get_kwargs_from_urls(address)
    storage = fsspec.filesystem(scheme, **options)
    with storage.open(address, "rb") as file:
        size = getattr(file, "size", None)
        if isinstance(size, int) and size > MOST_BYTES:
            return None  # not a byte of it: packages read far ahead
        content: bytes = file.read(MOST_BYTES + 1)
    if not content and storage.info(address)["type"] == "directory":
        raise IsADirectoryError(address)  # s3fs opens a folder as an empty file
    return content if len(content) <= MOST_BYTES else None


def _missing(scheme: str, error: ImportError) -> str:
    package = known_implementations[scheme]["class"].partition(".")[0] if scheme in known_implementations else ""
    if package in ("", "fsspec"):
        return f"{scheme}:// needs a package that is not installed: {error}"
    return f"{scheme}:// needs a package that is not installed: pip install {package.replace('_', '-')}"
