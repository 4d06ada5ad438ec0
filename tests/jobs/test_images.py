"""Images are fetched once, by as many at a time as like, and a storage that is away blames no image."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jobs.images import ImageSource, NothingServed
from store.database import Store
from studio.client import Client
from tests.conftest import make_project


class Files:
    """A server of files as Label Studio is one: what it holds, and how often each was asked for."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.asked: list[str] = []
        files = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                files.asked.append(self.path)
                content = files.held.get(self.path)
                self.send_response(200 if content is not None else 404)
                self.end_headers()
                self.wfile.write(content or b"{}")

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def files() -> Iterator[Files]:
    files = Files()
    yield files
    files.server.shutdown()
    files.server.server_close()


@pytest.fixture
def source(files: Files, store: Store, tmp_path: Path) -> ImageSource:
    client = Client(f"http://127.0.0.1:{files.server.server_port}", "t" * 40)
    return ImageSource(make_project(store), client, tmp_path / "cache", 28)


def picture(side: int = 28) -> bytes:
    out = io.BytesIO()
    noise = np.random.default_rng(side).integers(0, 255, (side, side, 3), np.uint8)
    Image.fromarray(noise).save(out, "PNG")
    return out.getvalue()


def test_an_image_crosses_the_network_once(files: Files, source: ImageSource) -> None:
    files.held["/data/1.png"] = picture()
    for _ in range(3):
        assert source.load([{"image": "/data/1.png"}]).images.shape == (1, 3, 28, 28)
    assert files.asked == ["/data/1.png"]


def test_many_who_fetch_one_image_at_once_all_get_it_whole(files: Files, source: ImageSource) -> None:
    files.held["/data/big.png"] = picture(900)
    with ThreadPoolExecutor(8) as threads:
        loads = list(threads.map(lambda _: source.load([{"image": "/data/big.png"}] * 4), range(16)))
    assert all(not loaded.bad for loaded in loads)
    assert all((loaded.images == loads[0].images[0]).all() for loaded in loads)


def test_a_bad_image_is_told_by_its_place_and_the_others_are_loaded(files: Files, source: ImageSource) -> None:
    files.held |= {"/data/1.png": picture(), "/data/2.png": b"<html>", "/data/3.png": picture()}
    tasks = [{"image": f"/data/{n}.png"} for n in (1, 2, 3, 4)] + [{"image": None}, {"image": "http://elsewhere/x.png"}]
    loaded = source.load(tasks)
    assert loaded.good.tolist() == [0, 2]
    assert sorted(loaded.bad) == [1, 3, 4, 5]
    assert "holds no address" in loaded.bad[4]
    assert "not on the connected Label Studio" in loaded.bad[5]


def test_a_storage_that_is_away_is_not_the_images_fault(files: Files, source: ImageSource) -> None:
    with pytest.raises(NothingServed, match="serves none of 3 images"):
        source.load([{"image": f"/data/{n}.png"} for n in (1, 2, 3)])
