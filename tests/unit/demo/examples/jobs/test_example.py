from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo.check.finding import Finding, Reading
from demo.check.intervals import Interval
from demo.examples.jobs.example import Jobs
from demo.examples.jobs.traffic import Job
from demo.options import Options, Setup
from demo.sending.send import Account
from demo.terminal import Progress

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
GENERATED = Options(log=None, duplicates=0.2, seed=1, report=None, keep=False)
END = datetime(2026, 11, 20, 9, 31, tzinfo=UTC)
JOBS = Jobs([Job("1", "j", 1_795_167_015_000)] * 2, NOW)


def _prepare(options: Options = GENERATED) -> Jobs:
    return Jobs.prepare(Setup(options, NOW, Progress(io.StringIO())))


def _finding(**changes: Mapping[str, int]) -> Finding:
    interval = Interval(END - timedelta(hours=24), END)
    reading = Reading({"jobs": {"1": 1}, "jobs in 24 h": {"1": 1}} | changes, interval)
    (feed,) = JOBS.feeds()
    account = Account(2, Counter(accepted=1, duplicate=1))
    return Finding("jobs", account, feed.deliveries.responses(), reading, JOBS.expected(reading))


def test_a_seed_decides_everything_whether_the_blog_replays_a_log_or_not() -> None:
    assert _prepare() == _prepare() == _prepare(replace(GENERATED, log=Path("access.log")))
    assert _prepare() != _prepare(replace(GENERATED, seed=2))


def test_duplicates_are_a_share_of_the_distinct_events() -> None:
    jobs = _prepare()

    assert len(jobs.jobs) == round(1.2 * len(jobs.truth.distinct))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, []),
        ({"jobs": {"1": 2}}, ["jobs: jobs of 1: 2, must be 1"]),
        ({"jobs in 24 h": {"1": 2}}, ["jobs: jobs in 24 h of 1: 2, must be 1"]),
    ],
)
def test_what_is_wrong_is_reported(changes: dict[str, dict[str, int]], lines: list[str]) -> None:
    assert _finding(**changes).differences() == lines


def test_its_section_has_the_agreed_shape() -> None:
    section = JOBS.section(_finding())

    assert section.pop("rolling_24h")["counts"] == {"1": 1}
    assert section == {"events_sent": 2, "distinct_events": 1, "duplicates_rejected": 1, "customers": {"1": 1}}
