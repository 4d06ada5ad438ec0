"""A million rows out of the store, next to the same rows written by the format's own library.

`python -m benchmarks.exports`. "Directly" means: the very same rows, already in memory as dicts with the columns of the
export, written in the plainest way by `json`, `csv` and `pyarrow`: one `json.dumps` per line, a `csv.DictWriter` (lists
and data made text first), `pyarrow.Table.from_pylist` by row groups of the same size. It reads no database, takes no
digest, counts nothing, guards against no formula and writes no manifest; the clock stands still while the next few
thousand dicts are made. Measured in turns in one run: directly, from the store to a file, and over HTTP from a real web
server to a client that throws away what it reads. Of the first two the processor's time is measured besides, as other
work on the machine does not count in it. Memory is that of the process that exports, at its peak, over what it had when
it was ready and idle.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import requests

from backend.admin_token import admin_token
from backend.embedded.ports import any_free
from backend.exports.export import Writing, export
from backend.exports.record import Record
from backend.exports.tables import schema
from backend.exports.wish import Format, Wish
from iwes.training_set.columns import COLUMNS
from jobs.settings import Settings
from jobs.workplace import workplace
from store import projects
from store.database import Store
from store.tables import Draw, Label, Project, Round, RoundState, Task

FORMATS = (Format.JSONL, Format.CSV, Format.PARQUET)
ROUNDS = 20
BULK = 50_000
SERVE = "from backend.cli import main; main()"
CHANCES = {"cap": 2.0, "floor": 0.05, "reserve": 0.5, "sharpness": 1.0}
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = ("created", "updated")

Write = Callable[[list[Record]], None]


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.exports", description=__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000, help="rows of the set (1,000,000)")
    asked.add_argument("--repeats", type=int, default=1, help="of each measurement (1); the best counts")
    asked.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked.add_argument("--json", type=Path, help="where to keep the figures")
    given = asked.parse_args()
    if given.child:
        _child(*given.child)
        return
    with TemporaryDirectory(prefix="iwes-benchmark-") as folder:
        settings = Settings.from_env({"IWES_HOME": folder, "IWES_PORT": str(any_free())})
        began = time.perf_counter()
        with workplace(settings) as place:
            project_id = fill(place.store, given.rows)
        say(f"a store of {given.rows:,} rows, made in {time.perf_counter() - began:.0f} s")
        figures = measure(settings, project_id, given.repeats, Path(folder))
    print(table(figures))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


def measure(settings: Settings, project_id: int, repeats: int, folder: Path) -> dict[str, dict[str, float]]:
    figures: dict[str, dict[str, float]] = {}
    with serving(settings) as server:
        for kind in FORMATS:
            tries = [_once(settings, project_id, kind, folder) for _ in range(repeats)]
            best = {name: min(found[name] for found in tries) for name in tries[0]}
            best["peak"], best["server peak"] = max(found["peak"] for found in tries), server()
            figures[kind] = best
            say(f"{kind}: {best}")
    return figures


def _once(settings: Settings, project_id: int, kind: Format, folder: Path) -> dict[str, float]:
    direct, direct_cpu = directly(kind, records(settings, project_id), folder / "direct")
    file, file_cpu, peak = in_a_child(settings, project_id, kind, folder / f"set{kind.suffix}")
    http, first = download(settings, project_id, kind)
    kept, _ = download(settings, project_id, kind)
    for path in settings.exports_folder.iterdir():
        path.unlink()
    times = {"direct": direct, "direct, CPU": direct_cpu, "file": file, "file, CPU": file_cpu, "http": http}
    return times | {"first byte": first, "kept": kept, "peak": peak}


def fill(store: Store, rows: int) -> int:
    """A project whose every task was drawn and labelled, in twenty rounds; inserted in bulk."""
    with store.write() as session:
        names = ("title", "token", "secret", "backend_url", "control", "target")
        project = Project(
            **dict.fromkeys(names, "benchmark"),
            **{"studio_url": "http://studio.test", "studio_id": 1, "field": "image", "network": "small-cnn"},
            **{"classes": [f"class {n}" for n in range(10)], "seed_size": rows // ROUNDS, "k": rows // ROUNDS},
            **{"rng_seed": 1, "connected": False, **CHANCES},
        )
        session.add(project)
        session.flush()
        size = -(-rows // ROUNDS)
        for number in range(ROUNDS):
            sizes = {"wanted": size, "batch_size": size, "pool_size": rows, "examined": rows}
            round_ = Round(project_id=project.id, number=number, rule="ent", **sizes, **CHANCES)
            round_.state, round_.drawn_at = RoundState.TRAINED, MOMENT + timedelta(hours=number)
            round_.model_version = f"iwes-model-{number - 1}" if number else None
            session.add(round_)
        session.flush()
        for start in range(0, rows, BULK):
            ids = range(start + 1, min(start + BULK, rows) + 1)
            session.execute(Task.__table__.insert(), [_task(project.id, n) for n in ids])
            session.execute(Draw.__table__.insert(), [_draw(n, (n - 1) // size + 1, (n - 1) % size) for n in ids])
            session.execute(Label.__table__.insert(), [_label(project.id, n, (n - 1) // size) for n in ids])
    return project.id


def _task(project_id: int, n: int) -> dict[str, Any]:
    weights = {"al_round": 1, "al_weight": 1.618, "al_probability": 0.618, "al_inclusion": 0.618}
    data = {"image": f"/data/local-files/?d=photos/{n:07}.jpg", "camera": f"north {n % 7}", "taken": "2025-07-01 12:00"}
    return {"id": n, "project_id": project_id, "studio_id": n, "data": data | weights, "gone": False}


def _draw(n: int, round_id: int, rank: int) -> dict[str, Any]:
    p = 0.05 + 0.95 * ((n * 7919) % 10_007) / 10_007
    chances = {"score": p, "probability": p, "weight": min(1 / p, 2.0), "inclusion": p}
    ids = {"id": n, "round_id": round_id, "task_id": n}
    return ids | {"rank": rank, "reserve": False, "position": rank, "passes": 0} | chances


def _label(project_id: int, n: int, number: int) -> dict[str, Any]:
    made = MOMENT + timedelta(hours=number, seconds=n % 3000, microseconds=n % 1000)
    said = {"class_name": f"class {n % 10}", "skipped": False, "ground_truth": False, "annotator": n % 5 + 1}
    ids = {"id": n, "project_id": project_id, "annotation_id": n, "task_id": n, "draw_id": n, "round_number": number}
    return ids | said | {"created_at": made, "updated_at": made, "deleted": False, "imported": False}


def records(settings: Settings, project_id: int) -> Iterator[list[Record]]:
    """The rows as they are written, so many at a time as the export has them."""
    with workplace(settings) as place, place.store.snapshot() as session:
        for some in Writing(place, session, projects.by_id(session, project_id), Wish()).lines():
            yield [json.loads(line) for line in some.json.splitlines()]


def directly(kind: Format, batches: Iterable[list[Record]], path: Path) -> tuple[float, float]:
    """Seconds, and those of the processor, that the writing takes; the making of the rows is not counted."""
    seconds = busy = 0.0
    with _DIRECT[kind](path) as write:
        for records in batches:
            if kind is Format.PARQUET:
                times = ("created", "updated")
                records = [
                    record | {name: datetime.fromisoformat(record[name]) for name in times} for record in records
                ]
            began, was_busy = time.perf_counter(), time.process_time()
            write(records)
            seconds, busy = seconds + time.perf_counter() - began, busy + time.process_time() - was_busy
    return seconds, busy


@contextmanager
def _json_directly(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:

        def write(records: list[Record]) -> None:
            for record in records:
                file.write(json.dumps(record) + "\n")

        yield write


@contextmanager
def _csv_directly(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS))
        writer.writeheader()

        def write(records: list[Record]) -> None:
            for record in records:
                texts = {name: json.dumps(record[name]) for name in ("annotations", "annotators", "data")}
                writer.writerow(record | texts)

        yield write


@contextmanager
def _parquet_directly(path: Path) -> Iterator[Write]:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    kinds = schema()
    with parquet.ParquetWriter(path, kinds) as writer:

        def write(records: list[Record]) -> None:
            part = [record | {"data": json.dumps(record["data"])} for record in records]
            writer.write_table(arrow.Table.from_pylist(part, kinds))

        yield write


_DIRECT: dict[Format, Callable[[Path], AbstractContextManager[Write]]] = {
    Format.JSONL: _json_directly,
    Format.CSV: _csv_directly,
    Format.PARQUET: _parquet_directly,
}


def in_a_child(settings: Settings, project_id: int, kind: Format, out: Path) -> tuple[float, float, float]:
    """Seconds, those of the processor, and megabytes over idle, of a process that does nothing else."""
    words = [sys.executable, "-m", "benchmarks.exports", "--child", f"{project_id}:{kind}", str(out)]
    answer = subprocess.run(words, env=os.environ | settings.as_env(), capture_output=True, text=True, check=True)
    seconds, busy, peak = map(float, answer.stdout.split())
    return seconds, busy, peak


def _child(what: str, out: str) -> None:
    project_id, _, kind = what.partition(":")
    with workplace() as place:
        if kind == Format.PARQUET:
            import pyarrow.parquet  # noqa: F401 - so that idle means ready
        with place.store.read() as session:
            projects.by_id(session, int(project_id))
        idle = resident(os.getpid())
        with highest(os.getpid()) as peak:
            began, busy = time.perf_counter(), time.process_time()
            export(place, int(project_id), Wish(Format(kind)), Path(out))
            print(time.perf_counter() - began, time.process_time() - busy, peak() - idle)


@contextmanager
def serving(settings: Settings) -> Iterator[Callable[[], float]]:
    """A web server of its own; gives its peak over what it had once it had loaded all it needs, in megabytes."""
    process = subprocess.Popen([sys.executable, "-c", SERVE, "serve"], env=os.environ | settings.as_env())
    try:
        _await(f"{settings.backend_url}/openapi.json", settings)
        worker = next(iter(_children(process.pid)), process.pid)
        idle = _settled(worker)
        with highest(worker) as peak:
            yield lambda: peak() - idle
    finally:
        process.terminate()
        process.wait(30)


def _await(address: str, settings: Settings) -> None:
    for _ in range(240):
        try:
            if requests.get(address, headers=_shown(settings), timeout=5).ok:
                return
        except requests.exceptions.ConnectionError:
            pass
        time.sleep(0.25)
    raise SystemExit("the web server does not answer")


def _settled(pid: int) -> float:
    """What it has resident when that has not grown for five seconds: torch is loaded in the background."""
    had, since = 0.0, time.monotonic()
    while time.monotonic() - since < 5:
        if (has := resident(pid)) > had + 1:
            had, since = has, time.monotonic()
        time.sleep(0.2)
    return resident(pid)


def _shown(settings: Settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {admin_token(settings)}"}


def download(settings: Settings, project_id: int, kind: Format) -> tuple[float, float]:
    """Seconds to the last byte, and to the first."""
    began = time.perf_counter()
    address = f"{settings.backend_url}/projects/{project_id}/export?format={kind}"
    with requests.get(address, headers=_shown(settings), stream=True, timeout=600) as answer:
        answer.raise_for_status()
        parts = answer.iter_content(2**20)
        next(parts)
        first = time.perf_counter() - began
        for _ in parts:
            pass
    return time.perf_counter() - began, first


def resident(pid: int) -> float:
    """Megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def highest(pid: int) -> Iterator[Callable[[], float]]:
    """The most that the process had resident so far, looked at twenty times a second."""
    most, over = resident(pid), threading.Event()

    def look() -> None:
        nonlocal most
        while not over.wait(0.05):
            most = max(most, resident(pid))

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield lambda: most
    finally:
        over.set()
        watching.join()


def table(figures: dict[str, dict[str, float]]) -> str:
    heads = (
        "format",
        "directly",
        "to a file",
        "ratio",
        "of CPU",
        "peak",
        "HTTP",
        "ratio",
        "first byte",
        "kept",
        "peak",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind, found in figures.items():
        direct = found["direct"]
        cells = (
            *(kind, f"{direct:.1f} s", f"{found['file']:.1f} s", f"{found['file'] / direct:.2f}"),
            *(f"{found['file, CPU'] / found['direct, CPU']:.2f}", f"{found['peak']:.0f} MB"),
            *(f"{found['http']:.1f} s", f"{found['http'] / direct:.2f}", f"{found['first byte']:.1f} s"),
            *(f"{found['kept']:.1f} s", f"{found['server peak']:.0f} MB"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
