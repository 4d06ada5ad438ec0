"""Puts tables and pictures into a page about them, and leaves what people wrote around them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN = "<!-- results: written by python -m "
END = "<!-- end of results -->"


class BadPage(ValueError):
    """A page whose marks do not tell where a part ends; the message says which."""


@dataclass(frozen=True)
class Part:
    """The part of a page that a program writes."""

    program: str  # python -m …
    title: str  # of a page that is not there yet

    @property
    def begin(self) -> str:
        return f"{BEGIN}{self.program} -->"

    def write(self, path: Path, results: str) -> None:
        """Replace what is between the two marks; a page without them gets both at its end. Parts of other programs are
        left alone, and so is a page in which this part has lost its end: what is whose cannot be told there."""
        text = path.read_text() if path.exists() else f"# {self.title}\n"
        before, begin, rest = text.partition(self.begin)
        old, end, after = rest.partition(END)
        if begin and (not end or BEGIN in old):
            raise BadPage(f"{path}: the results of {self.program} have no {END}: put it back where they end")
        if not begin:
            before, after = text.rstrip("\n") + "\n\n", "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{before}{self.begin}\n{results.strip()}\n{END}{after}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
