"""Fetches a published file once, and gives up soon where its host cannot be reached."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import torch

PATIENCE = 5.0  # seconds until the host has answered
STANDSTILL = 60.0  # seconds without a byte until a download is given up

log = logging.getLogger(__name__)
_one_at_a_time = Lock()


class NotFetched(Exception):
    """The file could not be had; the message says why."""


def fetch(url: str, path: Path) -> None:
    """Download to the path, whole or not at all, checked against the digest in its name. Raises NotFetched."""
    _knock(url)
    digest = torch.hub.HASH_REGEX.search(path.name)
    log.info("downloading %s to %s", url, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _bounded_reads(STANDSTILL):
            torch.hub.download_url_to_file(url, str(path), digest and digest.group(1), progress=sys.stderr.isatty())
    except TimeoutError as error:
        raise NotFetched(f"the download stood still for {STANDSTILL:g} seconds") from error
    except (OSError, HTTPException, RuntimeError) as error:
        raise NotFetched(f"the download failed: {error}") from error


@contextmanager
def _bounded_reads(seconds: float) -> Iterator[None]:
    """Has reads from sockets opened meanwhile give up after so long.

    By the default of the whole process, as torch's download takes no time limit of its own; hence one at a time, that
    each finds what was there before and puts it back.
    """
    with _one_at_a_time:
        before = socket.getdefaulttimeout()
        socket.setdefaulttimeout(seconds)
        try:
            yield
        finally:
            socket.setdefaulttimeout(before)


def _knock(url: str) -> None:
    """Ask the host for an answer of any kind, once.

    In a thread that can be left behind: time limits of sockets count neither for the look-up of a name nor for all of a
    host's many addresses together.
    """
    outcome: SimpleQueue[Exception | None] = SimpleQueue()

    def ask() -> None:
        try:
            urlopen(Request(url, method="HEAD"), timeout=PATIENCE).close()  # noqa: S310 - torchvision's own addresses
        except HTTPError:
            outcome.put(None)
        except (OSError, HTTPException) as error:
            outcome.put(error)
        else:
            outcome.put(None)

    Thread(target=ask, daemon=True).start()
    host = urlsplit(url).netloc
    try:
        error = outcome.get(timeout=PATIENCE)
    except Empty:
        raise NotFetched(f"{host} did not answer within {PATIENCE:g} seconds") from None
    if error is not None:
        raise NotFetched(f"{host} cannot be reached: {error}") from error
