"""What is being done, for whoever waits for it."""

from __future__ import annotations

import sys
import time

_began = time.monotonic()


def say(text: str) -> None:
    minutes, seconds = divmod(int(time.monotonic() - _began), 60)
    print(f"{minutes:02}:{seconds:02} {text}", file=sys.stderr, flush=True)
