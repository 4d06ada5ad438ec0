"""One run: a Label Studio, a real `iwes up`, a lossy relay between them, annotators, and a killer among them all."""

from __future__ import annotations

import os
import random
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backend.demo import watch
from backend.demo.members import sign_up
from backend.embedded.label_studio import LabelStudio, await_label_studio, start_label_studio
from backend.embedded.ports import any_free
from backend.embedded.process import Process, Stack
from backend.embedded.studio_template import DATABASE, copy_template, migrated_template
from backend.embedded.supervision import Supervisor
from backend.up import START_SECONDS
from jobs.connect import Options, connect
from jobs.loop import due
from jobs.settings import Settings
from jobs.workplace import Workplace, workplace
from store import projects, rounds
from store.tables import Project, RoundState, now
from tests.faults import studio_side, verdict
from tests.faults.annotator import Book, Person
from tests.faults.killer import KINDS, Killer, Scene
from tests.faults.processes import Seen, writing_to
from tests.faults.relay import Relay
from tests.faults.takeover import Takeovers
from tests.live import DIGITS, EXECUTABLE, ROOT, Pool, make_pool, write_digits

LOOK_SECONDS = 0.25
TELL_SECONDS = 20.0
STALL_SECONDS = 300.0
SETTLE_SECONDS = 300.0
RECONCILE_SECONDS = 15


@dataclass(frozen=True)
class Wanted:
    labels: int = 1000
    kills: int = 48
    k: int = 50
    seed: int = 1
    annotators: int = 2
    gap: float = 14.0
    """Seconds between two kills, in the middle."""


@dataclass
class Outcome:
    wanted: Wanted
    kills: dict[str, int]
    webhooks: dict[str, int]
    deeds: dict[str, int]
    refused: list[str]
    slowest: dict[str, float]
    takeovers: list[float]
    rounds: int
    models: int
    trainings: int
    """How often a training ran to its end: more often than there are models only where one was killed right after."""
    by_webhook: int
    by_reconcile: int
    manual: int
    left_out: int
    miscounted: int
    restarts: int
    labelling_seconds: float
    settle_seconds: float | None
    """Until the loop was at rest and both sides agreed; None if that did not come about."""
    checks: list[verdict.Check] = field(default_factory=list)

    @property
    def broken(self) -> list[verdict.Check]:
        return [check for check in self.checks if check.broken]


class Stalled(RuntimeError):
    """No label has come for a long time; the message says where the loop stands."""


def run(folder: Path, wanted: Wanted, say: Callable[[str], None] = print) -> Outcome:
    """Call it from the main thread: only that one may start children."""
    relay = Relay("", wanted.seed)
    try:
        with Stack() as stack:
            return Chaos(folder, wanted, say, relay, stack).run()
    finally:
        relay.close()


