"""A disk that takes no more, for tests: real errors from the kernel, without root."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes: writing on fails, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def with_a_tiny_disk_at(folder: Path, kilobytes: int, command: Sequence[str]) -> list[str]:
    """The same command, run where the folder is a disk of its own, of that size."""
    script = f'mount -t tmpfs -o size={kilobytes}k tmpfs "$0" && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder), *command]


def can_make_disks() -> bool:
    """Whether this system lets its users mount a disk where nobody else sees it."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False
