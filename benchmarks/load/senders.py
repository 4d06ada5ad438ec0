"""The senders: one light process with many connections, so that what is measured is the server and not its clients.

`python -m benchmarks.load.senders` reads an order from standard input and writes what came of it.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from errno import EINPROGRESS

from benchmarks.load.order import OK, Order, Outcome

RECEIVED_AT_ONCE = 65_536
ANSWER_ENDS = b"\r\n\r\n"
LENGTH = b"content-length:"
CHECK_SECONDS = 0.25
"""How often patience is looked at."""


def send(order: Order) -> Outcome:
    """Carries out the order in a process of its own."""
    run = [sys.executable, "-m", "benchmarks.load.senders"]
    done = subprocess.run(run, input=json.dumps(order.as_dict()), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the senders failed:\n{done.stderr}")
    return Outcome.from_dict(json.loads(done.stdout))


class Sender:
    """One connection, and the webhook whose answer it waits for."""

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.number = -1
        self.due = 0.0
        self.sent_at = 0.0
        self.request = b""
        self.received = b""
        self.waiting = False

    def status(self) -> str | None:
        """The answer's, once all of it is there."""
        head, found, body = self.received.partition(ANSWER_ENDS)
        if not found:
            return None
        lowered = head.lower()
        start = lowered.find(LENGTH)
        if start >= 0:
            start += len(LENGTH)
            end = lowered.find(b"\r", start)
            if len(body) < int(lowered[start : end if end >= 0 else None]):
                return None
        return head[9:12].decode()


class Senders:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.outcome = Outcome()
        self.selector = selectors.DefaultSelector()
        self.idle = deque(Sender() for _ in range(order.connections))
        self.busy: set[Sender] = set()
        self.began = time.perf_counter()
        self.ends = self.began + order.seconds
        self.looked = self.began

    def run(self) -> Outcome:
        order, outcome = self.order, self.outcome
        while (more := self._is_more()) or self.busy:
            while more and self.idle and (due := self._due()) <= time.perf_counter():
                self._send(due)
                more = self._is_more()
            for key, events in self.selector.select(self._pause(more)):
                self._heard(key.data, events)
            self._give_up_on_silent()
        outcome.unsent = max(0, round(order.seconds * order.rate) - outcome.sent) if order.rate else 0
        outcome.cpu_seconds = time.process_time()
        return outcome

    def _is_more(self) -> bool:
        """Webhooks that were due in time but found every sender busy are sent later, up to as long again."""
        if self.outcome.sent >= self.order.at_most:
            return False
        if self.order.rate is None:
            return time.perf_counter() < self.ends
        return self._due() < self.ends and time.perf_counter() < self.ends + self.order.seconds

    def _due(self) -> float:
        """When the next webhook is to be sent."""
        if self.order.rate is None:
            return time.perf_counter()
        return self.began + self.outcome.sent / self.order.rate

    def _pause(self, more: bool) -> float:
        """How long there is nothing to do but to listen."""
        if more and self.idle:
            return max(0.0, self._due() - time.perf_counter())
        return CHECK_SECONDS

    def _send(self, due: float) -> None:
        sender = self.idle.popleft()
        sender.number, sender.due = self.outcome.sent, due
        sender.request = self.order.webhooks.request(sender.number)
        sender.received, sender.waiting = b"", True
        sender.sent_at = time.perf_counter()
        self.outcome.sent += 1
        self.busy.add(sender)
        try:
            if sender.socket is None:
                sender.socket = self._connect(sender)
            self._write(sender)
        except OSError:
            self._over(sender, "dropped")

    def _connect(self, sender: Sender) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        failed = made.connect_ex(("127.0.0.1", self.order.port))
        if failed not in (0, EINPROGRESS):
            made.close()
            raise OSError(failed, "no connection")
        self.selector.register(made, selectors.EVENT_READ, sender)
        return made

    def _write(self, sender: Sender) -> None:
        """Within one machine a connection stands before `connect` returns; if not, the rest waits until it does."""
        assert sender.socket is not None  # noqa: S101
        with suppress(BlockingIOError):
            sender.request = sender.request[sender.socket.send(sender.request) :]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if sender.request else 0)
        if self.selector.get_key(sender.socket).events != wanted:
            self.selector.modify(sender.socket, wanted, sender)

    def _heard(self, sender: Sender, events: int) -> None:
        if sender.socket is None:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._write(sender)
            if not events & selectors.EVENT_READ:
                return
            got = sender.socket.recv(RECEIVED_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if not got:
            self._over(sender, "dropped")
            return
        sender.received += got
        if (status := sender.status()) is not None:
            self._over(sender, status)

    def _over(self, sender: Sender, status: str) -> None:
        """The webhook is answered or never will be. A connection that ended while nobody used it is only replaced."""
        if sender.socket is not None and (not self.order.keep_alive or status in ("dropped", "silent")):
            self.selector.unregister(sender.socket)
            sender.socket.close()
            sender.socket = None
        if not sender.waiting:
            return
        sender.waiting = False
        self.busy.discard(sender)
        self.idle.append(sender)
        self.outcome.answers[status] = self.outcome.answers.get(status, 0) + 1
        if status in OK:
            now = time.perf_counter()
            self.outcome.seconds = now - self.began
            self.outcome.taken.append(sender.number)
            self.outcome.latencies.append(now - sender.due)

    def _give_up_on_silent(self) -> None:
        now = time.perf_counter()
        if now - self.looked < CHECK_SECONDS:
            return
        self.looked = now
        for sender in [sender for sender in self.busy if now - sender.sent_at > self.order.patience]:
            self._over(sender, "silent")


if __name__ == "__main__":
    json.dump(Senders(Order.from_dict(json.load(sys.stdin))).run().as_dict(), sys.stdout)
