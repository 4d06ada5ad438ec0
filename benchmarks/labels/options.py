"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.labels.data import DATASETS, FROZEN
from benchmarks.labels.model import PAPER
from benchmarks.labels.pools import POOLS
from benchmarks.labels.rules import RULES
from benchmarks.labels.settings import SIZES, USUAL, Settings

USUALLY = ("mnist-5000", "fashion-mnist")
MANY, FEW = 20, 5
"""Seeds, unless told otherwise: where training a head takes a second, and where training a network takes a minute."""
PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Options:
    data: dict[str, Path | None]
    named: bool  # whether the data were asked for by name, and must be there
    pools: list[str]
    rules: list[str]
    sizes: dict[str, Settings]
    seeds: dict[str, int]
    workers: int
    cache: Path
    docs: Path
    page_only: bool
    paper: bool
    device: str

    def learner(self, data: str) -> str:
        return PAPER if self.paper else DATASETS[data].learner

    @property
    def journal(self) -> Path:
        return self.cache / "labels.jsonl"

    @property
    def json(self) -> Path:
        return self.docs / "figures" / "labels.json"


def options(words: Sequence[str] | None = None) -> Options:
    given = parser().parse_args(words)
    size = {name: getattr(given, name) for name in Settings.__dataclass_fields__ if getattr(given, name)}
    sizes = {name: Settings(**{**vars(SIZES.get(name, USUAL)), **size}) for name in DATASETS}
    data = dict(given.data or [(name, DATASETS[name].usual) for name in USUALLY])
    return Options(
        data,
        bool(given.data),
        given.pool or list(POOLS),
        given.rule or list(RULES),
        sizes,
        {name: given.seeds or _usual_seeds(name, paper=given.paper) for name in DATASETS},
        given.workers,
        given.cache,
        given.docs,
        given.page_only,
        given.paper,
        given.device,
    )


def _usual_seeds(data: str, *, paper: bool) -> int:
    return MANY if DATASETS[data].learner == FROZEN and not paper else FEW


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.labels",
        description="Labels images in rounds, chosen by many rules, and compares what the models have learnt and what "
        "the labels say of the pool. A run that was stopped goes on where it was.",
    )
    made.add_argument(
        "--data",
        type=_data,
        action="append",
        metavar="NAME[=PATH]",
        help=f"one or several of {', '.join(DATASETS)}; a path where it cannot be found by itself (what there is of "
        f"{' and '.join(USUALLY)})",
    )
    made.add_argument("--pool", choices=list(POOLS), action="append", help="one or several (all)")
    made.add_argument("--rule", choices=list(RULES), action="append", help="one or several (all)")
    made.add_argument("--seeds", type=_count, help=f"repetitions ({MANY}; {FEW} where a network is trained in full)")
    made.add_argument("--workers", type=_count, default=2, help="processes of one thread each (2)")
    made.add_argument("--k0", type=_count, help="labels of the seed set")
    made.add_argument("--k", type=_count, help="labels of each round")
    made.add_argument("--rounds", type=_count)
    made.add_argument("--cache", type=Path, default=PROJECT / ".cache", help="finished runs and descriptions (.cache)")
    made.add_argument("--docs", type=Path, default=PROJECT / "docs", help="where page and pictures go (docs)")
    made.add_argument(
        "--paper",
        action="store_true",
        help="train the paper's VGG16 by the paper's recipe, from torchvision's weights (downloaded, or in --cache)",
    )
    made.add_argument("--device", default="cpu", help="cpu, cuda or auto (cpu)")
    made.add_argument("--page-only", action="store_true", help="make the page again from its JSON; run nothing")
    return made


def _data(word: str) -> tuple[str, Path | None]:
    name, _, path = word.partition("=")
    if name not in DATASETS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(DATASETS)}")
    return name, Path(path) if path else DATASETS[name].usual


def _count(word: str) -> int:
    if (number := int(word)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number
