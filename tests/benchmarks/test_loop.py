"""The benchmark of the loop: that its parts are the whole, what counts as waiting, and a small run of all of it."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask

from backend.demo.annotator import Annotator
from benchmarks.loop import __main__ as program
from benchmarks.loop import crowd, official_app
from benchmarks.loop.beside import ALONE, OURS, Side
from benchmarks.loop.official import EVERY_K, EVERY_LABEL, Official
from benchmarks.loop.options import options
from benchmarks.loop.report import Report
from benchmarks.loop.settings import QUICK, Settings
from benchmarks.loop.split import Bare, Moments, Round, Split
from benchmarks.loop.studio import EXECUTABLE
from benchmarks.loop.tables import tables
from benchmarks.loop.waits import SHARES, Wait, at_share, seconds
from benchmarks.page import END

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def at(*after: float) -> Moments:
    return Moments(*(BEGAN + timedelta(seconds=one) for one in after))


def test_the_parts_of_a_round_are_the_whole_of_it() -> None:
    split = Split.of(at(0, 0.25, 0.5, 3, 3.5, 4.5, 5, 9, 9.125))
    assert split == Split(label=0.25, wait=0.25 + 0.5 + 0.5, train=2.5, draw=1, publish=4, serve=0.125)
    assert split.whole == 9.125
    assert split.ours == 1.25 + 2.5 + 1


def a_round(number: int = 0) -> Round:
    split = Split.of(at(0, 0.25, 0.5, 3, 3.5, 4.5, 5, 9, 9.125))
    return Round(number, 50 * (number + 1), 30.0, 256, split, Bare(1.5, 0.25, 30.0))


def test_the_ratio_is_that_of_the_whole_to_training_and_forward_passes() -> None:
    assert a_round().ratio == pytest.approx(9.125 / 1.75)


def test_shares_of_waits() -> None:
    values = [number / 100 for number in range(1, 101)]
    assert [at_share(values, share) for share in SHARES.values()] == [0.51, 1.0, 1.0]
    assert [at_share([2.0], share) for share in SHARES.values()] == [2.0, 2.0, 2.0]
    assert math.isnan(at_share([], 0.5))
    assert seconds([Wait(1, 2), Wait(3, 4)], "both") == [3, 7]


def a_report() -> Report:
    waits = [Wait(0.1, 0.2), Wait(0.3, 5.0)]
    sides = [
        Side(ALONE, waits, 60.0, 0, 0.5, 2),
        Side(OURS, waits, 60.0, 1, 0.5, 2, [2.5], [4.0], 0, 0, 0),
        Side(EVERY_K, waits, 60.0, 0, 0.5, 2, [2.5, 3.5], [], 1, 1),
        Side(EVERY_LABEL, waits[:1], 60.0, 0, 0.5, 1, [], [], 1, 0),
    ]
    made = {"label-studio": "1.23.2", "cores": 2}
    return Report(Settings(), made, {"loop": 0.2, "bare": 0.1}, [a_round(), a_round(1)], sides)


def test_what_was_measured_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = a_report()
    report.save(tmp_path / "figures" / "loop.json")
    assert Report.load(tmp_path / "figures" / "loop.json") == report


def test_the_tables_hold_every_figure() -> None:
    written = tables(a_report(), "figures/loop.svg")
    assert "| 50 | 0.25 | 1.25 | 2.50 | 1.00 | 4.00 | 0.12 | 9.12 | 1.50 | 0.25 | 256 | 5.2 |" in written
    assert "| this backend | 5.00 / 5.00 / 5.00 | 0.30 / 0.30 / 0.30 | 5.30 / 5.30 / 5.30 | 2 | 1.0 | 1 |" in written
    assert "| official, trains every 50 labels | 2 | 1 | 1 |  | 0 |" in written
    assert "0.1 to 0.2 cores" in written


def test_options_change_a_quick_run_too() -> None:
    assert options(["--quick", "--k", "7"]).settings == replace(QUICK, k=7)
    assert options(["--labels", "9"]).settings == replace(Settings(), labels=9)


class FakeStudio(Annotator):
    """One that has no task the first time, and is too busy for the first answer: a real one cannot be told to."""

    asked = submitted = 0

    def next_task(self) -> dict[str, Any] | None:
        self.asked += 1
        return None if self.asked == 1 else {"id": self.asked, "data": {}}

    def submit(self, task: Mapping[str, Any], choice: str, started: datetime) -> None:
        self.submitted += 1
        time.sleep(0.1)
        if self.submitted == 1:
            raise requests.ConnectionError


@pytest.mark.slow
def test_time_without_a_task_and_refused_answers_count_as_waiting_for_the_label() -> None:
    person = FakeStudio("", 1, requests.Session(), lambda data: "7")
    done = crowd.label([person], 2, look=0.05, seconds=60)
    first, second = done.waits
    assert done.refused == 1
    assert crowd.IDLE_SECONDS <= first.next < crowd.IDLE_SECONDS + 0.5
    assert 0.2 <= first.submit < 0.7
    assert second.next < 0.1 <= second.submit < 0.5


@pytest.mark.slow
def test_a_crowd_gives_as_many_labels_as_asked_for_or_stops_in_time() -> None:
    people = [FakeStudio("", 1, requests.Session(), lambda data: "7") for _ in range(3)]
    assert len(crowd.label(people, 10, look=0.0, seconds=60).waits) == 10
    assert len(crowd.label(people, 1000, look=0.0, seconds=1).waits) < 100


def test_what_goes_wrong_with_an_annotator_is_told() -> None:
    person = FakeStudio("", 1, requests.Session(), lambda data: data["nothing"])
    with pytest.raises(KeyError):
        crowd.label([person], 2, look=0.0, seconds=60)


def test_the_book_tells_webhooks_that_were_only_taken_up_from_those_answered(tmp_path: Path) -> None:
    app, go = Flask("server"), threading.Event()

    @app.post("/webhook")
    def webhook() -> dict[str, str]:
        go.wait(10)
        return {}

    book = Official(None, EVERY_LABEL, tmp_path / "book")  # type: ignore[arg-type]
    official_app.keep_book(app, book.book)
    assert book.read().received == set()

    def send(number: int) -> None:
        app.test_client().post("/webhook", json={"action": "ANNOTATION_CREATED", "annotation": {"id": number}})

    thread = threading.Thread(target=send, args=(3,))
    thread.start()
    while not book.read().received:
        time.sleep(0.01)
    assert (book.read().answered, book.read().trainings) == (set(), [])
    go.set()
    thread.join()
    send(4)
    found = book.read()
    assert found.received == found.answered == {3, 4}
    assert len(found.trainings) == 2
    assert found.unknown({3, 4, 5}) == 1


@pytest.mark.slow
@pytest.mark.studio
def test_a_quick_run_knows_every_label_and_writes_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    if not EXECUTABLE.exists():
        pytest.skip("no Label Studio here: run `make setup`")
    assert program.main(["--quick", "--docs", str(tmp_path), "--scratch", str(tmp_path)]) == 0
    report = Report.load(tmp_path / "figures" / "loop.json")
    (one,) = report.rounds
    assert one.examples == QUICK.k
    assert one.epochs == one.bare.epochs, "the bare training is another one"
    assert 0 < one.scored <= QUICK.pool
    parts = [one.split.label, one.split.wait, one.split.train, one.split.draw, one.split.publish, one.split.serve]
    assert min(parts) > 0
    assert one.split.whole == pytest.approx(sum(parts))
    assert one.bare.train > 0
    assert one.bare.forward > 0

    assert [side.name for side in report.sides] == [ALONE, OURS, EVERY_K]
    for side in report.sides:
        assert len(side.waits) == side.annotations == QUICK.labels
        assert min(min(wait.next, wait.submit) for wait in side.waits) > 0
    ours, theirs = report.sides[1:]
    assert ours.unknown == ours.unknown_after == 0
    assert ours.trainings
    assert ours.batches
    # Label Studio starts each by a count of its own, which two annotators at once may see twice or not at all
    assert len(theirs.trainings) <= QUICK.labels
    assert all(seconds > 0 for seconds in theirs.trainings)

    written = (tmp_path / "benchmarks.md").read_text()
    picture = (tmp_path / "figures" / "loop.svg").read_bytes()
    assert capsys.readouterr().out.strip() in written
    assert written.rstrip().endswith(END)
    assert program.main(["--page-only", "--docs", str(tmp_path)]) == 0
    assert (tmp_path / "benchmarks.md").read_text() == written
    assert (tmp_path / "figures" / "loop.svg").read_bytes() == picture
    assert json.loads((tmp_path / "figures" / "loop.json").read_text())["settings"]["k"] == QUICK.k
