"""Generated pages of a site and their views."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from demo.sending.deliveries import Deliveries, with_duplicates

_USERS: Final = 80
_VISITS: Final = 300
_FORGOTTEN: Final = 3

_NAMES: Final = [f"page-{rank:02}" for rank in range(1, 21)]


class Page(NamedTuple):
    page: str

    def as_event(self) -> dict[str, str]:
        return self._asdict()


class Visit(NamedTuple):
    page: str
    user: str

    def as_event(self) -> dict[str, str]:
        return self._asdict()


def created(rng: random.Random, duplicates: float) -> Deliveries[Page]:
    """Create pages, the last of which is removed again."""
    pages = [Page(name) for name in _NAMES]
    return Deliveries(with_duplicates(rng, pages, duplicates), pages[-1:])


def visited(rng: random.Random, duplicates: float) -> Deliveries[Visit]:
    """Generate views: a few pages get most of them, and users return.

    All views of three users are retracted, and one of these users returns to one page.
    """
    popularity = [1 / rank for rank in range(1, len(_NAMES) + 1)]
    visits = [Visit(page, f"user-{rng.randrange(_USERS):02}") for page in rng.choices(_NAMES, popularity, k=_VISITS)]
    forgotten = list(dict.fromkeys(visit.user for visit in visits))[:_FORGOTTEN]
    retracted = [visit for visit in dict.fromkeys(visits) if visit.user in forgotten]
    return Deliveries(with_duplicates(rng, visits, duplicates), retracted, retracted[:1])
