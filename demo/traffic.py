"""Traffic that looks real: views of a blog, jobs of customers, and deliveries that repeat themselves."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from demo.events import Job, View

DEFAULT_VIEWS: Final = 3_400
_PAGES: Final = 250
_VIEWS_SPAN: Final = timedelta(hours=48)
_NEW_VISITOR: Final = 0.35
_JOB_HOURS: Final = 37
_HOUR_MILLISECONDS: Final = 3_600_000
_CUSTOMERS: Final = ("1", "2", "3")

_Event = TypeVar("_Event")


def blog_views(rng: random.Random, end: datetime, count: int = DEFAULT_VIEWS) -> list[View]:
    """Make up visits to a blog over the two days before `end`.

    A few pages get most of the views (Zipf's law), afternoons are busier than nights, and who came often comes again.

    Parameters
    ----------
    rng : random.Random
        Source of chance: the same state gives the same traffic.
    end : datetime
        Aware; no view is later, and one is in this very second.
    count : int, optional
        How many views.

    Returns
    -------
    list of View
        In order of time.

    Examples
    --------
    >>> views = blog_views(random.Random(1), datetime(2024, 5, 1, tzinfo=UTC), count=100)
    >>> len(views), views[-1].time
    (100, '2024-05-01T00:00:00+00:00')
    """
    pages = [f"/blog/{2010 + rank % 15}/post-{rank}.html" for rank in range(1, _PAGES + 1)]
    popularity = [1 / rank for rank in range(1, _PAGES + 1)]
    ages = sorted((_age(rng, end) for _ in range(count)), reverse=True)
    if ages:
        ages[-1] = timedelta(0)
    visits: list[str] = []
    views = []
    for age, page in zip(ages, rng.choices(pages, popularity, k=count), strict=True):
        # Choosing among visits, not visitors, is what makes regulars regular.
        visitor = rng.choice(visits) if visits and rng.random() > _NEW_VISITOR else _address(rng)
        visits.append(visitor)
        views.append(View(page, _iso(end - age), visitor))
    return views


def customer_jobs(rng: random.Random, end: datetime) -> list[Job]:
    """Make up 37 hours of jobs of three customers before `end`, 20 to 100 an hour.

    Parameters
    ----------
    rng : random.Random
        Source of chance: the same state gives the same jobs.
    end : datetime
        Aware; no job is later, and one is in this very moment.

    Returns
    -------
    list of Job
        In order of time.
    """
    now = (end - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
    times = sorted(
        now - hour * _HOUR_MILLISECONDS - rng.randrange(_HOUR_MILLISECONDS)
        for hour in range(_JOB_HOURS)
        for _ in range(rng.randint(20, 100))
    )
    times[-1] = now
    return [Job(rng.choice(_CUSTOMERS), f"{rng.getrandbits(64):016x}", time) for time in times]


def with_duplicates(rng: random.Random, events: Sequence[_Event], share: float) -> list[_Event]:
    """Deliver some events again, out of order.

    Parameters
    ----------
    rng : random.Random
        Source of chance.
    events : sequence
        Delivered in this order; they may hold repeats already.
    share : float
        Number of extra copies in relation to the number of distinct events, rounded half to even. 0 to 1.

    Returns
    -------
    list
        The events and the copies, each copy at a random place: also before the event it repeats.

    Examples
    --------
    >>> sorted(with_duplicates(random.Random(1), ["a", "b", "c", "d"], 0.25)) in [list("aabcd"), list("abbcd"),
    ...     list("abccd"), list("abcdd")]
    True
    """
    distinct = list(dict.fromkeys(events))
    copies = rng.sample(distinct, k=round(share * len(distinct)))
    total = len(events) + len(copies)
    places = set(rng.sample(range(total), k=len(copies)))
    originals, repeats = iter(events), iter(copies)
    return [next(repeats) if place in places else next(originals) for place in range(total)]


def _age(rng: random.Random, end: datetime) -> timedelta:
    while True:
        age = _VIEWS_SPAN * rng.random()
        hour = (end - age).astimezone(UTC).hour
        # Busiest at 15:00, a seventh of that at 03:00.
        if rng.random() < 0.57 + 0.43 * math.cos((hour - 15) / 24 * math.tau):
            return age


def _address(rng: random.Random) -> str:
    return f"198.{rng.randint(18, 19)}.{rng.randrange(256)}.{rng.randrange(256)}"


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
