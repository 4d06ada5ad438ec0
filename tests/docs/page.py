"""A page of the docs, taken apart: its fenced blocks, its links, its headings, and the commands it shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
SHELLS = ("", "sh", "bash")

_FENCED = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_INLINE = re.compile(r"`((?:\.venv/bin/)?iwes [^`]+)`")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    """Of its first line on the page, for messages."""


@dataclass(frozen=True)
class Page:
    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> Page:
        return cls(path, path.read_text())

    @property
    def blocks(self) -> list[Block]:
        found = _FENCED.finditer(self.text)
        return [Block(each[1], each[2], self.text.count("\n", 0, each.start(2)) + 1) for each in found]

    @property
    def prose(self) -> str:
        return _FENCED.sub("", self.text)

    @property
    def anchors(self) -> set[str]:
        """As the usual viewers of Markdown make them of headings."""
        return {
            re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
            for heading in _HEADING.findall(self.prose)
        }

    def links(self) -> Iterator[tuple[Path, str]]:
        """Files of this project that it leads to, each with the anchor in it, or with none."""
        for target in _LINK.findall(self.prose):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            yield (self.path.parent / path).resolve() if path else self.path, anchor

    def command_lines(self) -> Iterator[list[str]]:
        """The arguments of each `iwes` that a reader could type as it stands."""
        for block in self.blocks:
            if block.language in SHELLS:
                for line in block.text.replace("\\\n", " ").splitlines():
                    yield from _calls(line)

    def mentioned_commands(self) -> Iterator[list[str]]:
        """Those in the midst of a sentence, which may leave out what they do not speak of."""
        for text in _INLINE.findall(self.prose):
            yield from _calls(text)


def all_pages() -> list[Page]:
    return [Page.read(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]


def _calls(line: str) -> Iterator[list[str]]:
    """What follows each `iwes` of a shell's line, as far as the next command."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError:  # an apostrophe: not a line for a shell
        return
    for at, word in enumerate(words):
        if word == "iwes" or word.endswith("/iwes"):
            rest = words[at + 1 :]
            end = next((n for n, each in enumerate(rest) if set(each) <= set("|&;<>()")), len(rest))
            yield rest[:end]
