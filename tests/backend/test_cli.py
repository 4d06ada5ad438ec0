"""The `iwes` command as a whole: a tour in its help, JSON for programs, exit codes, completion, answers to mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from backend.cli import command, export, tour
from backend.cli.tour import TOUR, cli
from backend.exports.wish import Format, Weights
from jobs import reconcile
from store import rounds, subsets, weighted_set
from store.database import Store
from store.tables import Mode, Rule
from tests.backend.command import Iwes
from tests.conftest import a_label, add_round, make_project, put_label

NAMES = [name for commands in TOUR.values() for name in commands]
UP = "http://studio.test"


def test_help_is_a_tour_in_the_order_in_which_an_admin_meets_the_commands(iwes: Iwes) -> None:
    outcome = iwes("--help")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    places = [next(i for i, line in enumerate(lines) if line.startswith(f"  {name} ")) for name in NAMES]
    assert places == sorted(places)
    assert [line.rstrip(":") for line in lines if line.rstrip(":") in TOUR] == list(TOUR)
    assert lines.index("  A first session:") > places[-1]
    assert "Exit codes: 0 done · 1 a problem, named in one line on stderr · 2 a wrong call · 130" in outcome.said


def test_help_needs_neither_the_store_nor_numpy() -> None:
    watch = "import sys; from backend.cli import cli; cli.main(['--help'], standalone_mode=False)"
    heavy = (
        "print([name for name in ('sqlalchemy', 'redis', 'numpy', 'torch', 'rich', 'flask') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", f"{watch}; {heavy}"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_and_shows_an_example(iwes: Iwes, name: str) -> None:
    outcome = iwes(f"{name} --help")
    assert outcome.code == 0
    assert f"Usage: iwes {name}" in outcome.out
    assert "Example: " in outcome.out


def test_every_command_that_prints_has_json() -> None:
    context = click.Context(cli)
    silent = {"up", "serve", "worker", "completion"}
    with_json = {name for name in NAMES if "as_json" in {p.name for p in cli.get_command(context, name).params}}
    assert with_json == set(NAMES) - silent


def test_what_may_be_chosen_is_what_the_store_knows() -> None:
    assert list(command.MODES.choices) == [mode.value for mode in Mode]
    assert list(command.RULES.choices) == [rule.value for rule in Rule]
    assert tuple(command.SUBSET_RULES.choices) == subsets.RULES
    assert tuple(export.FORMATS.choices) == tuple(Format)
    assert tuple(export.WEIGHTS.choices) == tuple(Weights)
    assert tuple(export.STRATA.choices) == weighted_set.STRATA


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("statsu", "there is no command 'statsu'; did you mean `iwes status`"),
        ("estimates --project 1", "did you mean `iwes estimate`"),
        ("frobnicate", "there is no command 'frobnicate'; see `iwes --help`"),
        ("connect --project 1", "missing option '--url'"),
        ("connect --url http://studio.test --project 1", "missing option '--token'"),
        ("connect --url http://studio.test --token x", "missing option '--project'"),
        ("estimate", "missing option '--project' For example: iwes estimate --project 1 --target 0.95"),
        ("estimate --project one", "'one' is not a valid integer"),
        ("estimate --project 1 --half-width 2", "2.0 is not in the range 0<x<1"),
        ("estimate --project 1 --target 95", "'--target': 95.0 is not in the range 0<x<1"),
        ("estimate --project 1 --halfwidth 0.1", "no such option '--halfwidth'"),
        ("set --project 1 --mode entropy", "'entropy' is not one of 'auto', 'ent', 'dis', 'loss'"),
        ("export --project 1 --out x --format xlsx", "'xlsx' is not one of 'jsonl', 'csv', 'parquet'"),
        ("export --project 1 --out x.csv --weights fair", "'fair' is not one of 'paper', 'unbiased'"),
        ("worker --queue cpu", "'cpu' is not one of 'studio', 'gpu'"),
        ("status now", "got unexpected extra argument (now)"),
        ("completion powershell", "'powershell' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_a_wrong_call_is_answered_by_what_to_do(iwes: Iwes, line: str, said: str) -> None:
    outcome = iwes(line)
    assert outcome.code == 2
    assert outcome.out == ""
    assert said.lower() in outcome.said.lower()
    assert "--help` tells more." in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("estimate --project 1", "no project is connected yet: `iwes connect --url … --token … --project …`"),
        ("estimate --project 9 --url http://studio.test", "project 9 of http://studio.test is not known"),
        ("connect --url ftp://studio.test --token x --project 1", "ftp://studio.test"),
    ],
)
def test_a_problem_is_named_in_one_line(iwes: Iwes, line: str, said: str) -> None:
    outcome = iwes(line)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("iwes: ")
    assert said in outcome.said
    assert len(outcome.err.splitlines()) == 1


def test_whoever_interrupts_gets_the_code_that_shells_give(iwes: Iwes, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(place: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobs.status.all_projects", interrupted)
    outcome = iwes("status")
    assert (outcome.code, outcome.err.strip()) == (130, "iwes: interrupted")


def test_the_address_may_be_left_out_where_one_label_studio_is_known(iwes: Iwes, store: Store) -> None:
    make_project(store, tasks=3)
    assert iwes("estimate --project 1").code == 0
    make_project(store, studio_url="http://other.test", studio_id=2, secret="another")
    outcome = iwes("estimate --project 1")
    assert outcome.code == 2
    assert "--url is needed, for several Label Studios are known: http://other.test, http://studio.test" in outcome.said
    assert iwes("estimate --project 1 --url http://studio.test/").code == 0


def test_a_disconnected_project_can_still_be_estimated_but_not_changed(iwes: Iwes, store: Store) -> None:
    make_project(store, tasks=3, connected=False)
    assert iwes("estimate --project 1").code == 0
    outcome = iwes("set --project 1 --mode ent")
    assert (outcome.code, "project 1 of http://studio.test is not connected" in outcome.err) == (1, True)


def a_judged_project(store: Store) -> None:
    project = make_project(store, tasks=30)
    add_round(store, project, 0, [10, 11], wanted=2)
    add_round(store, project, 1, [1, 2, 3, 4], wanted=4)
    with store.write() as session:
        round_ = rounds.by_number(session, project, 1)
        round_.model_version, round_.examined, round_.pool_size = "iwes-model-0", 28, 28
        for draw in round_.draws:
            draw.predicted = "3"
    for task in (1, 2, 3):
        put_label(store, project, task, a_label(task, "3"))
    put_label(store, project, 4, a_label(4, None))


def test_json_is_one_document_and_nothing_else(
    iwes: Iwes, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_judged_project(store)
    monkeypatch.setattr(reconcile, "reconcile_project", lambda place, project_id, wholly: {"labels": 2})
    monkeypatch.setattr("jobs.connect.disconnect", lambda place, project: None)
    told = {}
    for name, line in {
        "status": "status",
        "estimate": "estimate --project 1 --target 0.9",
        "set": "set --project 1 --mode ent",
        "reconcile": "reconcile --project 1",
        "export": f"export --project 1 --out {tmp_path / 'set.csv'}",
        "disconnect": "disconnect --project 1",
    }.items():
        outcome = iwes(f"{line} --json")
        assert outcome.code == 0, outcome.err
        told[name] = json.loads(outcome.out)
    (project,) = told["status"]["projects"]
    assert (project["tasks"], project["rounds"][1]["accuracy"]["response"]["skipped"]) == (30, 1)
    assert project["estimates"]["judged"]["value"] == 1.0
    assert told["status"]["queue"]["reachable"] is False
    assert (told["estimate"]["project"], told["estimate"]["target"]) == (1, 0.9)
    assert told["estimate"]["curve"][0]["model_version"] == "iwes-model-0"
    assert [(made["option"], made["after"]) for made in told["set"]["changes"]] == [("mode", "ent")]
    assert told["reconcile"] == {"project": 1, "repaired": {"labels": 2}}
    assert told["export"]["rows"] == sum(1 for _ in (tmp_path / "set.csv").open()) - 1 > 0
    assert told["disconnect"]["connected"] is False


def test_people_see_the_same_as_tables(iwes: Iwes, store: Store) -> None:
    a_judged_project(store)
    text = iwes("estimate --project 1").said
    for said in ("digits 30 tasks, 3 of them labelled, 1 skipped", "iwes-model-0, by round 1", "1 missing, 1 of them"):
        assert said in text
    assert "Class balance of the whole pool" in text
    assert "too few labels: 3 of this class" in text
    assert "100.0% (" in iwes("status").said


@pytest.mark.slow
def test_doctor_tells_programs_what_is_missing_and_ends_with_one(iwes: Iwes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IWES_DEVICE", "abacus")
    outcome = iwes("doctor --json")
    told = json.loads(outcome.out)
    assert (outcome.code, told["sound"]) == (1, False)
    (bad,) = [finding for finding in told["findings"] if finding["subject"] == "device"]
    assert "abacus" in bad["said"]
    assert "small-cnn" in {network["name"] for network in told["networks"]}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_this_command(iwes: Iwes, shell: str) -> None:
    outcome = iwes(f"completion {shell}")
    assert outcome.code == 0
    assert f"_IWES_COMPLETE={shell}_complete" in outcome.out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("iwes est", {"estimate"}),
        ("iwes estimate --ta", {"--target"}),
        ("iwes set --mode d", {"dis"}),
        ("iwes export --format p", {"parquet"}),
    ],
)
def test_a_shell_completes_commands_options_and_values(words: str, completed: set[str]) -> None:
    asked = {"_IWES_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command_line = [sys.executable, "-c", "from backend.cli import main; main()"]
    done = subprocess.run(command_line, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert {line.split(",")[1] for line in done.stdout.split()} == completed


def test_a_command_is_found_where_the_tour_says() -> None:
    context = click.Context(cli)
    assert [cli.get_command(context, name).name for name in NAMES] == NAMES
    assert set(tour.MODULES) < set(NAMES)
