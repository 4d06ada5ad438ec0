"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.subsets.fashion import FOLDER
from benchmarks.subsets.settings import Settings

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Options:
    settings: Settings
    seeds: int
    workers: int
    fashion: Path
    journal: Path
    docs: Path
    json: Path
    page_only: bool


def options(words: Sequence[str] | None = None) -> Options:
    given = vars(parser().parse_args(words))
    settings = Settings(**{name: given.pop(name) for name in Settings.__dataclass_fields__})
    given["json"] = given["json"] or given["docs"] / "figures" / "subsets.json"
    return Options(settings=settings, **given)


def parser() -> argparse.ArgumentParser:
    usual = Settings()
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.subsets",
        description="Selects subsets of the labelled Fashion-MNIST by several rules and compares the models trained "
        "on them. Tables go to the standard output and into the docs, progress to the standard error. A run that was "
        "stopped goes on where it was.",
    )
    made.add_argument("--fashion", type=Path, default=FOLDER, metavar="FOLDER", help=f"with its .gz files ({FOLDER})")
    made.add_argument("--seeds", type=_count, default=5, help="repetitions (5)")
    made.add_argument("--workers", type=_count, default=2, help="processes of one thread each (2)")
    made.add_argument("--k0", type=_count, default=usual.k0, help=f"labels of the seed set ({usual.k0})")
    made.add_argument("--k", type=_count, default=usual.k, help=f"labels of each round ({usual.k})")
    made.add_argument("--rounds", type=_count, default=usual.rounds, help=f"({usual.rounds})")
    made.add_argument("--epochs", type=_count, default=usual.epochs, help=f"of a training at most ({usual.epochs})")
    made.add_argument(
        "--full-epochs", type=_count, default=usual.full_epochs, help=f"on the full set at most ({usual.full_epochs})"
    )
    made.add_argument(
        "--journal",
        type=Path,
        default=PROJECT / ".cache" / "subsets.jsonl",
        metavar="FILE",
        help="a line for each finished run; what is in it is not run again (.cache/subsets.jsonl)",
    )
    made.add_argument("--docs", type=Path, default=PROJECT / "docs", help="where the page and the picture go (docs)")
    made.add_argument("--json", type=Path, metavar="FILE", help="the raw results (figures/subsets.json in the docs)")
    made.add_argument("--page-only", action="store_true", help="make page and picture again from --json; run nothing")
    return made


def _count(word: str) -> int:
    if (number := int(word)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number
