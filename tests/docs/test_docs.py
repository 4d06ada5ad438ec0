"""What the pages say can be followed: links lead somewhere, and the commands they show are commands there are."""

from __future__ import annotations

import re

import click
import pytest
from click.exceptions import Exit

from backend.cli import cli
from tests.docs.page import ROOT, Page, all_pages

PAGES = all_pages()
LEFT_OUT = "…"


def name_of(page: Page) -> str:
    return str(page.path.relative_to(ROOT))


def the_command(arguments: list[str], shown_on: Page) -> tuple[click.Command, list[str]]:
    """The command that is called, and what it is called with."""
    name, *rest = arguments
    if name.startswith("-"):
        return cli, arguments
    found = cli.get_command(click.Context(cli), name)
    assert found is not None, f"{name_of(shown_on)} shows `iwes {name}`, which does not exist"
    return found, rest


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading_of_this_project(page: Page) -> None:
    for path, anchor in page.links():
        assert path.exists(), f"{name_of(page)} links to {path.relative_to(ROOT)}, which does not exist"
        if anchor:
            assert anchor in Page.read(path).anchors, f"{name_of(page)} links to #{anchor} of {path.name}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_line_that_is_shown_is_one_that_iwes_takes(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in re.findall(r"\b(LABEL_STUDIO_\w+)=", page.text):
        monkeypatch.setenv(variable, "as the page has set it")
    for arguments in page.command_lines():
        command, rest = the_command(arguments, page)
        try:
            command.make_context(command.name, [each for each in rest if each != LEFT_OUT])
        except Exit:
            pass  # --help and --version end there
        except click.UsageError as error:
            pytest.fail(f"{name_of(page)} shows `iwes {' '.join(arguments)}`: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_option_that_is_mentioned_exists(page: Page) -> None:
    for arguments in page.mentioned_commands():
        if arguments[0].isupper():
            continue  # stands for any
        command, rest = the_command(arguments, page)
        parser = command.make_parser(click.Context(command))
        try:
            parser.parse_args(rest)
        except click.UsageError as error:
            pytest.fail(f"{name_of(page)} mentions `iwes {' '.join(arguments)}`: {error.format_message()}")


def test_a_page_is_taken_apart_as_it_is_written() -> None:
    page = Page(
        ROOT / "docs" / "made-up.md",
        "# Once, `upon` a time!\nSee [this](operations.md#logs), [that](https://example.com) and `iwes set --k 3`.\n"
        "```sh\nA=1 .venv/bin/iwes status --json | jq . && iwes export --project 1 \\\n  --out x.csv\n```\n",
    )
    assert page.anchors == {"once-upon-a-time"}
    assert list(page.links()) == [(ROOT / "docs" / "operations.md", "logs")]
    assert list(page.mentioned_commands()) == [["set", "--k", "3"]]
    assert list(page.command_lines()) == [["status", "--json"], ["export", "--project", "1", "--out", "x.csv"]]
