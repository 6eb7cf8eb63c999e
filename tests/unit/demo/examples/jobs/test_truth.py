from __future__ import annotations

from datetime import UTC, datetime, timedelta

from demo.check.intervals import Interval
from demo.examples.jobs.traffic import Job
from demo.examples.jobs.truth import jobs_truth

START = datetime(2026, 11, 19, 9, 30, tzinfo=UTC)
DAY = Interval(START, START + timedelta(hours=24))


def test_the_start_of_an_interval_counts_and_its_end_does_not() -> None:
    second = timedelta(seconds=1)
    times = [START - second, START, DAY.end - second, DAY.end]

    truth = jobs_truth([Job("1", str(time), round(time.timestamp() * 1000)) for time in times])

    assert truth.rolling(DAY) == {"1": 2}
    assert truth.last == DAY.end


def test_nothing_is_nothing() -> None:
    assert (jobs_truth([]).jobs, jobs_truth([]).last) == ({}, None)
