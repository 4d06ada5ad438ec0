"""The tutorial, done as its reader would: every block in its order, in one shell, and compared with what it shows."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.embedded.ports import any_free
from backend.embedded.process import Process
from tests.docs.page import ROOT, Block, Page

SECONDS = 600.0
"""It needs 200 of processor time; the rest is for machines that are busy with other things."""
COLUMNS = 140
"""Of the terminal that tables are laid out for."""
MARK = "--- block at line "
FOREIGN = ("IWES_", "LABEL_STUDIO_", "DATABASE_URL", "REDIS_URL", "FORCE_COLOR")


@dataclass(frozen=True)
class Step:
    block: Block
    shown: str | None
    """What the page says that one sees; None where it says nothing."""

    @property
    def command(self) -> str:
        """A Python block is saved under the name in its first line; a shell block is typed."""
        if self.block.language != "python":
            return self.block.text
        name = self.block.text.partition("\n")[0].removeprefix("# ")
        assert re.fullmatch(r"\w+\.py", name), f"line {self.block.line}: a Python block begins with the file's name"
        return f"cat > {name} <<'END OF FILE'\n{self.block.text}END OF FILE\n"


def steps(page: Page) -> Iterator[Step]:
    blocks = page.blocks
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language != "text":
            yield Step(block, following.text if following and following.language == "text" else None)


def script(page: Page) -> str:
    """Ends at the first command that fails, and takes along what it has left running."""
    lines = ["set -e -o pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for step in steps(page):
        lines += [f"echo {shlex.quote(MARK + str(step.block.line))}", step.command]
    return "\n".join(lines)


def seen_at(log: str) -> dict[int, str]:
    """What was said at each block, by its line."""
    parts = re.split(rf"^{MARK}(\d+)\n", log, flags=re.MULTILINE)
    return {int(line): said for line, said in zip(parts[1::2], parts[2::2], strict=True)}


def fits(shown: str, said: str) -> bool:
    """`…` in a line stands for anything in it, and on a line of its own for any lines."""
    lines = [r"(?:.*\n)*" if line.strip() == "…" else _pattern(line) for line in shown.splitlines()]
    return re.fullmatch("".join(lines), said) is not None


def _pattern(line: str) -> str:
    """However wide its gaps are: tables are as wide as what is in them."""
    words = [".*".join(map(re.escape, word.split("…"))) for word in line.split()]
    return r"[^\S\n]*" + r"[^\S\n]+".join(words) + r"[^\S\n]*\n"


def left_running(home: Path) -> list[str]:
    """Processes that know the tutorial's home: everything it has started inherits it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={home}".encode() in (folder / "environ").read_bytes():
                found.append(f"{folder.name} {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
    return found


@pytest.mark.studio
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 60)
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    page = Page.read(ROOT / "docs" / "tutorial.md")
    ports = {"8080": str(any_free()), "9090": str(any_free())}  # as the page tells whoever has them taken
    page = Page(page.path, re.sub("8080|9090", lambda found: ports[found[0]], page.text))
    mine = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env = mine | {"HOME": str(tmp_path), "COLUMNS": str(COLUMNS)}
    (tmp_path / "tutorial.sh").write_text(f"cd {shlex.quote(str(ROOT))}\n{script(page)}")
    reader = Process("the tutorial", ["bash", tmp_path / "tutorial.sh"], tmp_path / "seen.log", env)
    reader.start()
    try:
        reader.wait_until(lambda: reader.exit_code == 0, SECONDS, "its end")
    finally:
        reader.stop()
        for log in tmp_path.glob("iwes-tutorial/*.log"):
            print(f"--- {log.name}\n{log.read_text()[-2000:]}")
    said = seen_at((tmp_path / "seen.log").read_text())
    for step in steps(page):
        there = said[step.block.line]
        assert step.shown is None or fits(step.shown, there), f"{page.path.name}:{step.block.line} says\n{there}"
    deadline = time.monotonic() + 10
    while (left := left_running(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def test_what_is_shown_is_compared_but_for_what_is_left_open() -> None:
    shown = "project 1\n…\n  round  state …\n"
    assert fits(shown, "project 1\nmore\n\nand more\n   round    state   drawn by\n")
    assert not fits(shown, "project 2\n round state x\n")
    assert not fits("all\n", "all\nand more\n")
