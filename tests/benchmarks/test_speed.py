"""The speed of selection beside peers: what is kept, what is written, and that all is measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.speed import __main__ as program
from benchmarks.speed import child, environment, facts, work
from benchmarks.speed.facts import Draws, Fact, Memory, Times
from benchmarks.speed.made import Made, code
from benchmarks.speed.measure import clock
from benchmarks.speed.measure.everything import everything
from benchmarks.speed.measure.side_by_side import Ours, Peer, times
from benchmarks.speed.options import options
from benchmarks.speed.report import Report
from benchmarks.speed.settings import Settings
from benchmarks.speed.tables import tables

FACTS: list[Fact] = [
    Times(1_000_000, "lazy IWeS-ent draw", "modAL", 0.0014, 0.1971, 1000, 8.0),
    Times(1_000_000, "entropy top-k", "modAL", 0.075, 0.1971, 1000, None, 1000, True),
    Memory(1_000_000, "lazy IWeS-ent draw", 0.15),
    Times(60_000, "BADGE", "scikit-activeml", 0.1, 5.0, 30, 80.0),
    Draws("the reference algorithm", True, 1500, 0.37),
]
MADE = Made(Settings(), "code", {"numpy": "2.0", "modAL-python": "0.4.2.1"})
TINY = Settings(k=20, few=5, large=2000, small=1000, pairs=300)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each measuring process was told to be done; the first is stopped after two facts, and none needs peers."""
    seen: list[list[str]] = []

    def measured(command: Sequence[str], settings: Settings, done: Collection[str]) -> Generator[Fact, None, None]:
        seen.append(sorted(done))
        left = [fact for fact in FACTS if fact.name not in done]
        yield from left[:2] if len(seen) == 1 else left
        if len(seen) == 1:
            raise child.Stopped("stopped")

    monkeypatch.setattr(child, "measured", measured)
    monkeypatch.setattr(environment, "python", lambda folder: folder / "bin" / "python")
    monkeypatch.setattr(environment, "versions", lambda folder: MADE.versions)
    return seen


def words(tmp_path: Path, *more: str) -> list[str]:
    return ["--docs", str(tmp_path / "docs"), "--cache", str(tmp_path / "cache"), *more]


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, told: list[list[str]], capsys) -> None:
    pytest.importorskip("matplotlib")
    assert program.main(words(tmp_path)) == 2
    assert not (tmp_path / "docs").exists()
    assert program.main(words(tmp_path)) == 0
    assert told == [[], sorted(fact.name for fact in FACTS[:2])]
    assert Report.load(tmp_path / "docs" / "figures" / "speed.json").facts == FACTS
    assert capsys.readouterr().out.strip() in (tmp_path / "docs" / "benchmarks.md").read_text()


def test_the_page_is_made_again_from_the_json_alone(tmp_path: Path, told: list[list[str]]) -> None:
    pytest.importorskip("matplotlib")
    Report(MADE, FACTS).save(tmp_path / "docs" / "figures" / "speed.json")
    assert program.main(words(tmp_path, "--page-only")) == 0
    page, picture = tmp_path / "docs" / "benchmarks.md", tmp_path / "docs" / "figures" / "speed.svg"
    before = page.read_text(), picture.read_bytes()
    assert program.main(words(tmp_path, "--page-only")) == 0
    assert (page.read_text(), picture.read_bytes()) == before
    assert told == []


def test_full_runs_and_others_are_kept_apart_and_fresh_forgets_only_its_own(
    tmp_path: Path, told: list[list[str]]
) -> None:
    names = sorted(fact.name for fact in FACTS)
    with pytest.raises(child.Stopped):
        work.finish(options(words(tmp_path)))
    assert work.finish(options(words(tmp_path, "--full"))).facts == FACTS
    work.finish(options(words(tmp_path, "--full")))
    work.finish(options(words(tmp_path, "--full", "--fresh")))
    work.finish(options(words(tmp_path)))
    assert told == [[], [], names, [], sorted(fact.name for fact in FACTS[:2])]


@pytest.mark.parametrize(
    "other",
    [
        replace(MADE, settings=Settings(full=True)),
        replace(MADE, code="changed"),
        replace(MADE, versions={**MADE.versions, "numpy": "2.1"}),
    ],
)
def test_facts_of_other_sizes_code_or_versions_do_not_count_as_done(tmp_path: Path, other: Made) -> None:
    asked = options(words(tmp_path))
    work.journal(asked, MADE).add(work.Record(MADE, FACTS[0]))
    assert [record.fact for record in work.journal(asked, MADE).runs()] == FACTS[:1]
    assert work.journal(asked, other).runs() == []