class Chaos:
    def __init__(self, folder: Path, wanted: Wanted, say: Callable[[str], None], relay: Relay, stack: Stack) -> None:
        self._folder = folder.resolve()
        self._wanted = wanted
        self._say = say
        self._relay = relay
        self._stack = stack
        self._restarts = 0
        self._supervisor = Supervisor(stack, self._restarted)
        self._book = Book()
        self._random = random.Random(wanted.seed)  # noqa: S311
        env = {"IWES_HOME": str(self._folder / "home"), "IWES_PORT": str(any_free()), "IWES_BACKEND_URL": relay.url}
        self._settings = Settings.from_env(env | {"IWES_RECONCILE_SECONDS": str(RECONCILE_SECONDS)})
        relay.target = f"http://127.0.0.1:{self._settings.port}"

    def run(self) -> Outcome:
        studio, pool = self._start()
        with workplace(self._settings) as place:
            wanted = self._wanted
            options = Options(k=wanted.k, seed_size=wanted.k, network="small-cnn", rng_seed=wanted.seed)
            project = connect(place, studio.url, studio.token, pool.id, options).project
            people = self._people(place, project, studio, pool)
            takeovers = Takeovers(place, project.id)
            killer = self._killer(takeovers)
            self._relay.faulty.set()
            self._say(f"connected; {wanted.annotators} annotators begin, {wanted.kills} kills are to come")
            began = time.monotonic()
            threads = [one.start() for one in (*people, takeovers, killer)]
            try:
                self._label(place, project, people, killer, takeovers)
            finally:
                for one in (killer, *people):
                    one.stop.set()
                self._join(threads, takeovers)
            labelled = time.monotonic()
            settled = self._settle(place, project, pool)
            return self._outcome(place, project, pool, killer, takeovers, labelled - began, settled)

    def _start(self) -> tuple[LabelStudio, Pool]:
        studio = LabelStudio(
            executable=EXECUTABLE,
            data=self._folder / "label-studio",
            port=any_free(),
            files_root=self._folder / "files",
            email="owner@example.com",
            password=secrets.token_urlsafe(9),
            token=secrets.token_hex(20),
        )
        copy_template(migrated_template(EXECUTABLE, ROOT / ".cache" / "label-studio"), studio.data)
        # Half as many again as are to be labelled: a draw needs something to choose from until the end.
        truth = write_digits(studio.files_root / "digits", min(5000, self._wanted.labels * 3 // 2 + 4 * self._wanted.k))
        server = start_label_studio(self._stack, studio, self._studio_log)
        self._stack.start(self._up())
        await_label_studio(server, studio)
        self._up_log_says("the backend listens on")
        return studio, make_pool(studio, truth)

    @property
    def _studio_log(self) -> Path:
        return self._folder / "label-studio.log"

    def _up(self) -> Process:
        argv = [sys.executable, "-c", "from backend.cli import main; main()", "up"]
        env = {**os.environ, **self._settings.as_env(), "OMP_NUM_THREADS": "1", "NO_PROXY": "127.0.0.1"}
        return Process("up", argv, self._settings.home / "logs" / "up.log", env)

    def _up_log_says(self, words: str) -> None:
        (up,) = [process for process in self._stack.processes if process.name == "up"]
        up.wait_until(lambda: words in up.log_tail(1000), 2 * START_SECONDS, "the backend was up")

    def _people(self, place: Workplace, project: Project, studio: LabelStudio, pool: Pool) -> list[Person]:
        """Past the end of its queue Label Studio serves tasks at random; people who see that take a break."""

        def ready() -> bool:
            return bool(watch.queued(place, project.id) - self._book.answered())

        return [
            Person(
                name=f"annotator-{number}",
                url=studio.url,
                project=pool.id,
                session=sign_up(studio.url, pool.session, f"annotator-{number}@example.com", secrets.token_hex(8)),
                truth=pool.class_of,
                classes=DIGITS,
                book=self._book,
                ready=ready,
                seed=self._random.randrange(2**31),
            )
            for number in range(self._wanted.annotators)
        ]

    def _killer(self, takeovers: Takeovers) -> Killer:
        scene = Scene(self._settings.home.resolve(), self._studio_log)
        trainer, redis = (self._settings.home / "logs" / f"{name}.log" for name in ("worker-gpu", "redis"))

        def before(victims: list[Seen]) -> None:
            dying = {victim.pid for victim in victims}
            if dying & {one.pid for one in writing_to(trainer) if one.leads or one.is_horse}:
                takeovers.trainer_killed()
            if dying & {one.pid for one in writing_to(redis)}:
                takeovers.redis_killed()

        return Killer(
            scene=scene,
            wanted=self._wanted.kills,
            seed=self._random.randrange(2**31),
            gap=self._wanted.gap,
            pace=lambda: min(1.0, self._book.counts["labels"] / self._wanted.labels),
            before=before,
            after=lambda kind: self._say(f"killed — {kind}"),
        )

    def _restarted(self, line: str) -> None:
        self._restarts += 1
        self._say(line)

    def _label(
        self, place: Workplace, project: Project, people: list[Person], killer: Killer, takeovers: Takeovers
    ) -> None:
        began = told = moved = time.monotonic()
        seen = 0
        while self._book.counts["labels"] < self._wanted.labels or killer.done < self._wanted.kills:
            self._supervisor.look()
            moment, labels = time.monotonic(), self._book.counts["labels"]
            if labels != seen:
                seen, moved = labels, moment
            for person in people:
                if person.failure is not None:
                    raise person.failure
            where = self._where(place, project, takeovers) if moment - told > TELL_SECONDS else ""
            if where:
                told = moment
                self._say(f"{moment - began:5.0f} s  {labels} labels, {killer.done} kills; {where}")
            if moment - moved > STALL_SECONDS:
                raise Stalled(f"no label for {STALL_SECONDS:.0f} s: {self._where(place, project, takeovers)}")
            time.sleep(LOOK_SECONDS)

    def _where(self, place: Workplace, project: Project, takeovers: Takeovers) -> str:
        now_ = watch.look(place, project.id, {})
        waits = takeovers.waiting
        return (
            f"round {now_.number} {now_.state}, {now_.labels} of {now_.wanted}"
            + (f", due {now_.due} ({now_.job})" if now_.due else "")
            + (f", a killed training waits for {waits:.0f} s" if waits is not None else "")
        )

    def _join(self, threads: list[threading.Thread], takeovers: Takeovers) -> None:
        """Annotators finish what they have in hand, for which Label Studio may have to come back first; and a killed
        training is watched until it is taken over."""
        *others, watching, _killer = threads
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline and (
            any(thread.is_alive() for thread in others) or takeovers.waiting is not None
        ):
            self._supervisor.look()
            time.sleep(LOOK_SECONDS)
        takeovers.stop.set()
        watching.join(10)

    def _settle(self, place: Workplace, project: Project, pool: Pool) -> float | None:
        """By itself: nobody asks for a reconciliation. Two of them have to pass, so that the last word is told."""
        began, since, passed = time.monotonic(), now(), set()
        while time.monotonic() - began < SETTLE_SECONDS:
            self._supervisor.look()
            time.sleep(LOOK_SECONDS)
            with place.store.read() as session:
                stored = projects.by_id(session, project.id)
                last = rounds.latest(session, stored)
                at_rest = not due(session, stored) and last is not None and last.state != RoundState.DRAWN
            if stored.reconciled_at is not None and stored.reconciled_at > since:
                passed.add(stored.reconciled_at)
            if len(passed) >= 2 and at_rest and not self._judge(place, project, pool)[1].broken:
                return time.monotonic() - began
        return None

    def _judge(self, place: Workplace, project: Project, pool: Pool) -> list[verdict.Check]:
        store, studio = self._both_sides(place, project, pool)
        return verdict.judge(store, studio, self._book.entries)

    def _both_sides(
        self, place: Workplace, project: Project, pool: Pool
    ) -> tuple[verdict.StoreSide, studio_side.StudioSide]:
        return (
            verdict.StoreSide.read(place, project.id),
            studio_side.read(self._folder / "label-studio" / DATABASE, pool.id),
        )

    def _outcome(
        self,
        place: Workplace,
        project: Project,
        pool: Pool,
        killer: Killer,
        takeovers: Takeovers,
        labelling: float,
        settled: float | None,
    ) -> Outcome:
        store, studio = self._both_sides(place, project, pool)
        made = set(studio.annotations) | {label.annotation_id for label in store.labels}
        checks = verdict.judge(store, studio, self._book.entries)
        slow = [f"{seconds:.0f} s" for seconds in takeovers.seconds if seconds >= 90]
        slow += ["one was never taken over"] if takeovers.waiting is not None else []
        checks.append(verdict.Check("a killed training is taken over within 90 s", slow))
        checks.append(verdict.Check("the loop came to rest by itself", [] if settled is not None else ["it did not"]))
        few = [kind for kind in KINDS if killer.kills[kind] < self._wanted.kills // len(KINDS)]
        checks.append(verdict.Check("every kind of kill was hit as often as planned", few))
        up_log = (self._settings.home / "logs" / "up.log").read_text()
        return Outcome(
            wanted=self._wanted,
            kills=dict(killer.kills),
            webhooks=dict(self._relay.counts),
            deeds=dict(self._book.counts),
            refused=list(self._book.refused),
            slowest=dict(self._book.seconds),
            takeovers=list(takeovers.seconds),
            rounds=len(store.rounds),
            models=len(store.models),
            by_webhook=len(made & self._relay.told),
            by_reconcile=len(made - self._relay.told),
            trainings=_trained_to_the_end(self._settings.home / "logs" / "worker-gpu.log"),
            manual=sum(label.draw_id is None for label in store.live),
            left_out=verdict.left_out(store),
            miscounted=studio.miscounted,
            restarts=self._restarts + up_log.count("; it is started again in"),
            labelling_seconds=labelling,
            settle_seconds=settled,
            checks=checks,
        )


def _trained_to_the_end(log: Path) -> int:
    return len(re.findall(r"round \d+: trained on", log.read_text()))
