"""What a job logged can be read afterwards, wherever it ran."""

from __future__ import annotations

import logging

import pytest

from jobs import job_log
from jobs.workplace import Workplace

log = logging.getLogger("jobs.somewhere")


@pytest.fixture(autouse=True)
def _told() -> None:
    logging.getLogger().setLevel(logging.INFO)


def test_lines_of_all_tries_are_kept_with_the_error_that_ended_one(busy: Workplace) -> None:
    def first_try() -> None:
        with job_log.kept(busy.redis, "project-1-round-0-train"):
            log.info("first try")
            raise ValueError("no room, token=abcdef0123456789")

    with pytest.raises(ValueError, match="no room"):
        first_try()
    with job_log.kept(busy.redis, "project-1-round-0-train"):
        log.info("second try")
    log.info("after it")
    first, failed, second = job_log.lines(busy.redis, "project-1-round-0-train")
    assert first.endswith("first try")
    assert "ValueError: no room" in failed
    assert "abcdef0123456789" not in failed
    assert second.endswith("second try")


def test_only_the_last_lines_are_kept_and_not_for_ever(busy: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "KEPT_LINES", 3)
    with job_log.kept(busy.redis, "job"):
        for number in range(5):
            log.info("line %s", number)
    assert [line[-6:] for line in job_log.lines(busy.redis, "job")] == ["line 2", "line 3", "line 4"]
    assert 0 < busy.redis.ttl("iwes:log:job") <= job_log.KEPT_SECONDS


def test_a_redis_that_is_away_costs_the_line_and_not_the_work(place: Workplace) -> None:
    with job_log.kept(place.redis, "job"):
        log.info("said to nobody")


def test_outside_of_a_job_nothing_is_kept(busy: Workplace) -> None:
    with job_log.kept(busy.redis, None):
        log.info("said to nobody")
    assert not busy.redis.keys("iwes:log:*")
