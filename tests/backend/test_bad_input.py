"""Whatever comes in, it is answered clearly and never with a fault; and what is refused changes nothing."""

from __future__ import annotations

import base64
import gzip
import json
import time
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy import select

from backend.app import MOST_BYTES
from store.tables import Label, Task
from studio.messages import DEEPEST, LARGEST_ID, MOST_ITEMS
from tests.backend.door import FOREIGN_TASKS, HEADER, Door
from tests.backend.mutations import CANARY, as_sent, captures, doubled, nested, places, replaced, spoilt, truncated

CAPTURED = list(captures())
CREATED = next(body for name, _path, body in CAPTURED if name == "webhook_ANNOTATION_CREATED-0")
READ = ["/webhook", "/predict"]
BOUNDED_SECONDS = 30
"""Ample: what takes longer, on a slow machine too, grows with something it should not grow with."""

NO_MESSAGES = [
    *[b"", b" ", b"null", b"true", b"0", b'"text"', b"[]", b"[{}]", b"{", b"}", b"{}{}", b"{'action': 1}", b"{,}"],
    *[b"\x00", b"\xff\xfe", b"<action/>", b"action=TASKS_DELETED", b"NaN", b"[Infinity]", b'{"a": 1e999}'],
    *[b"1" * 5000, b'{"action": ' + b"9" * 5000 + b"}", b'"\xed\xa0\x80"', b'"\xc0\xaf"', b"/* */ {}"],
]
OTHER_KINDS = [
    *[None, "", "text/plain", "text/json", "application/xml", "application/x-www-form-urlencoded", "application/jsonx"],
    *["multipart/form-data", "multipart/form-data; boundary=x", "json", "*/*", "application/json, text/html", "\xff"],
]
WRONG_VALUES: dict[str, list[Any]] = {
    "id": [0, -1, 1.5, "1", True, None, [1], LARGEST_ID + 1, 2**64, 10**400],
    "task": [0, -1, 1.5, "1", False, None, {"id": 1}, LARGEST_ID + 1],
    "result": [None, "cat", {}, 1],
    "created_at": [
        *[None, 0, "", "soon", "2026-02-30T00:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T24:00:01Z", "+12026-01-01"],
        *["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "0001-01-01", "9999-12-31"],
        *["1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "3000-01-01T00:00:00Z", CANARY, [CANARY]],
    ],
    "updated_at": ["", "later", 0, False, [], "0001-01-01T00:00:00+05:00", "2999-12-31T23:59:59-00:01"],
    "was_cancelled": ["false", "", CANARY, 0, 1, [], {}],
    "ground_truth": ["false", "", CANARY, 0, 1, [], {}],
    "project": [2, "1", True, [], {"id": 1}, CANARY],
}
NO_CHOICE: list[Any] = [["cat"], None, 1, "\ud800\0" * 99, nested(50), CANARY * 999]
ODD_ANNOTATIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *[({"completed_by": who}, {"annotator": None}) for who in ("me", [1], {}, 10**30, -1, True)],
    ({"completed_by": {"id": 7, "email": CANARY}}, {"annotator": 7}),
    ({"completed_by": LARGEST_ID}, {"annotator": LARGEST_ID}),
    ({"was_cancelled": None}, {"skipped": False, "class_name": "cat"}),
    ({"was_cancelled": True, "result": [{}]}, {"skipped": True, "class_name": None, "problem": None}),
    ({"created_at": "1970-01-01T00:00:00Z", "updated_at": "2999-12-31T23:59:59.999999Z"}, {"class_name": "cat"}),
    ({"created_at": "2026-11-15T23:55:43", "updated_at": None}, {"class_name": "cat"}),
    ({"result": [None, 1, "x", [], {}, {"from_name": ["cls"]}]}, {"class_name": None}),
    ({"result": [{"from_name": "cls", "value": "cat"}]}, {"class_name": None}),
    *[({"result": [{"from_name": "cls", "value": {"choices": [name]}}]}, {"class_name": None}) for name in NO_CHOICE],
]
NO_SECRETS = ["", "\xff\xfe", "S3CRET", "s3cre", "s3cret\0", "x" * 10**5, "' OR 1=1 --"]
NO_CREDENTIALS = [
    f"Basic {base64.b64encode(shown).decode()}"
    for shown in (b":", b":\0", b"x:s3cret\0", b"\xff:\xff", b"s3cret", b"s3cret:", b"x:" + b"s3cret" * 10**4)
] + ["", "Basic s3cret", "Basic", "Bearer s3cret", "Bearer \xff", "s3cret", "Digest s3cret", "Basic \xff", "Basic ===="]


def changed(**annotation: Any) -> bytes:
    """The capture of a submitted annotation, otherwise than it was."""
    return as_sent(CREATED | {"annotation": CREATED["annotation"] | annotation})


def labels_of(door: Door) -> list[Label]:
    with door.store.read() as session:
        return list(session.scalars(select(Label).where(Label.project_id == door.project.id).order_by(Label.id)))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [149, pytest.param(1, marks=pytest.mark.slow)])
