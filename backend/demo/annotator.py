"""A scripted annotator: asks for the next task and submits an answer, with the requests the web editor sends."""

from __future__ import annotations

import secrets
import string
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import requests

from backend.demo.label_config import CONTROL, IMAGE

IDLE_SECONDS = 0.5
REQUEST_SECONDS = 120

Truth = Callable[[Mapping[str, Any]], str]


@dataclass
class Annotator:
    """One person's "Label All Tasks"; `session` decides who that is."""

    url: str
    project: int
    session: requests.Session
    truth: Truth
    """The class of a task, from its `data`."""
    ready: Callable[[], bool] = lambda: True
    """Asked before each task; False is a break."""
    delay: float = 0.0
    """Seconds of looking at each picture."""
    given: list[int] = field(default_factory=list)
    """The tasks handed out, in order."""
    next_seconds: list[float] = field(default_factory=list)
    submit_seconds: list[float] = field(default_factory=list)
    idle_seconds: float = 0.0
    """Time spent without a task to do."""
    failure: Exception | None = None

    def run(self, stop: threading.Event, limit: int | None = None) -> None:
        """Label until told to stop or `limit` tasks are done, waiting a little whenever there are no tasks."""
        done = 0
        while not stop.is_set() and (limit is None or done < limit):
            if self._label_if_up(stop):
                done += 1
            else:
                self.idle_seconds += IDLE_SECONDS
                stop.wait(IDLE_SECONDS)

    def run_in_thread(self, stop: threading.Event) -> threading.Thread:
        thread = threading.Thread(target=self._run_safely, args=(stop,), name="annotator", daemon=True)
        thread.start()
        return thread

    def label_one(self, stop: threading.Event | None = None) -> bool:
        """Label the next task; False during a break, or if Label Studio has none."""
        task = self.next_task() if self.ready() else None
        if task is None:
            return False
        self.given.append(task["id"])
        started = datetime.now(UTC)
        (stop or threading.Event()).wait(self.delay)
        self.submit(task, self.truth(task["data"]), started)
        return True

    def _label_if_up(self, stop: threading.Event) -> bool:
        """While Label Studio is being started again there is nothing to do. Whether it has kept an answer that was on
        its way, it knows itself: if not, it hands out the same task again."""
        before = len(self.given)
        try:
            return self.label_one(stop)
        except requests.ConnectionError:
            del self.given[before:]
            return False

    def next_task(self) -> dict[str, Any] | None:
        """What "Label All Tasks" asks for, before the first task and after each submit."""
        address = f"{self.url}/api/dm/actions?id=next_task&project={self.project}"
        answer = self._post(address, {"project": str(self.project)}, self.next_seconds)
        if answer.status_code == requests.codes.not_found:
            return None
        answer.raise_for_status()
        task: dict[str, Any] = answer.json()
        return task

    def submit(self, task: Mapping[str, Any], choice: str, started: datetime) -> None:
        address = f"{self.url}/api/tasks/{task['id']}/annotations?project={self.project}"
        body = submission(self.project, task, [region(choice)], started)
        self._post(address, body, self.submit_seconds).raise_for_status()

    def _post(self, address: str, body: Mapping[str, Any], seconds: list[float]) -> requests.Response:
        began = time.perf_counter()
        answer = self.session.post(address, json=body, timeout=REQUEST_SECONDS)
        seconds.append(time.perf_counter() - began)
        return answer

    def _run_safely(self, stop: threading.Event) -> None:
        try:
            self.run(stop)
        except (requests.RequestException, LookupError) as error:
            if not stop.is_set():
                self.failure = error


def submission(
    project: int, task: Mapping[str, Any], result: list[dict[str, Any]], started: datetime
) -> dict[str, Any]:
    """What the editor posts when "Submit" is pressed."""
    predictions = task.get("predictions") or [{"id": None}]
    return {
        "lead_time": (datetime.now(UTC) - started).total_seconds(),
        "result": result,
        "draft_id": 0,
        "parent_prediction": predictions[0]["id"],
        "parent_annotation": None,
        "started_at": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "unique_id": str(uuid.uuid4()),
        "project": str(project),
    }


def region(choice: str) -> dict[str, Any]:
    region_id = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(10))
    return {
        "value": {"choices": [choice]},
        "id": region_id,
        "from_name": CONTROL,
        "to_name": IMAGE,
        "type": "choices",
        "origin": "manual",
    }
