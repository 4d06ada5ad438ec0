"""Pages that follow what happens: only what changed is sent, made once for all, and the server can always stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from flask import Flask, Response
from werkzeug.exceptions import ServiceUnavailable

from backend.dashboard import live as lively
from backend.dashboard.live import Live
from backend.fresh import Fresh


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(lively, "LOOK_SECONDS", 0.01)
    return Live()


def sent(answer: Response) -> Iterator[dict[str, str]]:
    for event in answer.response:
        if str(event).startswith("data: "):
            yield json.loads(str(event)[6:])


def test_only_the_parts_that_changed_are_sent(live: Live) -> None:
    states = iter([{"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "1"}])
    last = {"a": "2", "b": "1"}
    with Flask("test").test_request_context():
        events = sent(live.follow(("page",), lambda: next(states, last)))
        assert next(events) == {"a": "1", "b": "1"}
        assert next(events) == {"a": "2"}


def test_a_page_is_made_once_however_many_follow_it() -> None:
    made = []

    def make() -> dict[str, str]:
        made.append(1)
        time.sleep(0.02)
        return {"a": "1"}

    live = Live()
    threads = [threading.Thread(target=live.parts, args=(("page",), make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_webhooks_keep_their_threads_however_many_pages_are_open(live: Live) -> None:
    with Flask("test").test_request_context():
        streams = [live.follow(("page",), dict) for _ in range(lively.MOST_STREAMS)]
        with pytest.raises(ServiceUnavailable, match="too many pages"):
            live.follow(("page",), dict)
        streams[0].close()
        live.follow(("page",), dict)


def test_a_server_that_stops_ends_its_streams(live: Live) -> None:
    with Flask("test").test_request_context():
        events = sent(live.follow(("page",), lambda: {"a": "1"}))
        assert next(events) == {"a": "1"}
        live.close()
        assert list(events) == []


def test_what_takes_long_is_found_out_less_often() -> None:
    moments = []

    def find() -> int:
        moments.append(time.monotonic())
        time.sleep(0.02)
        return len(moments)

    fresh = Fresh(find, seconds=0.0, share=0.5)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        fresh.get()
    gaps = [after - before for before, after in pairwise(moments)]
    assert gaps
    assert min(gaps) >= 0.04


def test_what_could_not_be_found_out_is_tried_again_by_the_next_who_asks() -> None:
    answers = iter([ZeroDivisionError(), "found"])

    def find() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    fresh = Fresh(find, seconds=60)
    with pytest.raises(ZeroDivisionError):
        fresh.get()
    assert fresh.get() == "found"
