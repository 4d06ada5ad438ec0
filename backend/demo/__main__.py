"""`python -m backend.demo`: the command behind `make demo`; every expected failure is one clear line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from rich.console import Console

from backend.demo.auto import LoopStalled
from backend.demo.home import DemoRuns
from backend.demo.options import parse
from backend.demo.own_images import DataError
from backend.demo.run import Demo
from backend.embedded.ports import PortBusy
from backend.embedded.process import ProcessFailed
from backend.embedded.redis import RedisUnavailable
from studio.errors import StudioError

EXPECTED = (
    DataError,
    DemoRuns,
    LoopStalled,
    PortBusy,
    ProcessFailed,
    RedisUnavailable,
    StudioError,
    OSError,
)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    console = Console(highlight=False, soft_wrap=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"  # all of the demo is on this machine
    try:
        Demo(options, console).run()
    except KeyboardInterrupt:
        console.print("Stopped. The next start goes on from here.")
    except EXPECTED as error:
        console.print(f"demo: {error}", style="red", markup=False)
        return 1
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Once: what follows is an orderly stop, which a second Ctrl-C must not cut short."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
