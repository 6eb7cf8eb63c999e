"""37 hours of jobs of three customers, 5 to 25 an hour."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from demo.check.intervals import last_day
from demo.example import Example
from demo.options import Setup
from demo.sending import Deliveries, with_duplicates

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def play(setup: Setup) -> Example:
    rng, (start, end) = setup.rng("jobs"), last_day(setup.now)
    hours = [hour for hour in range(37) for _ in range(rng.randint(5, 25))]
    placed = [setup.now - timedelta(hours=hour, milliseconds=rng.randrange(3_600_000)) for hour in hours]
    jobs = [(rng.choice("123"), f"{rng.getrandbits(64):016x}", moment) for moment in sorted(placed)]
    events = [
        {"customer": customer, "id": name, "insertUtcTime": (moment - _EPOCH) // _MILLISECOND}
        for customer, name, moment in jobs
    ]
    truth = {
        "jobs_24h": dict.fromkeys("123", 0) | Counter(job[0] for job in jobs if start <= job[2] < end),
        "jobs": Counter(customer for customer, _, _ in jobs),
    }
    deliveries = Deliveries(with_duplicates(rng, events, setup.options.duplicates))
    return Example(name="jobs", now=setup.now, events={"job": deliveries}, truth=truth)
