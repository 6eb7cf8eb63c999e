"""Jobs of some providers over a day and a half, as references 001 and 003 generate them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

HOURS: Final = 37
PROVIDERS: Final = ("1", "2", "3")
# So far ahead that no engine's TTL deletes what the past has left.
FIRST: Final = int(datetime(2096, 11, 18, 9, 23, 45, tzinfo=UTC).timestamp())


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was placed.

    Parameters
    ----------
    second : int
        When, since 1970.
    provider : str
        For whom.
    """

    second: int
    provider: str


def generate(seed: int = 1) -> list[Job]:
    """Generate 20 to 100 jobs in each hour.

    Parameters
    ----------
    seed : int, optional
        Same seed, same jobs.

    Returns
    -------
    list of Job
        In the order of time.
    """
    dice = random.Random(seed)
    return sorted(
        (
            Job(FIRST + hour * 3600 + dice.randrange(3600), dice.choice(PROVIDERS))
            for hour in range(HOURS)
            for _ in range(dice.randint(20, 100))
        ),
        key=lambda job: job.second,
    )
