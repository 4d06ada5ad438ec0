"""Pages that follow what happens: the parts of a page that changed are sent to whoever has it open."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

from flask import Response, stream_with_context
from werkzeug.exceptions import ServiceUnavailable

from backend.fresh import Fresh

Parts = dict[str, str]
"""The HTML of each part of a page, by the id of the element that holds it."""

LOOK_SECONDS = 1.0
BUSY_SHARE = 0.25
"""Of one processor, at most, that the parts of one page may take, however many people look at it."""
BEAT_SECONDS = 15.0
"""Silence for longer than this lets proxies hang up."""
LONGEST_SECONDS = 600.0
"""Then the browser comes again, and shows who it is again."""
MOST_STREAMS = 16
"""In one process: each holds one of its threads, and webhooks must never want for one."""
FORGET_SECONDS = 60.0


class Live:
    """Safe to share between threads: however many follow a page, its parts are made once."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(MOST_STREAMS)
        self._changing = threading.Lock()
        self._pages: dict[tuple[str, ...], Fresh[Parts]] = {}
        self._closed = threading.Event()

    def parts(self, page: tuple[str, ...], make: Callable[[], Parts]) -> Parts:
        with self._changing:
            old = time.monotonic() - FORGET_SECONDS
            self._pages = {key: kept for key, kept in self._pages.items() if kept.asked_at > old or key == page}
            fresh = self._pages.setdefault(page, Fresh(make, seconds=LOOK_SECONDS, share=BUSY_SHARE))
        return fresh.get()

    def follow(self, page: tuple[str, ...], make: Callable[[], Parts]) -> Response:
        """Server-sent events, each an object of the parts that are not as they were sent before."""
        if self._closed.is_set() or not self._places.acquire(blocking=False):
            raise ServiceUnavailable("too many pages are being followed; this one shows what was when it was loaded")
        events = stream_with_context(self._events(page, make))
        answer = Response(events, mimetype="text/event-stream")
        answer.call_on_close(self._places.release)
        answer.headers["X-Accel-Buffering"] = "no"  # proxies are to pass each event on at once
        return answer

    def close(self) -> None:
        """Ends all streams, so that the server can stop."""
        self._closed.set()

    def _events(self, page: tuple[str, ...], make: Callable[[], Parts]) -> Iterator[str]:
        sent: Parts = {}
        began = beat = time.monotonic()
        yield "retry: 2000\n\n"
        while not self._closed.is_set() and time.monotonic() - began < LONGEST_SECONDS:
            parts = self.parts(page, make)
            changed = {name: html for name, html in parts.items() if sent.get(name) != html}
            if changed:
                yield f"data: {json.dumps(changed)}\n\n"
                sent, beat = parts, time.monotonic()
            elif time.monotonic() - beat > BEAT_SECONDS:
                yield ": still here\n\n"
                beat = time.monotonic()
            self._closed.wait(LOOK_SECONDS)
