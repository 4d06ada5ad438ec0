"""Images come over HTTP from the allowed hosts, whatever these hosts or DNS may try."""

from __future__ import annotations

import ipaddress
import ssl
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import pytest
import trustme

from jobs.images import ImageSource, NothingServed
from jobs.images.destination import Address, Resolve, destinations
from jobs.images.origins import Origins
from jobs.images.reasons import Away, SetAside
from jobs.images.web import Web
from models.images import decode
from store.database import Store
from studio.client import Client
from studio.files import MOST_BYTES
from tests.conftest import make_project
from tests.files import picture
from tests.jobs.web_host import WebHost, file, redirect, status


@pytest.fixture
def host() -> Iterator[WebHost]:
    with WebHost() as host:
        yield host


def fetch(address: str, *prefixes: str, **options: object) -> bytes:
    origins = Origins(prefixes)
    location, prefix = origins.find(address)
    return Web(origins, **options).fetch(location, prefix, address)  # type: ignore[arg-type]


def dns(*answers: str) -> tuple[Resolve, list[str]]:
    """A DNS that has another answer each time, the last one for good; and the names it was asked for."""
    asked: list[str] = []

    def resolve(name: str, port: int) -> list[Address]:
        asked.append(name)
        return [ipaddress.ip_address(answers[min(len(asked), len(answers)) - 1])]

    return resolve, asked


def test_an_image_under_an_allowed_prefix_is_loaded(host: WebHost, store: Store, tmp_path: Path) -> None:
    host.answers["/photos/1.png?w=28"] = file(picture(noise=1))
    client = Client("http://studio.test", "t" * 40)
    source = ImageSource(make_project(store), client, tmp_path, 28, prefixes=(f"{host.url}/photos",))
    for _ in range(2):
        loaded = source.load([{"image": f"{host.url}/photos/1.png?w=28"}, {"image": f"{host.url}/x/1.png"}])
        np.testing.assert_array_equal(loaded.images[:], [decode(picture(noise=1), size=28)])
        assert "under no allowed prefix" in loaded.bad[1]
    assert host.paths == ["/photos/1.png?w=28"]


def test_a_name_with_blanks_and_umlauts_is_asked_for_as_the_web_writes_it(host: WebHost) -> None:
    host.answers["/my%20photos/%C3%A4%20100%25.png"] = file(b"it")
    assert fetch(f"{host.url}/my photos/ä 100%25.png", host.url) == b"it"


def test_a_redirect_within_the_prefixes_is_followed(host: WebHost) -> None:
    host.answers |= {"/a/1": redirect("../b/2"), "/b/2": redirect(f"{host.url}/b/3"), "/b/3": file(b"it")}
    assert fetch(f"{host.url}/a/1", f"{host.url}/a", f"{host.url}/b") == b"it"
    assert host.paths == ["/a/1", "/b/2", "/b/3"]


def test_a_redirect_out_of_the_prefixes_is_not(host: WebHost) -> None:
    with WebHost() as other:
        host.answers |= {
            "/a/1": redirect(f"{other.url}/secret"),
            "/a/2": redirect("/secret"),
            "/a/3": redirect("file:///etc/passwd"),
            "/a/4": redirect("//elsewhere.test/x"),
        }
        for number in (1, 2, 4):
            with pytest.raises(SetAside, match=r"is redirected to .*, which is under no allowed prefix"):
                fetch(f"{host.url}/a/{number}", f"{host.url}/a")
        with pytest.raises(SetAside, match="is redirected elsewhere"):
            fetch(f"{host.url}/a/3", f"{host.url}/a")
        assert other.asked == []
    assert host.paths == ["/a/1", "/a/2", "/a/4", "/a/3"]


def test_redirects_without_end_are_given_up(host: WebHost) -> None:
    host.answers["/1"] = redirect("/1")
    with pytest.raises(SetAside, match="redirected more than 3 times"):
        fetch(f"{host.url}/1", host.url)
    assert len(host.asked) == 4


