"""What the demo tells about the loop."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from backend.demo.screen import Screen, events, rounds_table, sentence
from backend.demo.watch import FinishedRound, Situation
from iwes import estimate_mean
from jobs.accuracy import Accuracy
from jobs.sample import Response
from store.tables import RoundState

OPEN = Situation(
    number=0,
    state=RoundState.OPEN,
    labels=12,
    wanted=50,
    queue=75,
    due=None,
    progress="",
    job="",
    failed=None,
    finished=(),
)
SEED = FinishedRound(0, 50, "iwes-model-0", 1.0, train_seconds=4.25, draw_seconds=1.0, publish_seconds=None)


def test_counts_labels_of_the_open_round() -> None:
    assert sentence(OPEN) == "Round 0: 12 of 50 labels"


def test_each_step_of_the_loop_is_one_line() -> None:
    closed = replace(OPEN, state=RoundState.CLOSED, labels=50, due="train")
    drawn = replace(closed, number=1, state=RoundState.DRAWN, labels=0, finished=(SEED,))
    opened = replace(drawn, state=RoundState.OPEN, due=None)
    assert events(OPEN, OPEN) == []
    assert events(OPEN, closed) == ["Round 0 is complete with 50 labels: a model trains on them"]
    assert events(closed, drawn) == [
        "Round 0: iwes-model-0 trained on 50 labels",
        "Round 1: 75 tasks drawn, writing their weights to Label Studio",
    ]
    assert events(drawn, opened) == ["Round 1 is open: 75 tasks queued, 50 labels complete it"]


def test_failed_job_is_told_once_with_its_reason() -> None:
    failed = replace(OPEN, state=RoundState.CLOSED, due="train-0", failed="Diverged: loss is nan")
    assert "[red]The job train-0 failed: Diverged: loss is nan[/]" in events(OPEN, failed)
    assert events(failed, failed) == []


def test_pool_that_is_all_labelled_is_the_end() -> None:
    end = replace(OPEN, state=RoundState.TRAINED)
    assert end.at_the_end
    assert sentence(end) == "Every task of the pool is labelled"


def test_table_shows_what_is_known_of_each_round() -> None:
    out = StringIO()
    Console(file=out, width=100).print(rounds_table((SEED,), {0: 0.873}))
    row = next(line for line in out.getvalue().splitlines() if "87.3%" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "0",
        "50",
        "87.3%",
        "-",
        "1.00",
        "4.2 s",
        "1.0 s",
        "-",
    ]


def test_where_lines_cannot_be_replaced_each_round_is_a_line() -> None:
    out = StringIO()
    surfaced = replace(SEED, publish_seconds=7.0)
    with Screen(Console(file=out, width=200), table=True) as screen:
        screen.show(OPEN, {})
        screen.show(replace(OPEN, number=1, finished=(surfaced,)), {0: 0.873})
    assert "round 0  labels 50  accuracy 87.3%  estimated -  mean weight 1.00  train 4.2 s" in out.getvalue()


def test_what_the_labels_say_of_a_model_is_told_once() -> None:
    accuracy = Accuracy(
        round=1,
        model_version="iwes-model-0",
        trained_on=50,
        rest=100,
        estimate=estimate_mean([1.0] * 45 + [0.0] * 5, [0.5] * 50),
        response=Response(asked=52, answered=50, skipped=2, lost=0),
        complete=True,
        helped=False,
    )
    before = replace(OPEN, number=1, finished=(SEED,))
    after = replace(before, state=RoundState.CLOSED, finished=(replace(SEED, estimate=accuracy),))
    (line, _closed) = events(before, after)
    assert line.startswith("By the labels it asked for, iwes-model-0 is right on 90% (")
    assert "2 labels missing" in line
    assert not any("By the labels" in line for line in events(after, after))
