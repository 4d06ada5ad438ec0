"""Puts the tables and the picture into the page about them, and leaves what people wrote around them alone."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- results: written by python -m benchmarks.subsets -->", "<!-- end of results -->"


def write(path: Path, results: str) -> None:
    """Replace what is between the two marks; a page without them gets both at its end."""
    text = path.read_text() if path.exists() else "# Training on a selected subset\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        before, after = text.rstrip("\n") + "\n\n", "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{BEGIN}\n{results.strip()}\n{END}{after}")
