"""`python -m backend.demo` as a user runs it: to its end, stopped by Ctrl-C, started again, refused."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from backend.demo.home import DemoRuns, Home
from backend.demo.state import State
from backend.embedded.ports import any_free
from tests.live import EXECUTABLE

ROOT = Path(__file__).parents[2]
SHADES = {"dark": 20, "light": 220}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shades")
    for name, shade in SHADES.items():
        (folder / name).mkdir()
        for number in range(30):
            Image.new("L", (32, 32), shade + number % 10).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "home"


def command(home: Path, *options: object) -> list[str]:
    ports = ["--studio-port", str(any_free()), "--backend-port", str(any_free())]  # heeded at the first start
    return [sys.executable, "-m", "backend.demo", "--home", str(home), *ports, *map(str, options)]


@contextmanager
def started(home: Path, *options: object) -> Iterator[subprocess.Popen[str]]:
    """The demo at the point where it tells its address."""
    demo = subprocess.Popen(command(home, *options), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert demo.stdout is not None
        lines: list[str] = []
        while "The demo runs" not in (lines or [""])[-1]:
            line = demo.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
        yield demo
    finally:
        if demo.poll() is None:
            demo.terminate()
        demo.communicate()


def processes_with(text: str) -> list[str]:
    """Command lines and environments of the processes that mention a folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            mentions = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in mentions and folder.name != str(os.getpid()):
            found.append(mentions.decode(errors="replace")[:200])
    return found


@pytest.mark.studio
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not EXECUTABLE.exists(), reason="no Label Studio here: run `make setup`")
class TestRealDemo:
    def test_scripted_annotator_ends_by_itself_after_the_rounds_asked_for(self, home: Path, data: Path) -> None:
        options = ("--data", data, "--annotator", "auto", "--rounds", 1, "--k", 6)
        run = subprocess.run(command(home, *options), capture_output=True, text=True, cwd=ROOT, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "round 0  labels 6" in run.stdout
        assert "round 1  labels " in run.stdout
        with sqlite3.connect(home / "store.db") as store:
            undrawn = store.execute("select count(*) from label where draw_id is null").fetchone()[0]
        assert undrawn == 0
        assert processes_with(str(home)) == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signal_stops_everything_and_the_next_start_goes_on(
        self, home: Path, data: Path, number: signal.Signals
    ) -> None:
        before = State.load(home)
        with started(home, "--data", data) as demo:
            demo.send_signal(number)
            output, _ = demo.communicate(timeout=90)
        assert demo.returncode == 0
        assert "Stopped. The next start goes on from here." in output
        assert State.load(home) == before
        assert processes_with(str(home)) == []

    def test_killed_outright_it_leaves_nothing_running(self, home: Path, data: Path) -> None:
        with started(home, "--data", data) as demo:
            demo.kill()
            demo.wait()
            deadline = time.monotonic() + 60
            while processes_with(str(home)) and time.monotonic() < deadline:
                time.sleep(0.5)
        assert processes_with(str(home)) == []


@pytest.mark.slow
def test_port_kept_from_the_first_start_that_is_busy_now_is_named(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        State(studio_port=port, backend_port=any_free()).save(tmp_path)
        run = subprocess.run(command(tmp_path), capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 1
    assert f"port {port}, which this demo has had since its first start, is taken by another program" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.slow
def test_unlabelled_images_and_a_scripted_annotator_do_not_go_together(tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "one.png")
    options = ("--data", tmp_path, "--classes", "a,b", "--annotator", "auto")
    run = subprocess.run(command(tmp_path / "home", *options), capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 1
    assert "needs the true labels: give DATA a folder per class" in run.stdout


def test_second_demo_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.alone(), pytest.raises(DemoRuns, match="already runs"), home.alone():
        pass
