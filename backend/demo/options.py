"""What the demo is asked to do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.demo.own_images import parse_classes

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class DemoOptions:
    auto: bool
    rounds: int
    data: Path | None
    classes: list[str]
    home: Path
    k: int
    network: str
    studio: Path
    """Label Studio's executable, in the environment `make setup` made for it."""
    template: Path
    studio_port: int
    backend_port: int


def parse(argv: Sequence[str] | None = None) -> DemoOptions:
    parser = argparse.ArgumentParser(prog="python -m backend.demo", description=__doc__)
    add = parser.add_argument
    add("--annotator", choices=["you", "auto"], default="you", help="auto: a script labels from the true labels")
    add("--rounds", type=_at_least_one, default=5, help="with --annotator auto, end after so many more rounds")
    add("--data", type=Path, help="a folder of your own images: a folder per class, or flat with --classes")
    add("--classes", type=parse_classes, default=[], help="a,b,c: the classes to choose from")
    add("--home", type=Path, default=Path(".demo"), help="where the demo keeps everything (default .demo)")
    add("--k", type=_at_least_one, default=50, help="labels per round, the first one included (default 50)")
    add("--network", help="what is trained (default: small-cnn for the digits, efficientnet-lite0 for your images)")
    add("--studio", type=Path, default=ROOT / ".venv-studio" / "bin" / "label-studio", help=argparse.SUPPRESS)
    add("--template", type=Path, default=ROOT / ".cache" / "label-studio", help=argparse.SUPPRESS)
    add("--studio-port", type=int, default=8080, help="preferred at the first start (default 8080)")
    add("--backend-port", type=int, default=9090, help="preferred at the first start (default 9090)")
    given = parser.parse_args(argv)
    if given.classes and given.data is None:
        parser.error("--classes (CLASSES=…) go with --data (DATA=…)")
    return DemoOptions(
        auto=given.annotator == "auto",
        rounds=given.rounds,
        data=given.data,
        classes=given.classes,
        home=given.home.resolve(),
        k=given.k,
        network=given.network or ("efficientnet-lite0" if given.data else "small-cnn"),
        studio=given.studio.absolute(),
        template=given.template,
        studio_port=given.studio_port,
        backend_port=given.backend_port,
    )


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