def test_a_capture_with_junk_in_any_place_is_refused_or_taken_without_harm(door: Door, every: int) -> None:
    for name, path, content in spoilt(every):
        door.send(path, content, about=name)
    print(f"\n{door.sent.total()} spoilt captures: {dict(door.sent)}")
    assert door.sent[400] > 1000 // every
    assert door.sent[200] > 1000 // every


@pytest.mark.parametrize("step", [997, pytest.param(16, marks=pytest.mark.slow)])
def test_a_capture_that_is_cut_off_anywhere_is_refused(door: Door, step: int) -> None:
    cut = [(name, path, content) for name, path, content in truncated(step) if path in READ]
    for name, path, content in cut:
        assert door.send(path, content, about=name).status_code == 400
    print(f"\n{len(cut)} captures cut off")
    assert labels_of(door) == []


@pytest.mark.parametrize("number", [25, pytest.param(800, marks=pytest.mark.slow)])
def test_any_json_in_any_place_is_refused_or_taken_without_harm(door: Door, number: int) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes().map(str)
    anything = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    )
    somewhere = [(path, body, place) for _name, path, body in CAPTURED for place, _value in places(body)]

    @examples(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(somewhere), anything)
    def send(where: tuple[str, Any, Any], junk: Any) -> None:
        path, body, place = where
        door.send(path, as_sent(replaced(body, place, junk)), about=f"{place} is {junk!r}")

    send()
    assert door.sent.total() >= number


def test_a_body_that_is_no_message_is_refused(door: Door) -> None:
    for path in READ:
        for content in NO_MESSAGES:
            assert door.send(path, content).status_code == 400, content
            assert door.send(path, b"\n" + content + b"\n").status_code == 400, content


