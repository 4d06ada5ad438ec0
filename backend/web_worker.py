"""gunicorn's worker with threads, as the backend runs it: whole webhooks are answered many at a time, by one thread.

A thread for each would spend more time on taking turns than on its webhook. So the thread that accepts connections also
reads what comes first. A webhook that is there in full goes to one other thread, the clerk, which begins all that wait,
has them stored in one transaction, and answers each. Everything else gets a thread of its own once its head is there.
Neither of the two ever waits for a client.
"""

from __future__ import annotations

import re
import selectors
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from socket import SO_RCVTIMEO, SOL_SOCKET, socket
from threading import Event, Thread
from types import FrameType

from gunicorn.http import get_parser, wsgi
from gunicorn.workers.gthread import TConn, ThreadWorker

from backend.access import ARRIVED_AT

TOGETHER = 32
TOGETHER_SECONDS = 0.05
"""The most webhooks that are begun before the first is answered, and how long that may take where the store is slow to
say who is calling: later ones would only keep the earlier waiting."""
FIRST_SECONDS = 5.0
"""How long a new connection may be silent, or its head or webhook incomplete."""
BODY_SECONDS = 30
"""How long a thread waits for the next bytes of a request's body."""
READ_AT_ONCE = 65_536
CLERK_SECONDS = 0.02
"""How long nobody is let in while the clerk works. Of the threads of a process only one runs Python at a time, and two
with much to do take turns only every few milliseconds: it is faster to let one end. A clerk that has to wait for the
store holds up the others no longer than this."""
QUIT_SECONDS = 2.0

_METHOD = re.compile(rb"[A-Z]{0,16}(?: |\Z)")
_BEGINS = b"POST /webhook HTTP/1."
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,6})(?=\r\n)", re.IGNORECASE)
_MORE_THAN_AN_ANSWER = re.compile(rb"\r\n(transfer-encoding|expect|upgrade):", re.IGNORECASE)
_TAKES_LONGER = b"START_TRAINING"


def still_to_come(heard: bytes) -> int | None:
    """How many bytes a webhook lacks of which this was heard, at least, or the head of any other request; None if it is
    for a thread of its own: another request, a large one, one that wants more than an answer, or one that others should
    not wait for."""
    head, ended, body = heard.partition(b"\r\n\r\n")
    if not ended:
        return 1 if _METHOD.match(heard) and len(heard) < READ_AT_ONCE else None
    if not heard.startswith(_BEGINS):
        return None
    length = _LENGTH.findall(head + b"\r\n")
    if len(length) != 1 or _MORE_THAN_AN_ANSWER.search(head) or _TAKES_LONGER in body:
        return None
    missing = int(length[0]) - len(body)
    return missing if missing >= 0 and int(length[0]) < READ_AT_ONCE else None


