"""Generated views of a blog."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

DEFAULT_VIEWS: Final = 1_000
_PAGES: Final = 100
_SPAN: Final = timedelta(days=10)
_NEW_VISITOR: Final = 0.15
_NOT_MODIFIED: Final = 0.05


class View(NamedTuple):
    """A client viewed a url; `time` is ISO 8601 in UTC, `size` that of the response in bytes, if there was a body."""

    url: str
    time: str
    client: str
    size: int | None = None

    def as_event(self) -> dict[str, Any]:
        event = {"url": self.url, "time": self.time, "clientId": self.client}
        return event if self.size is None else {**event, "bytes": self.size}


def blog_views(rng: random.Random, end: datetime, count: int = DEFAULT_VIEWS) -> list[View]:
    """Generate views of the ten days before `end`, in order of time; the last one is at `end`.

    A few pages get most of the views (Zipf's law), afternoons are busier than nights, and frequent visitors return.
    Sizes are log-normal; a response to a browser that has the page has none.
    """
    pages = [f"/blog/{2010 + rank % 15}/post-{rank}.html" for rank in range(1, _PAGES + 1)]
    popularity = [1 / rank for rank in range(1, _PAGES + 1)]
    ages = sorted((_age(rng, end) for _ in range(count)), reverse=True)
    if ages:
        ages[-1] = timedelta(0)
    visits: list[str] = []
    views = []
    for age, page in zip(ages, rng.choices(pages, popularity, k=count), strict=True):
        # Choosing among visits, not visitors, makes frequent visitors return more often.
        visitor = rng.choice(visits) if visits and rng.random() > _NEW_VISITOR else _address(rng)
        visits.append(visitor)
        time = (end - age).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        size = None if rng.random() < _NOT_MODIFIED else round(rng.lognormvariate(9, 1.5))
        views.append(View(page, time, visitor, size))
    return views


def _age(rng: random.Random, end: datetime) -> timedelta:
    while True:
        age = _SPAN * rng.random()
        hour = (end - age).astimezone(UTC).hour
        # Busiest at 15:00, a seventh of that at 03:00.
        if rng.random() < 0.57 + 0.43 * math.cos((hour - 15) / 24 * math.tau):
            return age


def _address(rng: random.Random) -> str:
    return f"198.{rng.randint(18, 19)}.{rng.randrange(256)}.{rng.randrange(256)}"