@pytest.mark.parametrize(("code", "kind"), [(403, SetAside), (404, SetAside), (204, SetAside), (302, SetAside)])
def test_a_refused_image_is_set_aside_with_the_status(host: WebHost, code: int, kind: type[SetAside]) -> None:
    host.answers["/1"] = status(code)
    with pytest.raises(kind, match=f"HTTP {code}") as caught:
        fetch(f"{host.url}/1", host.url)
    assert not isinstance(caught.value, Away)


@pytest.mark.parametrize("code", [500, 503, 429])
def test_a_host_in_trouble_is_not_the_images_fault(host: WebHost, code: int, store: Store, tmp_path: Path) -> None:
    host.answers |= {"/1": status(code), "/2": status(code), "/good": file(picture())}
    client = Client("http://studio.test", "t" * 40)
    source = ImageSource(make_project(store), client, tmp_path, 28, prefixes=(host.url,))
    one, other, good = ({"image": f"{host.url}/{name}"} for name in ("1", "2", "good"))
    with pytest.raises(NothingServed, match=f"none of 2 images is served.*HTTP {code}"):
        source.load([one, other])
    loaded = source.load([one, good])
    assert loaded.good.tolist() == [1]
    assert f"HTTP {code}" in loaded.away[0]
    assert loaded.bad == {}


def test_a_host_that_is_not_there_is_away() -> None:
    with WebHost() as gone:
        pass
    with pytest.raises(Away, match=r"127\.0\.0\.1 does not answer"):
        fetch(f"{gone.url}/1", gone.url)
    with pytest.raises(Away, match=r"nowhere\.invalid cannot be found"):
        fetch("http://nowhere.invalid/1", "http://nowhere.invalid/")


def drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    drip_body(handler)


def drip_body(handler: BaseHTTPRequestHandler) -> None:
    for _ in range(100):
        handler.wfile.write(b".")
        handler.wfile.flush()
        time.sleep(0.1)


def drip_file(handler: BaseHTTPRequestHandler) -> None:
    file(b"")(handler)
    drip_body(handler)


def drip_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000000")
    drip_body(handler)


@pytest.mark.parametrize("drip", [drip_headers, drip_file, drip_chunks])
def test_a_server_that_sends_a_byte_now_and_then_is_cut_off(
    host: WebHost, drip: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    host.answers["/1"] = drip
    began = time.monotonic()
    with pytest.raises(Away, match=r"took longer than 0\.5 s"):
        fetch(f"{host.url}/1", host.url, whole_seconds=0.5)
    assert time.monotonic() - began < 3


def test_a_file_that_breaks_off_is_not_taken_for_a_whole_one(host: WebHost) -> None:
    host.answers["/1"] = file(b"half", Content_Length="8")
    with pytest.raises(Away, match="does not answer"):
        fetch(f"{host.url}/1", host.url)


def test_a_huge_file_is_given_up_at_the_limit(host: WebHost) -> None:
    sent = 0

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        file(b"")(handler)
        while sent < 10 * MOST_BYTES:
            handler.wfile.write(bytes(2**20))
            sent += 2**20

    host.answers |= {"/endless": endless, "/full": file(bytes(MOST_BYTES)), "/over": file(bytes(MOST_BYTES + 1))}
    for path in ("/endless", "/over"):
        with pytest.raises(SetAside, match="has more than 40 MB"):
            fetch(f"{host.url}{path}", host.url)
    assert sent < 2 * MOST_BYTES
    assert len(fetch(f"{host.url}/full", host.url)) == MOST_BYTES


def test_what_was_compressed_on_the_way_is_not_unpacked(host: WebHost) -> None:
    host.answers |= {
        "/packed": file(b"\x1f\x8b", Content_Encoding="gzip"),
        "/plain": file(b"it", Content_Encoding="identity"),
    }
    with pytest.raises(SetAside, match=r"comes compressed \(gzip\)"):
        fetch(f"{host.url}/packed", host.url)
    assert fetch(f"{host.url}/plain", host.url) == b"it"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("169.254.169.254", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fd00:ec2::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),  # noqa: S104 - refused
        ("0.0.0.1", "unspecified"),
        ("::", "unspecified"),
        ("255.255.255.255", "reserved"),
    ],
)
def test_a_name_for_this_machine_or_its_link_is_never_asked(number: str, kind: str) -> None:
    resolver, _ = dns(number)
    with pytest.raises(SetAside, match=f"photos.example is .*, an? .*{kind}.* address"):
        fetch("http://photos.example/1", "http://photos.example/", resolver=resolver)


