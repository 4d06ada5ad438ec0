"""The demo's project and its annotators in a real Label Studio."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from PIL import Image

from backend.demo.annotator import Annotator
from backend.demo.members import NotLetIn, log_in, sign_up, token_session
from backend.demo.own_images import OwnImages
from backend.demo.pictures import Pictures, prepare
from backend.demo.project import DemoProject, truth_of
from backend.embedded.label_studio import LabelStudio, await_label_studio, version_at
from backend.embedded.ports import PortBusy
from backend.embedded.process import Process, Stack

pytestmark = pytest.mark.studio


@pytest.fixture(scope="module")
def pictures(studio: LabelStudio, tmp_path_factory: pytest.TempPathFactory) -> Pictures:
    source = tmp_path_factory.mktemp("source")
    for name, shade in (("dark", 20), ("light", 230)):
        (source / name).mkdir()
        for number in range(10):
            Image.new("L", (16, 16), shade + number).save(source / name / f"{number}.png")
    return prepare(OwnImages(source), studio.files_root)


@pytest.fixture(scope="module")
def demo(studio: LabelStudio) -> DemoProject:
    return DemoProject(studio.url, token_session(studio.token), studio.files_root)


@pytest.fixture
def project(demo: DemoProject, pictures: Pictures) -> int:
    return demo.ensure(pictures, known=None)


def annotator(demo: DemoProject, pictures: Pictures, project: int, session: requests.Session) -> Annotator:
    truths = demo.truths(pictures)
    return Annotator(demo.url, project, session, lambda data: truth_of(truths, data))


def tasks_of(demo: DemoProject, project: int) -> list[dict[str, Any]]:
    address = f"{demo.url}/api/tasks?project={project}&page_size=100&fields=all"
    tasks: list[dict[str, Any]] = demo.session.get(address, timeout=60).json()["tasks"]
    return sorted(tasks, key=lambda task: task["id"])


def choice_of(annotation: Mapping[str, Any]) -> str:
    return str(annotation["result"][0]["value"]["choices"][0])


def test_copy_of_the_template_has_the_user_asked_for(studio: LabelStudio) -> None:
    assert version_at(studio.url) is not None
    session = log_in(studio.url, studio.email, studio.password)
    assert session.get(f"{studio.url}/api/current-user/whoami", timeout=30).json()["email"] == studio.email


def test_another_label_studio_on_the_port_is_not_taken_for_ours(studio: LabelStudio, tmp_path: Path) -> None:
    ours = replace(studio, token="0" * 40)
    process = Process("label-studio", ["sleep", "60"], tmp_path / "log")
    with Stack() as stack, pytest.raises(PortBusy, match=f"port {studio.port} is answered by another Label Studio"):
        await_label_studio(stack.start(process), ours)


def test_wrong_password_is_refused(studio: LabelStudio) -> None:
    with pytest.raises(NotLetIn, match="did not accept owner"):
        log_in(studio.url, studio.email, "not the password")


def test_pictures_of_the_pool_are_served_and_nothing_beside_them(
    demo: DemoProject, pictures: Pictures, project: int
) -> None:
    address = demo.url + tasks_of(demo, project)[0]["data"]["image"]
    assert demo.session.get(address, timeout=30).content.startswith(b"\x89PNG")
    index = f"{demo.url}/data/local-files/?d={pictures.name}/index.json"
    assert demo.session.get(index, timeout=30).status_code == requests.codes.not_found


def test_project_is_made_once(demo: DemoProject, pictures: Pictures, project: int) -> None:
    assert demo.ensure(pictures, known=project) == project
    assert len(tasks_of(demo, project)) == len(pictures.pool)
    rows = demo.session.get(f"{demo.url}/api/storages/localfiles?project={project}", timeout=30).json()
    assert len(rows) == 1


def test_project_that_was_deleted_is_made_anew(demo: DemoProject, pictures: Pictures, project: int) -> None:
    demo.session.delete(f"{demo.url}/api/projects/{project}/", timeout=60).raise_for_status()
    assert demo.ensure(pictures, known=project) != project


def test_annotator_labels_five_tasks_in_order(demo: DemoProject, pictures: Pictures, project: int) -> None:
    person = annotator(demo, pictures, project, demo.session)
    person.run(threading.Event(), limit=5)
    tasks = tasks_of(demo, project)
    assert person.given == [task["id"] for task in tasks[:5]]
    assert len(person.next_seconds) == len(person.submit_seconds) == 5
    truths = demo.truths(pictures)
    assert [choice_of(task["annotations"][0]) for task in tasks[:5]] == [
        truths[task["data"]["image"]] for task in tasks[:5]
    ]
    assert all(not task["annotations"] for task in tasks[5:])


def test_two_members_label_everything_and_wait_when_there_is_nothing_left(
    demo: DemoProject, pictures: Pictures, project: int, studio: LabelStudio
) -> None:
    """Two requests in the same instant may get the same task: Label Studio looks at its locks before it sets one."""
    second = sign_up(studio.url, demo.session, "second@example.com", "second-password-1")
    people = [annotator(demo, pictures, project, session) for session in (demo.session, second)]
    stop = threading.Event()
    threads = [person.run_in_thread(stop) for person in people]
    while not all(person.idle_seconds for person in people):
        assert all(thread.is_alive() for thread in threads)
        stop.wait(0.1)
    stop.set()
    for thread in threads:
        thread.join(30)
    given = [set(person.given) for person in people]
    assert given[0] | given[1] == {task["id"] for task in tasks_of(demo, project)}
    assert all(person.given and person.failure is None for person in people)