@given(content=st.binary(max_size=200))
@examples(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_of_no_meaning_are_refused(door: Door, content: bytes) -> None:
    assert door.send("/webhook", content).status_code == 400


def test_json_that_is_not_utf_8_is_refused(door: Door) -> None:
    text = json.dumps(CREATED | {"note": "größer"}, ensure_ascii=False)
    for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-8-sig"):
        for kind in ("application/json", f"application/json; charset={encoding}"):
            answer = door.send("/webhook", text.encode(encoding), content_type=kind)
            assert (answer.status_code, answer.json) == (400, {"error": "the body is missing or not JSON in UTF-8"})
    assert door.send("/webhook", text.encode()).status_code == 200


def test_a_body_of_another_kind_is_refused(door: Door) -> None:
    for path in READ:
        for kind in OTHER_KINDS:
            answer = door.send(path, changed(), content_type=kind)
            assert answer.status_code == 415, kind
            assert "Content-Type: application/json" in answer.json["error"]


def test_a_packed_body_is_refused(door: Door) -> None:
    gzipped, bomb = gzip.compress(changed()), gzip.compress(b"[" * 10_000_000)
    for packed, coding in ((gzipped, "gzip"), (bomb, "gzip"), (zlib.compress(changed()), "deflate"), (changed(), "br")):
        assert door.send("/webhook", packed, headers={"Content-Encoding": coding}).status_code == 415
    assert door.send("/webhook", gzipped).status_code == 400


def test_a_body_that_is_too_large_is_refused(door: Door) -> None:
    for path in READ:
        assert door.send(path, b" " * (MOST_BYTES + 1)).status_code == 413


def test_a_length_that_is_not_the_bodys_is_refused(door: Door) -> None:
    for length in ("99999", "9", "-1", "x", "1" * 400, ""):
        sent = {"path": "/webhook", "data": changed(), "content_type": "application/json", "headers": HEADER}
        answer = door.app.test_client().post(**sent, environ_overrides={"CONTENT_LENGTH": length})
        assert answer.status_code in (400, 413), length
        door.judge(answer.status_code, answer.text, f"Content-Length: {length}")


def test_a_deep_body_is_refused_in_bounded_time(door: Door) -> None:
    deep = CREATED["task"] | {"data": nested(DEEPEST - 3)}
    assert door.send("/webhook", as_sent(CREATED | {"task": deep})).status_code == 200
    began = time.monotonic()
    for content in (b"[" * 10**6, b'{"a":' * 10**6, as_sent(nested(DEEPEST + 1)), b"[" * 900 + b"]" * 900):
        for path in READ:
            answer = door.send(path, content)
            assert (answer.status_code, answer.json["error"][:20]) == (400, "the body has more th")
    assert time.monotonic() - began < BOUNDED_SECONDS


@pytest.mark.slow
def test_long_lists_and_texts_are_answered_in_bounded_time(door: Door) -> None:
    long = {"project": CREATED["project"], "action": "ANNOTATIONS_DELETED"}
    tasks = [{"id": n, "data": {"image": "x"}} for n in range(1, MOST_ITEMS + 1)]
    many = [CREATED["annotation"] | {"id": n, "task": n % 12 + 1} for n in range(1, 2001)]
    began = time.monotonic()
    for body, status in (
        (long | {"annotations": [{"id": n} for n in range(1, MOST_ITEMS + 1)]}, 200),
        (long | {"annotations": [{"id": 1}] * (MOST_ITEMS + 1)}, 400),
        (long | {"action": "TASKS_CREATED", "tasks": [{}] * 10**6}, 400),
        (long | {"action": "TASKS_CREATED", "tasks": tasks}, 200),
        (CREATED | {"action": "ANNOTATIONS_CREATED", "annotation": many}, 200),
        (CREATED | {"task": CREATED["task"] | {"data": {"text": "x" * 10**7}}}, 200),
        (CREATED | {"annotation": CREATED["annotation"] | {"result": [{"from_name": "cls"}] * 10**5}}, 200),
        (CREATED | {"annotation": CREATED["annotation"] | {"created_at": "2" * 10**7}}, 400),
        (CREATED | {str(n): n for n in range(10**5)}, 200),
    ):
        assert door.send("/webhook", as_sent(body), about=str(body)[:80]).status_code == status
    assert time.monotonic() - began < BOUNDED_SECONDS
    assert len(labels_of(door)) == 2000


@pytest.mark.slow
@pytest.mark.parametrize("junk_first", [True, False])
def test_keys_that_stand_twice_do_no_harm(door: Door, junk_first: bool) -> None:
    """The last one counts, as everywhere in Python."""
    for name, path, body in CAPTURED:
        for junk in ("null", "2", f'"{CANARY}"', '{"id": 2}', "[]"):
            answer = door.send(path, doubled(body, junk, junk_first=junk_first).encode(), about=name)
            assert not junk_first or answer.status_code == 200


def test_a_field_that_is_wrong_is_named(door: Door) -> None:
    for field, values in WRONG_VALUES.items():
        for value in values:
            answer = door.send("/webhook", changed(**{field: value}), about=f"{field}: {value!r}")
            assert answer.status_code == 400, (field, value)
            assert answer.json["error"].startswith(f"annotation.{field} ")


def test_an_odd_annotation_is_taken_for_what_it_says(door: Door) -> None:
    for number, (annotation, expected) in enumerate(ODD_ANNOTATIONS, LARGEST_ID - len(ODD_ANNOTATIONS)):
        assert door.send("/webhook", changed(**annotation, id=number)).status_code == 200
        label = labels_of(door)[-1]
        assert label.annotation_id == number
        assert {name: getattr(label, name) for name in expected} == expected, annotation


def test_an_annotation_that_is_named_twice_in_a_message_is_one_label(door: Door) -> None:
    annotation = CREATED["annotation"]
    other = annotation | {"task": 2, "result": []}
    body = CREATED | {"action": "ANNOTATIONS_CREATED", "annotation": [annotation, other, annotation]}
    assert door.send("/webhook", as_sent(body)).status_code == 200
    (label,) = labels_of(door)
    assert label.class_name == "cat"


def test_no_task_of_another_project_is_labelled_or_mirrored(door: Door) -> None:
    foreign = FOREIGN_TASKS[1]
    assert door.send("/webhook", changed(task=foreign)).status_code == 200
    task = CREATED["task"] | {"id": foreign, "project": 2}
    for body in (CREATED | {"task": task}, CREATED | {"action": "TASKS_CREATED", "tasks": [CREATED["task"], task]}):
        answer = door.send("/webhook", as_sent(body))
        assert answer.status_code == 400
        assert "project is not the project.id of the message" in answer.json["error"]
    for deleted in ("tasks", "annotations"):
        body = CREATED | {"action": f"{deleted.upper()}_DELETED", deleted: [{"id": foreign}, {"id": 1}]}
        assert door.send("/webhook", as_sent(body)).status_code == 200
    assert labels_of(door) == []
    with door.store.read() as session:
        assert session.scalars(select(Task).where(Task.studio_id == foreign)).one().project_id != door.project.id


def test_a_message_about_another_project_is_refused(door: Door) -> None:
    for _name, path, body in CAPTURED:
        if path == "/webhook":
            answer = door.send(path, as_sent(body | {"project": body["project"] | {"id": 2}}))
            assert answer.status_code == 400


def test_a_task_may_hold_any_text(door: Door) -> None:
    data = {"image": "/data/a\0b.png", "\ud800": ["\udfff", "\0", "\x1b", "\uffff", 10**400, 1e308, -0.0, nested(40)]}
    body = CREATED | {"action": "TASKS_CREATED", "tasks": [{"id": 13, "data": data}]}
    assert door.send("/webhook", as_sent(body)).status_code == 200
    with door.store.read() as session:
        assert session.scalars(select(Task).where(Task.studio_id == 13)).one().data == data


def test_a_secret_that_is_junk_opens_nothing(door: Door) -> None:
    for path in ("/setup", "/predict", "/webhook"):
        for secret in NO_SECRETS:
            assert door.send(path, changed(), headers={"X-IWeS-Secret": secret}).status_code == 401, secret
        for shown in NO_CREDENTIALS:
            answer = door.app.test_client().post(path, data=changed(), headers={"Authorization": shown})
            assert answer.status_code == 401, shown
            door.judge(answer.status_code, answer.text)
