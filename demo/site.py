"""Pages of a site and the users who look at them."""

from __future__ import annotations

import random
from typing import Final

from demo.events import Course, Page, Visit
from demo.traffic import with_duplicates

_PAGES: Final = 20
_USERS: Final = 80
_VISITS: Final = 300
_FORGOTTEN: Final = 3

_NAMES: Final = [f"page-{rank:02}" for rank in range(1, _PAGES + 1)]


def created(rng: random.Random, duplicates: float) -> Course[Page]:
    """Make up the creation of pages, the last of which is removed.

    Parameters
    ----------
    rng : random.Random
        Source of chance.
    duplicates : float
        Share of pages created again, 0 to 1.

    Returns
    -------
    Course of Page
        What happens to pages.
    """
    pages = [Page(name) for name in _NAMES]
    return Course(with_duplicates(rng, pages, duplicates), pages[-1:])


def visited(rng: random.Random, duplicates: float) -> Course[Visit]:
    """Make up views of the pages: few pages get most of them, and users come again.

    All views of some users are deleted. One of them returns to one page.

    Parameters
    ----------
    rng : random.Random
        Source of chance: the same state gives the same views.
    duplicates : float
        Share of views delivered again, 0 to 1. Users who view a page again are no share of it.

    Returns
    -------
    Course of Visit
        What users do.
    """
    popularity = [1 / rank for rank in range(1, _PAGES + 1)]
    visits = [Visit(page, f"user-{rng.randrange(_USERS):02}") for page in rng.choices(_NAMES, popularity, k=_VISITS)]
    forgotten = list(dict.fromkeys(visit.user for visit in visits))[:_FORGOTTEN]
    withdrawn = [visit for visit in dict.fromkeys(visits) if visit.user in forgotten]
    return Course(with_duplicates(rng, visits, duplicates), withdrawn, withdrawn[:1])
