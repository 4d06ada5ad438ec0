"""A page that several programs write a part of each, with what people wrote around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page import END, BadPage, Part

ONE, TWO = Part("benchmarks.one", "Benchmarks"), Part("benchmarks.two", "Benchmarks")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "docs" / "page.md"


def test_a_page_that_is_not_there_is_made_with_its_title(page: Path) -> None:
    ONE.write(page, "results")
    assert page.read_text() == f"# Benchmarks\n\n{ONE.begin}\nresults\n{END}\n"


@pytest.mark.parametrize("part", [ONE, TWO])
def test_a_part_replaces_its_own_results_and_no_others(page: Path, part: Part) -> None:
    page.parent.mkdir()
    before = f"# Ours\n\nfirst\n\n{ONE.begin}\n1\n{END}\n\nbetween\n\n{TWO.begin}\n2\n{END}\n\nlast\n"
    page.write_text(before)
    old = "1" if part is ONE else "2"
    part.write(page, "new")
    part.write(page, "newer")
    assert page.read_text() == before.replace(f"\n{old}\n", "\nnewer\n")


def test_a_second_program_adds_its_part_at_the_end(page: Path) -> None:
    ONE.write(page, "1")
    TWO.write(page, "2")
    ONE.write(page, "one")
    assert page.read_text() == f"# Benchmarks\n\n{ONE.begin}\none\n{END}\n\n{TWO.begin}\n2\n{END}\n"


@pytest.mark.parametrize("rest", ["", f"\n\n{TWO.begin}\n2\n{END}\n"])
def test_a_part_that_has_lost_its_end_is_not_guessed(page: Path, rest: str) -> None:
    page.parent.mkdir()
    page.write_text(f"# Ours\n\n{ONE.begin}\n1{rest}")
    with pytest.raises(BadPage, match=r"benchmarks\.one"):
        ONE.write(page, "new")
    assert page.read_text() == f"# Ours\n\n{ONE.begin}\n1{rest}"
