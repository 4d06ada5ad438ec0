"""`python -m benchmarks.speed.measure`: is told sizes and what is done on its input, and tells one fact a line."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout

from benchmarks.speed import facts
from benchmarks.speed.settings import Settings


def main() -> None:
    told = json.load(sys.stdin)
    lines = sys.stdout
    with redirect_stdout(sys.stderr):  # whatever a peer prints is no fact
        from benchmarks.speed.measure import peers
        from benchmarks.speed.measure.everything import everything

        for fact in everything(Settings(**told["settings"]), peers, set(told["done"])):
            print(json.dumps(facts.as_dict(fact)), file=lines, flush=True)


if __name__ == "__main__":
    main()
