"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.loop.settings import QUICK, Settings

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Options:
    settings: Settings
    docs: Path
    json: Path
    scratch: Path | None
    page_only: bool


def options(words: Sequence[str] | None = None) -> Options:
    given = vars(parser().parse_args(words))
    usual = asdict(QUICK if given.pop("quick") else Settings())
    settings = Settings(
        **{name: value if (said := given.pop(name, None)) is None else said for name, value in usual.items()}
    )
    given["json"] = given["json"] or given["docs"] / "figures" / "loop.json"
    return Options(settings=settings, **given)


def parser() -> argparse.ArgumentParser:
    usual = Settings()
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.loop",
        description="Times the loop from the k-th label to the next batch, and what annotators wait beside a training, "
        "on a real Label Studio. Tables go to the standard output and into the docs, progress to the standard error.",
    )
    made.add_argument("--rounds", type=_count, help=f"of the loop that is timed ({usual.rounds})")
    made.add_argument("--k", type=_count, help=f"labels between two trainings ({usual.k})")
    made.add_argument("--pool", type=_count, help=f"digits in each project ({usual.pool:,})")
    made.add_argument("--labels", type=_count, help=f"given beside trainings ({usual.labels})")
    made.add_argument("--annotators", type=_count, help=f"who give them ({usual.annotators})")
    made.add_argument("--look", type=float, help=f"seconds that they look at each picture ({usual.look:g})")
    made.add_argument("--repeats", type=_count, help=f"of the bare work ({usual.repeats})")
    made.add_argument("--minutes", type=float, help=f"at most beside each server ({usual.minutes:g})")
    made.add_argument("--quick", action="store_true", help="a glance at whether it works; the figures mean little")
    made.add_argument("--docs", type=Path, default=PROJECT / "docs", help="where page and picture go (docs)")
    made.add_argument("--json", type=Path, metavar="FILE", help="what was measured (figures/loop.json in the docs)")
    made.add_argument("--scratch", type=Path, help="a folder for what it needs meanwhile")
    made.add_argument("--page-only", action="store_true", help="make page and picture again from --json; run nothing")
    return made


def _count(word: str) -> int:
    if (number := int(word)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number
