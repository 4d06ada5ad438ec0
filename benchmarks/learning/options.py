"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

PARTS = ("scoring", "features", "retraining", "photos", "memory", "calibration")


@dataclass(frozen=True)
class Options:
    only: tuple[str, ...]
    photos: Path | None
    cifar: Path | None
    json: Path | None
    scratch: Path
    threads: int | None
    epochs: int
    images: int
    seeds: int
    quick: bool

    def sized(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.learning",
        description="Measures scoring, training, calibration and memory. Rows of Markdown go to the standard output, "
        "progress to the standard error. What needs data that is not given is skipped, and says so.",
    )
    made.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"of {', '.join(PARTS)}")
    made.add_argument("--photos", type=Path, help="a folder with train/ and test/, each with a folder per class")
    made.add_argument("--cifar", type=Path, help="an .npz with train_x, train_y, test_x, test_y")
    made.add_argument("--json", type=Path, help="write all rows here as well")
    made.add_argument("--scratch", type=Path, help="keep images and features here for the next run (16 GB for memory)")
    made.add_argument("--threads", type=int, help="CPU threads of both sides; torch's own choice unless given")
    made.add_argument("--epochs", type=int, default=1, help="retraining: epochs of full training at most (1)")
    made.add_argument("--images", type=int, default=100_000, help="memory: how many images are scored (100,000)")
    made.add_argument("--seeds", type=int, default=5, help="photos and calibration: repetitions (5)")
    made.add_argument("--quick", action="store_true", help="small sizes, to see that all runs; the figures mean little")
    return made


def names(given: list[str]) -> tuple[str, ...]:
    """The parts asked for, also where a Makefile hands several over as one word. Raises ValueError."""
    asked = [name for words in given for name in words.replace(",", " ").split()]
    unknown = [name for name in asked if name not in PARTS]
    if unknown:
        raise ValueError(f"unknown part {unknown[0]!r}: there are {', '.join(PARTS)}")
    return tuple(name for name in PARTS if name in asked) if asked else PARTS
