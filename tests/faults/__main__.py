"""`python -m tests.faults`: the command behind `make faults`. Prints what happened and whether every promise held."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.chaos import Outcome, Stalled, Wanted, run
from tests.faults.figures import table
from tests.live import EXECUTABLE


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    default = Wanted()
    parser.add_argument("--labels", type=int, default=default.labels)
    parser.add_argument("--kills", type=int, default=default.kills)
    parser.add_argument("--k", type=int, default=default.k, help="labels per round")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--annotators", type=int, default=default.annotators)
    parser.add_argument("--keep", action="store_true", help="leave the folder with its logs behind in any case")
    given = parser.parse_args()
    if not EXECUTABLE.exists():
        print("no Label Studio here: run `make setup`", file=sys.stderr)
        return 2
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"  # all of it is on this machine
    folder = Path(tempfile.mkdtemp(prefix="iwes-faults-"))
    wanted = Wanted(given.labels, given.kills, given.k, given.seed, given.annotators)
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f}  {line}", flush=True)

    say(f"everything is kept in {folder}")
    outcome: Outcome | None = None
    try:
        outcome = run(folder, wanted, say)
        print(table(outcome))
    except Stalled as error:
        print(f"✗ {error}")
    finally:
        print(_faults_logged(folder))
        if outcome is not None and not outcome.broken and not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"logs: {folder}")
    return 0 if outcome is not None and not outcome.broken else 1


def _faults_logged(folder: Path) -> str:
    """Which errors stand in the logs, and how often: not all that was survived was meant to happen."""
    lines = []
    for log in sorted((folder / "home" / "logs").glob("*.log")):
        found = Counter(
            re.sub(r"0x[0-9a-f]+|\d+", "#", match)[:110]
            for match in re.findall(r"^ *([\w.]*(?:Error|Exception|Unreachable|Fault)\b: .*)$", log.read_text(), re.M)
        )
        lines += [f"  {log.stem}: {count} × {error}" for error, count in found.most_common(8)]
    return "\n".join(["errors in the logs:", *lines]) if lines else "no errors in the logs"


if __name__ == "__main__":
    sys.exit(main())
