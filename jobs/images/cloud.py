"""Fetches images from cloud storages, by whatever fsspec package speaks their protocol."""

from __future__ import annotations

import fsspec
from fsspec.registry import known_implementations

from jobs.images.location import Location
from jobs.images.reasons import Away, SetAside, shown
from studio.files import MOST_BYTES


def fetch(location: Location, address: str) -> bytes:
    """The bytes behind an address that was found to be allowed. Credentials are found by the package itself, in the
    environment. Raises SetAside, or Away where the storage and not the image is to blame."""
    try:
        # not fsspec.open, which takes a '::' in an address for another address within
        options = fsspec.get_filesystem_class(location.scheme)._get_kwargs_from_urls(address)
        with fsspec.filesystem(location.scheme, **options).open(address, "rb") as file:
            content: bytes = file.read(MOST_BYTES + 1)
    except ImportError as error:
        raise Away(_missing(location.scheme, error)) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise SetAside(f"{shown(address)} is not there") from error
    except PermissionError as error:
        raise SetAside(f"{shown(address)} may not be read: {error}") from error
    except Exception as error:  # every package has errors of its own
        raise Away(f"{shown(address)} cannot be fetched: {type(error).__name__}: {error}") from error
    if len(content) > MOST_BYTES:
        raise SetAside(f"{shown(address)} has more than {MOST_BYTES // 2**20} MB")
    return content


def _missing(scheme: str, error: ImportError) -> str:
    package = known_implementations[scheme]["class"].partition(".")[0] if scheme in known_implementations else ""
    if package in ("", "fsspec"):
        return f"{scheme}:// needs a package that is not installed: {error}"
    return f"{scheme}:// needs a package that is not installed: pip install {package.replace('_', '-')}"
