"""Fetches images over HTTP from hosts under an allowed prefix, whatever these hosts may try."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from urllib.parse import quote, urljoin

from certifi import where
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.response import HTTPResponse

from jobs.images.destination import Address, Resolve, destinations, resolve
from jobs.images.location import WEB_PORTS, Location, locate
from jobs.images.origins import Origins
from jobs.images.reasons import WHOLE_SECONDS, Away, SetAside, shown
from studio.files import MOST_BYTES

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
REDIRECTS = 3

_PART = 2**16
_TRY_LATER = {408, 429}
_HEADERS = {"User-Agent": "iwes-label-studio", "Accept": "image/*,*/*;q=0.5", "Accept-Encoding": "identity"}


class Web:
    """Safe to share between threads."""

    def __init__(
        self,
        origins: Origins,
        *,
        resolver: Resolve = resolve,
        trust: ssl.SSLContext | None = None,
        whole_seconds: float = WHOLE_SECONDS,
    ) -> None:
        self._origins = origins
        self._resolver = resolver
        self._given_trust = trust
        self._whole_seconds = whole_seconds

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """The system's certificate authorities and those that come with `requests`."""
        if self._given_trust is not None:
            return self._given_trust
        trust = ssl.create_default_context()
        trust.load_verify_locations(where())
        return trust

    def fetch(self, location: Location, prefix: Location, address: str) -> bytes:
        """The bytes behind an address that was found to be allowed by the prefix. Raises SetAside, or Away where the
        host and not the image is to blame."""
        ends = time.monotonic() + self._whole_seconds
        for _ in range(1 + REDIRECTS):
            with self._asked(location, prefix, address, ends) as answer:
                elsewhere = answer.get_redirect_location()
                if not elsewhere:
                    return _body(answer, address)
            location, prefix = self._follow(location, elsewhere, address)
        raise SetAside(f"{shown(address)} is redirected more than {REDIRECTS} times")

    def _follow(self, location: Location, elsewhere: str, address: str) -> tuple[Location, Location]:
        target = urljoin(_url(location), elsewhere)
        try:
            location = locate(target)
        except SetAside as error:
            raise SetAside(f"{shown(address)} is redirected elsewhere: {error}") from error
        prefix = self._origins.covering(location)
        if prefix is None or not location.is_web:
            raise SetAside(f"{shown(address)} is redirected to {shown(target)}, which is under no allowed prefix")
        return location, prefix

    @contextmanager
    def _asked(self, location: Location, prefix: Location, address: str, ends: float) -> Iterator[HTTPResponse]:
        """The host's answer, its body yet unread."""
        late = Away(f"{shown(address)} took longer than {self._whole_seconds:g} s")
        connection = self._connect(location, destinations(location, prefix, self._resolver), ends)
        with _cut_off(connection, ends) as cut:
            try:
                connection.request(
                    "GET", _target(location), headers=_HEADERS | {"Host": _host(location)}, preload_content=False
                )
                answer = connection.getresponse()
                _check(answer, address)
                yield answer
            except (HTTPError, http.client.HTTPException, OSError) as error:
                raise late if cut.is_set() else Away(f"{location.host} does not answer: {_words(error)}") from error
            if cut.is_set():
                raise late  # a body without a length ends like a whole one

    def _connect(self, location: Location, found: list[Address], ends: float) -> HTTPConnection:
        """To one of the addresses that were checked, by number: no name is looked up again."""
        problem: Exception = OSError("it has no address")
        for address in found:
            seconds = min(CONNECT_SECONDS, ends - time.monotonic())
            if seconds <= 0:
                raise Away(f"{location.host} does not answer within {self._whole_seconds:g} s")
            connection = self._connection(location, str(address), seconds)
            try:
                connection.connect()
            except (HTTPError, OSError) as error:
                connection.close()
                problem = error
                continue
            connection.timeout = READ_SECONDS
            return connection
        raise Away(f"{location.host} does not answer: {_words(problem)}") from problem

    def _connection(self, location: Location, number: str, seconds: float) -> HTTPConnection:
        if location.scheme == "http":
            return HTTPConnection(number, location.port, timeout=seconds)
        return HTTPSConnection(
            number,
            location.port,
            timeout=seconds,
            ssl_context=self._trust,
            server_hostname=location.host,  # the name asked for, and the one the certificate must have
        )


@contextmanager
def _cut_off(connection: HTTPConnection, ends: float) -> Iterator[threading.Event]:
    """Breaks the connection when time is up: a server that sends a byte now and then never meets a read's own limit."""
    cut = threading.Event()
    line = connection.sock

    def cut_off() -> None:
        cut.set()
        with suppress(OSError):
            socket.socket.shutdown(line, socket.SHUT_RDWR)  # of an encrypted line, too, only this

    watch = threading.Timer(max(0.0, ends - time.monotonic()), cut_off)
    watch.daemon = True
    watch.start()
    try:
        yield cut
    finally:
        watch.cancel()
        connection.close()


def _check(answer: HTTPResponse, address: str) -> None:
    if answer.status >= 500 or answer.status in _TRY_LATER:
        raise Away(f"{shown(address)} is not served now (HTTP {answer.status})")
    if answer.get_redirect_location():
        return
    if answer.status != 200:
        raise SetAside(f"{shown(address)} is not served (HTTP {answer.status})")
    coding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise SetAside(f"{shown(address)} comes compressed ({coding}), which was not asked for")


def _body(answer: HTTPResponse, address: str) -> bytes:
    parts, size = [], 0
    while part := answer.read(_PART, decode_content=False):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise SetAside(f"{shown(address)} has more than {MOST_BYTES // 2**20} MB")
    return b"".join(parts)


def _host(location: Location) -> str:
    name = f"[{location.host}]" if ":" in location.host else location.host
    return name if location.port == WEB_PORTS[location.scheme] else f"{name}:{location.port}"


def _target(location: Location) -> str:
    path = quote(location.path, safe="/%:@!$&'()*+,;=~")
    return f"{path}?{quote(location.query, safe='/?%:@!$&()*+,;=~')}" if location.query else path


def _url(location: Location) -> str:
    return f"{location.scheme}://{_host(location)}{_target(location)}"


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return "it takes too long"
    return str(error) or type(error).__name__
