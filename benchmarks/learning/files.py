"""A server that plays Label Studio's part of handing out images under /data/."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Content = Callable[[int], bytes]


def address(number: int) -> str:
    return f"/data/{number}"


@contextmanager
def serving(content: Content, remembered: Path) -> Iterator[str]:
    """The address of a server on this machine whose file `/data/<number>` has the content of that number.

    Its port is kept in a file and taken again where it is free: images are known by their whole address.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: apart, each answer waits for the other side to acknowledge

        def do_GET(self) -> None:
            body = content(int(self.path.rsplit("/", 1)[1]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True  # connections that are kept open must not keep the server from closing

    try:
        server = Server(("127.0.0.1", int(remembered.read_text())), Handler)
    except (OSError, ValueError):
        server = Server(("127.0.0.1", 0), Handler)
        remembered.write_text(str(server.server_port))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
