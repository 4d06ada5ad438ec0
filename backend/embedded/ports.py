"""Which TCP ports of this machine are free, told before a server silently takes another one."""

from __future__ import annotations

import socket

SEARCHED = 100


class PortBusy(RuntimeError):
    """A port somebody else listens on; the message says what to do."""


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last run's closed connections are no matter
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def first_free(preferred: int) -> int:
    for port in range(preferred, min(preferred + SEARCHED, 65536)):
        if is_free(port):
            return port
    raise PortBusy(f"no free port between {preferred} and {preferred + SEARCHED}")


def any_free() -> int:
    """A port of the kernel's choice, which two callers at the same time do not both get."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_free(port: int, who: str) -> None:
    if not is_free(port):
        raise PortBusy(f"port {port}, wanted for {who}, is taken by another program: stop that program")
