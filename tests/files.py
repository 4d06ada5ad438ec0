"""A real HTTP server of image files, as Label Studio is one, and pictures to put on it."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image


class Files:
    """What it holds by path, and what it was asked for."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.broken: set[str] = set()
        """Paths at which the server fails."""
        files = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                files.asked.append(self.path)
                content = files.held.get(self.path)
                if self.path in files.broken:
                    self.send_error(500)
                    return
                self.send_response(200 if content is not None else 404)
                self.end_headers()
                self.wfile.write(content or b"{}")

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def picture(side: int = 28, *, shade: int = 127, noise: int = 0) -> bytes:
    """A PNG of about one shade; `noise` tells one from another."""
    grain = np.random.default_rng(noise).integers(-30, 31, (side, side, 3))
    out = io.BytesIO()
    Image.fromarray(np.clip(shade + grain, 0, 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def class_folders(root: Path, count: int, names: Sequence[str] = ("dark", "grey", "light")) -> None:
    """So many pictures below the root, in a folder for each class; the classes take turns."""
    for n in range(count):
        folder = root / names[n % len(names)]
        folder.mkdir(parents=True, exist_ok=True)
        shade = 80 + 100 * (n % len(names)) // max(1, len(names) - 1)
        (folder / f"{n:04}.png").write_bytes(picture(28, shade=shade, noise=n))