@pytest.mark.parametrize("number", ["10.0.0.7", "172.16.3.4", "192.168.1.2", "fc00::7", "93.184.216.34"])
def test_private_and_public_networks_are_fine_under_an_allowed_prefix(number: str) -> None:
    origins = Origins(["http://photos.example/"])
    location, prefix = origins.find("http://photos.example/1")
    assert destinations(location, prefix, dns(number)[0]) == [ipaddress.ip_address(number)]


def test_odd_spellings_of_this_machine_are_seen_through(host: WebHost) -> None:
    for name in ("127.1", "2130706433", "0x7f000001"):
        with pytest.raises(SetAside, match="a loopback address"):
            fetch(f"http://{name}:{host.port}/1", f"http://{name}:{host.port}/")
    assert host.asked == []


def test_this_machine_is_asked_where_the_prefix_names_it(host: WebHost) -> None:
    host.answers["/1"] = file(b"it")
    assert fetch(f"http://127.0.0.1:{host.port}/1", f"http://127.0.0.1:{host.port}/") == b"it"
    assert fetch(f"http://localhost:{host.port}/1", f"http://localhost:{host.port}/") == b"it"
    assert host.asked == [(f"127.0.0.1:{host.port}", "/1"), (f"localhost:{host.port}", "/1")]


def test_a_name_that_changes_its_meaning_after_the_check_gains_nothing(host: WebHost) -> None:
    host.answers["/1"] = file(b"it")
    with WebHost(at="127.0.0.2", port=host.port) as inner:
        inner.answers["/1"] = file(b"secret")
        resolver, asked = dns("127.0.0.1", "127.0.0.2")
        prefix = f"http://localhost:{host.port}/"
        assert fetch(f"{prefix}1", prefix, resolver=resolver) == b"it"
        assert asked == ["localhost"], "the name was looked up once, and the very address was asked"
        assert inner.asked == []


def test_a_name_that_changes_its_meaning_before_a_redirect_is_checked_again(host: WebHost) -> None:
    host.answers["/1"] = redirect("/2")
    resolver, asked = dns("127.0.0.1", "169.254.169.254")
    prefix = f"http://localhost:{host.port}/"
    with pytest.raises(SetAside, match=r"localhost is 169\.254\.169\.254, a link-local address"):
        fetch(f"{prefix}1", prefix, resolver=resolver)
    assert asked == ["localhost", "localhost"]
    assert host.paths == ["/1"]


def test_the_certificate_must_be_for_the_name_and_from_an_authority_we_trust() -> None:
    authority = trustme.CA()
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    with WebHost(authority=authority) as host:
        host.answers["/1"] = file(b"it")
        prefix = f"https://localhost:{host.port}/"
        assert fetch(f"{prefix}1", prefix, trust=ours) == b"it"
        assert host.asked == [(f"localhost:{host.port}", "/1")]
        with pytest.raises(Away, match=r"does not answer: .*certificate"):
            fetch(f"{prefix}1", prefix)
        with pytest.raises(Away, match=r"does not answer: .*certificate"):
            fetch(f"{host.url}/1", host.url, trust=ours)
        assert len(host.asked) == 1
