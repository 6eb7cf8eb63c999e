from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo.examples.jobs.example import Jobs
from demo.examples.jobs.traffic import Job, customer_jobs
from demo.examples.jobs.truth import jobs_truth
from tests.unit.demo.fakes import AROUND_THE_DAY, DAY, NOW, finding, setup

JOBS = Jobs([Job("1", "j", 1_795_167_015_000)] * 2, NOW)
COUNTS = {"jobs": {"1": 1}, "jobs in 24 h": {"1": 1}}


def test_jobs_cover_37_hours() -> None:
    end = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)
    jobs = customer_jobs(random.Random(1), end)
    times = [job.time for job in jobs]

    assert times == sorted(times)
    assert times[-1] == datetime(2026, 11, 20, 9, 30, 15, tzinfo=UTC)
    assert timedelta(hours=36) < end - times[0] < timedelta(hours=37, seconds=1)
    assert {job.customer for job in jobs} == {"1", "2", "3"}
    assert len({job.id for job in jobs}) == len(jobs)
    assert 20 * 37 <= len(jobs) <= 100 * 37


def test_the_start_of_an_interval_counts_and_its_end_does_not() -> None:
    truth = jobs_truth([Job("1", str(time), round(time.timestamp() * 1000)) for time in AROUND_THE_DAY])

    assert truth.rolling(DAY) == {"1": 2}
    assert truth.last == DAY.end


def test_they_are_the_same_whether_the_blog_replays_a_log_or_not() -> None:
    assert Jobs.prepare(setup()) == Jobs.prepare(setup(log=Path("access.log")))


def test_duplicates_are_a_share_of_the_distinct_events() -> None:
    jobs = Jobs.prepare(setup())

    assert len(jobs.jobs) == round(1.2 * jobs.truth.total)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, []),
        ({"jobs": {"1": 2}}, ["jobs: jobs of 1: 2, must be 1"]),
        ({"jobs in 24 h": {"1": 2}}, ["jobs: jobs in 24 h of 1: 2, must be 1"]),
    ],
)
def test_what_is_wrong_is_reported(changes: dict[str, dict[str, int]], lines: list[str]) -> None:
    assert finding(JOBS, COUNTS | changes).differences() == lines


def test_its_section_has_the_agreed_shape() -> None:
    section = JOBS.section(finding(JOBS, COUNTS))

    assert section.pop("rolling_24h")["counts"] == {"1": 1}
    assert section == {"events_sent": 2, "distinct_events": 1, "duplicates_rejected": 1, "customers": {"1": 1}}
