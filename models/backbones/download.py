"""Fetches a published file once, and gives up soon where its host cannot be reached."""

from __future__ import annotations

import logging
import sys
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import torch

PATIENCE = 5.0  # seconds until the host has answered

log = logging.getLogger(__name__)


class NotFetched(Exception):
    """The file could not be had; the message says why."""


def fetch(url: str, path: Path) -> None:
    """Download to the path, whole or not at all, checked against the digest in its name. Raises NotFetched."""
    _knock(url)
    digest = torch.hub.HASH_REGEX.search(path.name)
    log.info("downloading %s to %s", url, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), digest and digest.group(1), progress=sys.stderr.isatty())
    except (OSError, HTTPException, RuntimeError) as error:
        raise NotFetched(f"the download failed: {error}") from error


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