class WebWorker(ThreadWorker):  # type: ignore[misc]
    def init_process(self) -> None:
        self._webhooks: SimpleQueue[tuple[TConn, float]] = SimpleQueue()
        self._handed_over, self._clerk_rests = False, Event()
        self._clerk_rests.set()
        Thread(target=self._work, name="clerk", daemon=True).start()
        super().init_process()  # which returns when the worker has ended

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends the streams to open pages; they would be waited for until the patience is over."""
        if self.booted:
            self.wsgi.extensions["live"].close()
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        """At once, but for what the clerk has in hand: nobody sends it again."""
        self._clerk_rests.wait(QUIT_SECONDS)
        super().handle_quit(sig, frame)

    # Of the thread that accepts connections

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        super().wait_for_and_dispatch_events(timeout)
        if self._handed_over:
            self._handed_over = False
            self._clerk_rests.wait(CLERK_SECONDS)

    def accept(self, listener: socket) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):  # nobody else is there, or somebody has gone again
            for _ in range(self.worker_connections - self.nr_conns):
                client, address = listener.accept()
                self.nr_conns += 1
                conn = TConn(self.cfg, client, address, listener.getsockname())
                conn.parser, conn.initialized, conn.data_ready = get_parser(self.cfg, client, address), True, True
                if taker := self._taker(conn):
                    taker(conn)
                else:
                    self._await(conn)

    def on_pending_socket_readable(self, conn: TConn, client: socket) -> None:
        self._listen(conn, self.pending_conns)

    def on_client_socket_readable(self, conn: TConn, client: socket) -> None:
        self._listen(conn, self.keepalived_conns)

    def _listen(self, conn: TConn, silent: deque[TConn]) -> None:
        taker = self._taker(conn)
        if taker is None and silent is self.pending_conns:
            return
        self.poller.unregister(conn.sock)
        silent.remove(conn)
        if taker is None:  # the next webhook on a connection has begun, and has as long as the first had
            self._await(conn)
        else:
            taker(conn)

    def _await(self, conn: TConn) -> None:
        conn.timeout = time.monotonic() + FIRST_SECONDS
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _taker(self, conn: TConn) -> Callable[[TConn], None] | None:
        """Reads what has come; who is to have the connection now, or None while more has to come."""
        try:
            said = conn.sock.recv(READ_AT_ONCE)
        except BlockingIOError:
            return None
        except OSError:
            said = b""
        heard = conn.parser.unreader.take_buffered() + said
        conn.parser.unreader.unread(heard)
        if not heard:
            return self._drop
        missing = still_to_come(heard)
        if missing == 0:
            return self._to_clerk
        if missing is None or not said:
            return self._to_thread
        return None

    def _drop(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()

    def _to_clerk(self, conn: TConn) -> None:
        self._clerk_rests.clear()
        self._handed_over = True
        self._webhooks.put((conn, time.monotonic()))

    def _to_thread(self, conn: TConn) -> None:
        self.enqueue_req(conn)

    def _answered(self, kept: list[TConn], closed: int) -> None:
        self.nr_conns -= closed
        for conn in kept:
            super().finish_request(conn, _KEPT)

    # Of the clerk

    def _work(self) -> None:
        try:
            while True:
                self._answer_together()
        except BaseException:
            self.log.exception("the thread that answers webhooks has ended; another process takes over")
            self.alive = False
            self.method_queue.defer(lambda: None)
            raise

    def _answer_together(self) -> None:
        conn, arrived_at = self._webhooks.get()
        began_at = time.monotonic()
        kept: list[TConn] = []
        exchanges: list[Iterator[None]] = []
        with suppress(Empty):
            while True:
                exchanges.append(self._exchange(conn, arrived_at, kept))
                next(exchanges[-1], None)
                if len(exchanges) == TOGETHER or time.monotonic() > began_at + TOGETHER_SECONDS:
                    break
                conn, arrived_at = self._webhooks.get_nowait()
        for exchange in exchanges:
            next(exchange, None)
        self.method_queue.defer(self._answered, kept, len(exchanges) - len(kept))
        if self._webhooks.empty():
            self._clerk_rests.set()

    def _exchange(self, conn: TConn, arrived_at: float, kept: list[TConn]) -> Iterator[None]:
        """A request and its answer: first all until it would have to wait, then the rest. The whole request is read
        already and the socket does not block, so a client that does not read its answers is cut off, not waited for."""
        request, response, stays = None, None, False
        try:
            request = next(conn.parser)
            response, environ = wsgi.create(request, conn.sock, conn.client, conn.server, self.cfg)
            environ["wsgi.multithread"] = True
            environ[ARRIVED_AT] = arrived_at
            if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
                response.force_close()
            answer = self.wsgi(environ, response.start_response)
            yield
            try:
                for part in answer:
                    response.write(part)
            finally:
                if hasattr(answer, "close"):
                    answer.close()
            response.close()
            stays = not response.should_close() and conn.parser.finish_body()
        except OSError as error:
            self.log.debug("a webhook's answer finds nobody: %s", error)
        except Exception as error:  # of whatever kind, it is this request's alone
            if response is not None and response.headers_sent:  # a second answer would be taken for the next one's
                self.log.exception("a webhook's answer broke off")
            else:
                self.handle_error(request, conn.sock, conn.client, error)
        if stays:
            kept.append(conn)
        else:
            conn.close()

    # Of the other threads

    def handle(self, conn: TConn) -> object:
        # by the system, as gunicorn sets its own time limit back before it reads
        conn.sock.setsockopt(SOL_SOCKET, SO_RCVTIMEO, struct.pack("ll", BODY_SECONDS, 0))
        kept = super().handle(conn)
        if kept:
            return kept
        conn.close(graceful=True)
        return _CLOSED

    def finish_request(self, conn: TConn, future: Future[object]) -> None:
        if not future.cancelled() and future.exception() is None and future.result() is _CLOSED:
            self.nr_conns -= 1
        else:
            super().finish_request(conn, future)


_CLOSED = object()
"""Told by the thread that handled a request and closed its connection."""
_KEPT: Future[bool] = Future()
_KEPT.set_result(True)
