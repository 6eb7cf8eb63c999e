"""The pages' counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from demo.examples.pages.traffic import Page, Visit
from demo.sending.deliveries import Deliveries


@dataclass(frozen=True)
class PagesTruth:
    """The number of pages, views by page, and the number of users."""

    pages: int
    views: Mapping[str, int]
    visitors: int


def pages_truth(pages: Deliveries[Page], visits: Deliveries[Visit]) -> PagesTruth:
    """Count the remaining pages and views."""
    left = visits.remaining()
    views = Counter(visit.page for visit in left)
    return PagesTruth(
        len(pages.remaining()),
        {page: views[page] for page in sorted({page for page, _ in visits.sent})},
        len({visit.user for visit in left}),
    )
