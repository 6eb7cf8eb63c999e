from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from demo.examples.jobs.traffic import customer_jobs

END = datetime(2026, 11, 20, 9, 30, 15, 999, tzinfo=UTC)


def test_a_seed_always_makes_the_same_jobs() -> None:
    assert customer_jobs(random.Random(7), END) == customer_jobs(random.Random(7), END)
    assert customer_jobs(random.Random(7), END) != customer_jobs(random.Random(8), END)


def test_jobs_cover_37_hours() -> None:
    jobs = customer_jobs(random.Random(1), END)
    times = [job.time for job in jobs]

    assert times == sorted(times)
    assert times[-1] == datetime(2026, 11, 20, 9, 30, 15, tzinfo=UTC)
    assert timedelta(hours=36) < END - times[0] < timedelta(hours=37, seconds=1)
    assert {job.customer for job in jobs} == {"1", "2", "3"}
    assert len({job.id for job in jobs}) == len(jobs)
    assert 20 * 37 <= len(jobs) <= 100 * 37
