"""The scripted annotator while Label Studio is being started again."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import requests

from backend.demo.annotator import Annotator
from backend.embedded.ports import any_free


def annotator(url: str) -> Annotator:
    return Annotator(url, 1, requests.Session(), lambda data: "7")


def test_a_server_that_is_away_is_waited_for_and_no_failure() -> None:
    person = annotator(f"http://127.0.0.1:{any_free()}")
    stop = threading.Event()
    thread = person.run_in_thread(stop)
    thread.join(0.2)
    assert thread.is_alive()
    stop.set()
    thread.join(10)
    assert person.failure is None
    assert person.given == []


def test_a_task_whose_answer_was_lost_on_the_way_does_not_count_as_given() -> None:
    """It may be handed out again; Label Studio alone knows whether it has kept the answer."""

    class KilledAtTheSubmit(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if "next_task" not in self.path:
                self.close_connection = True
                self.connection.close()
                stop.set()
                return
            body = b'{"id": 5, "data": {}, "predictions": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    stop = threading.Event()
    with HTTPServer(("127.0.0.1", 0), KilledAtTheSubmit) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        person = annotator(f"http://127.0.0.1:{server.server_port}")
        person.run(stop)
        server.shutdown()
    assert person.failure is None
    assert person.given == []
