"""The demo itself: prepares, starts, connects, and stays until it is told to stop."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rich.console import Console
from rich.panel import Panel

from backend.admin_token import sign_in_hint
from backend.demo import watch
from backend.demo.annotator import Annotator
from backend.demo.auto import AutoRun
from backend.demo.digits import Digits
from backend.demo.home import Home
from backend.demo.members import token_session
from backend.demo.options import DemoOptions
from backend.demo.own_images import DataError, OwnImages
from backend.demo.pictures import Pictures, prepare
from backend.demo.project import DemoProject, truth_of
from backend.demo.screen import Screen
from backend.demo.state import State
from backend.demo.steps import Steps
from backend.embedded.label_studio import LabelStudio, await_label_studio, start_label_studio, version_at
from backend.embedded.ports import PortBusy, first_free, is_free
from backend.embedded.process import Stack
from backend.embedded.studio_template import copy_template, migrated_template
from backend.embedded.supervision import Supervisor
from backend.up import start_backend
from jobs.workplace import Workplace, workplace
from store import projects
from store.tables import Project

POLL_SECONDS = 0.5


class Demo:
    def __init__(self, options: DemoOptions, console: Console) -> None:
        self._options = options
        self._console = console
        self._steps = Steps(console)
        self._home = Home(options.home)

    def run(self) -> None:
        source = self._source()
        with self._home.alone():
            state = self._state()
            studio = self._home.label_studio(state, self._options.studio)
            with self._steps.step("Label Studio's database"):
                copy_template(migrated_template(studio.executable, self._options.template), studio.data)
            with Stack() as stack:
                self._start_and_follow(stack, source, state, studio)

    def _start_and_follow(self, stack: Stack, source: Digits | OwnImages, state: State, studio: LabelStudio) -> None:
        """The servers come up and the pictures are drawn side by side."""
        server = start_label_studio(stack, studio, self._home.logs / "label-studio.log")
        settings = self._home.settings(state)
        with ThreadPoolExecutor(1) as aside:
            drawn = aside.submit(prepare, source, self._home.pictures, self._show_drawn)
            with self._steps.step("Redis, backend and worker") as step:
                start_backend(stack, settings)
                step.result = settings.backend_url
            with self._steps.step("Pictures") as step:
                pictures = drawn.result()
                counts = f"{len(pictures.pool)} to label, {len(pictures.held_out)} held out"
                step.result = f"{counts}, {len(pictures.classes)} classes"
        with self._steps.step("Label Studio") as step:
            await_label_studio(server, studio)
            step.result = f"{version_at(studio.url)} at {studio.url}"
        stack.callback(self._console.print, "Stopping …")
        demo = DemoProject(studio.url, token_session(state.token), studio.files_root)
        studio_id = self._project(demo, pictures, state)
        with workplace(settings) as place:
            project = self._connect(place, studio, studio_id)
            self._console.print(self._panel(studio, project), soft_wrap=False)
            self._console.print(f"The dashboard: {sign_in_hint(settings)}", highlight=False, markup=False)
            supervisor = Supervisor(stack, self._say)
            if self._options.auto:
                self._follow_annotator(supervisor, place, project, demo, pictures)
            else:
                self._follow(supervisor, place, project)

    def _source(self) -> Digits | OwnImages:
        if self._options.data is None:
            return Digits()
        source = OwnImages(self._options.data, self._options.classes)
        if self._options.auto and not source.labelled:
            raise DataError("a scripted annotator needs the true labels: give DATA a folder per class")
        return source

    def _state(self) -> State:
        """The kept one, or at the first start a new one with free ports."""
        state = State.load(self._home.path) or self._new_state()
        for port in (state.studio_port, state.backend_port):
            if not is_free(port):
                raise PortBusy(
                    f"port {port}, which this demo has had since its first start, is taken by another program: "
                    "stop that program, or start a new demo with DEMO=another-folder"
                )
        return state

    def _new_state(self) -> State:
        wanted = (self._options.studio_port, self._options.backend_port)
        ports = [first_free(port) for port in wanted]
        for port, free in zip(wanted, ports, strict=True):
            if port != free:
                self._console.print(f"Port {port} is taken by another program; this demo uses {free}")
        state = State(studio_port=ports[0], backend_port=ports[1])
        state.save(self._home.path)
        return state

    def _show_drawn(self, done: int, total: int) -> None:
        self._steps.aside(f"{done} of {total} pictures")

    def _project(self, demo: DemoProject, pictures: Pictures, state: State) -> int:
        with self._steps.step("Project") as step:
            project = demo.ensure(pictures, state.projects.get(pictures.name))
            state.projects[pictures.name] = project
            state.save(self._home.path)
            step.result = f"{project}, {len(pictures.pool)} tasks"
        return project

    def _connect(self, place: Workplace, studio: LabelStudio, studio_id: int) -> Project:
        wanted = self._options.k
        with self._steps.step("Connected") as step:
            with place.store.read() as session:
                project = projects.by_address(session, studio.url, studio_id)
            if project is None or not project.connected:
                from jobs.connect import Options, connect

                options = Options(k=wanted, seed_size=max(wanted, 2), network=self._options.network)
                project = connect(place, studio.url, studio.token, studio_id, options, step.say).project
            step.result = f"{project.k} labels a round"
            if project.k != wanted:
                step.result += f", as when it was first connected (not {wanted})"
        return project

    def _panel(self, studio: LabelStudio, project: Project) -> Panel:
        todo = f"Log in, press “Label All Tasks” and label. Every {project.k} labels a model is\n"
        todo += "trained and chooses what comes next; you can go on labelling meanwhile."
        lines = [
            f"[bold]{studio.url}/projects/{project.studio_id}/data[/]",
            f"user {studio.email}   password {studio.password}",
            "",
            "A script labels from the true labels; watch the rounds below." if self._options.auto else todo,
            "Ctrl-C stops everything; the next start goes on from there.",
            f"Logs: {os.path.relpath(self._home.logs)}",
        ]
        return Panel("\n".join(lines), title="The demo runs", expand=False)

    def _say(self, line: str) -> None:
        self._console.print(line, style="yellow", markup=False)

    def _follow(self, supervisor: Supervisor, place: Workplace, project: Project) -> None:
        look = partial(watch.look, place, project.id, {})
        with Screen(self._console, table=False) as screen:
            while True:
                supervisor.look()
                screen.show(look(), {})
                time.sleep(POLL_SECONDS)

    def _follow_annotator(
        self, supervisor: Supervisor, place: Workplace, project: Project, demo: DemoProject, pictures: Pictures
    ) -> None:
        from backend.demo.accuracy import HeldOut  # brings torch too

        truth = partial(truth_of, demo.truths(pictures))
        annotator = Annotator(demo.url, project.studio_id, demo.session, truth)
        # Past the end of its queue Label Studio serves tasks at random, as if nothing had been asked for.
        annotator.ready = lambda: bool(watch.queued(place, project.id) - set(annotator.given))
        run = AutoRun(place, project, annotator, HeldOut(pictures, place.workshop).accuracy)
        with Screen(self._console, table=True) as screen:
            run.follow(self._options.rounds, partial(watch.look, place, project.id, {}), screen, supervisor.look)
