"""A job service's counts: jobs per customer, in all and in the last 24 hours.

The design that it follows prescribes the keys of its items, hence the templates.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from dynamodb_counters import Aggregate, Event, Window

JOB: Final = Event(
    "job",
    pk="CUSTOMER#{customer}",
    sk="JOB#{id}",
    retention=timedelta(days=2),
    attributes={"customer": str, "id": str, "insertUtcTime": int},
)
"""A customer placed a job. The same id again is the same job."""

JOBS: Final = Aggregate("jobs", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS")

JOBS_24H: Final = Window(
    "jobs_24h",
    JOB,
    pk="CUSTOMER#{customer}",
    time="insertUtcTime",  # epoch milliseconds
    retention=timedelta(hours=25),
)