def test_a_change_of_the_code_changes_its_digest(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("a = 1")
    before = code([tmp_path])
    assert code([tmp_path]) == before
    (tmp_path / "one.py").write_text("a = 2")
    assert code([tmp_path]) != before


def test_the_tables_say_what_was_not_reached_what_is_extrapolated_and_which_version_was_asked() -> None:
    text = tables(Report(MADE, FACTS), "picture.svg")
    assert "## Speed of selection" in text
    assert "| 1,000,000 rows: lazy IWeS-ent draw | 1.4 ms | modAL 0.4.2.1 | 197 ms | 141× | ≥ 8× |  |" in text
    assert "| 50.0× | ≥ 80×: not reached |" in text
    assert "all 1,000 the same" in text
    assert "extrapolated from 30 picks" in text
    assert "lazy IWeS-ent draw 0.15 times" in text
    assert "p = 0.37" in text
    full = Report(replace(MADE, settings=Settings(full=True)), FACTS)
    assert "extrapolated" not in tables(full, "picture.svg")


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_is_the_same_after_its_way_through_json(fact: Fact) -> None:
    assert facts.from_dict(json.loads(json.dumps(facts.as_dict(fact)))) == fact


def test_the_measuring_process_is_told_what_is_done_and_keeps_to_one_thread() -> None:
    script = (
        "import json, os, sys; told = json.load(sys.stdin); done = ','.join(told['done']); "
        "print(json.dumps({'kind': 'draws', 'peer': done, 'first': True, 'pairs': told['settings']['k'], "
        "'p': float(os.environ['OMP_NUM_THREADS'])})); sys.exit(3)"
    )
    found = child.measured([sys.executable, "-c", script], TINY, {"b", "a"})
    assert next(found) == Draws("a,b", True, 20, 1.0)
    with pytest.raises(child.Stopped, match="code 3"):
        next(found)


def test_what_a_peer_does_once_is_counted_once_when_its_time_is_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(call, repeats: int = 5) -> float:
        return call()

    monkeypatch.setattr(clock, "seconds", taken)
    assert clock.per_pick(lambda picks: 7 + 2 * picks, 30, 1000) == pytest.approx(7 + 2 * 1000)


def test_a_peer_is_asked_only_for_what_is_left() -> None:
    asked: list[str] = []

    def peer(name: str) -> Peer:
        def seconds() -> float:
            asked.append(name)
            return 2.0

        return Peer(name, seconds, 10, {"one": 3.0}, 10, {"two": lambda: False})

    ours = [Ours("one", lambda: None), Ours("two", lambda: None)]
    whole = list(times(100, ours, [peer("a"), peer("b")], ()))
    assert [(one.peer, one.task, one.wanted, one.compared, one.same) for one in whole] == [
        ("a", "one", 3.0, 0, None),
        ("a", "two", None, 10, False),
        ("b", "one", 3.0, 0, None),
        ("b", "two", None, 10, False),
    ]
    asked.clear()
    left = list(times(100, ours, [peer("a"), peer("b")], {one.name for one in whole[:3]}))
    assert [one.name for one in left] == [whole[3].name]
    assert asked == ["b"]


@pytest.mark.slow
def test_everything_is_measured_once_on_tiny_arrays_with_simple_functions_for_peers() -> None:
    found = list(everything(TINY, Simple(), ()))
    assert len({fact.name for fact in found}) == len(found) == 6 + 2 + 2 + 1 + 4 + 2
    same = {fact.task: fact.same for fact in found if isinstance(fact, Times) and fact.same is not None}
    assert same == {"entropy top-k": True, "k-center": True}
    assert all(fact.p > 0.001 for fact in found if isinstance(fact, Draws) and "reference" in fact.peer)
    assert list(everything(TINY, Simple(), {fact.name for fact in found})) == []
    json.dumps([facts.as_dict(fact) for fact in found])


@pytest.mark.slow
def test_a_full_run_lets_slow_peers_make_all_picks() -> None:
    peers = Simple()
    list(everything(replace(TINY, full=True), peers, ()))
    assert peers.asked == {TINY.k}


class Simple(SimpleNamespace):
    """Peers of a few lines of numpy; `asked` are the numbers of picks from pools larger than the one of eight."""

    def __init__(self) -> None:
        super().__init__(**dict.fromkeys(("modal_entropy", "baal_entropy", "small_text_entropy", "active_lab"), top))
        self.asked: set[int] = set()

    def activeml_badge(self, probabilities, features, k: int, seed: int = 0):
        """The gradients multiplied out, one pass over all a pick."""
        if len(features) > 8:
            self.asked.add(k)
        slope = probabilities - np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
        gradient = (slope[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        rng = np.random.default_rng([seed, 99])
        picked = [int((gradient**2).sum(axis=1).argmax())]
        nearest = np.full(len(features), np.inf)
        while len(picked) < k:
            nearest = np.minimum(nearest, ((gradient - gradient[picked[-1]]) ** 2).sum(axis=1))
            picked.append(int(rng.choice(len(features), p=nearest / nearest.sum())))
        return np.array(picked)

    reference_badge = activeml_badge

    def activeml_kcenter(self, features, labelled, k: int):
        self.asked.add(k)
        nearest = np.min([((features - one) ** 2).sum(axis=1) for one in labelled], axis=0)
        picked: list[int] = []
        for _ in range(k):
            picked.append(int(nearest.argmax()))
            nearest = np.minimum(nearest, ((features - features[picked[-1]]) ** 2).sum(axis=1))
        return np.array(picked)


def top(probabilities, k: int):
    return np.argsort((probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1))[:k]
