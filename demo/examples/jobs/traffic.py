"""Generated jobs of customers."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

_HOURS: Final = 37
_HOUR_MILLISECONDS: Final = 3_600_000
_CUSTOMERS: Final = ("1", "2", "3")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Job(NamedTuple):
    """A customer placed a job, at epoch milliseconds."""

    customer: str
    id: str
    at: int

    def as_event(self) -> dict[str, str | int]:
        return {"customer": self.customer, "id": self.id, "insertUtcTime": self.at}

    @property
    def time(self) -> datetime:
        # Not fromtimestamp of a quotient: floats do not represent every millisecond.
        return _EPOCH + timedelta(milliseconds=self.at)


def customer_jobs(rng: random.Random, end: datetime) -> list[Job]:
    """Generate 37 hours of jobs before `end`, 20 to 100 per hour, in order of time; the last one is at `end`."""
    now = (end - _EPOCH) // timedelta(milliseconds=1)
    times = sorted(
        now - hour * _HOUR_MILLISECONDS - rng.randrange(_HOUR_MILLISECONDS)
        for hour in range(_HOURS)
        for _ in range(rng.randint(20, 100))
    )
    times[-1] = now
    return [Job(rng.choice(_CUSTOMERS), f"{rng.getrandbits(64):016x}", time) for time in times]
