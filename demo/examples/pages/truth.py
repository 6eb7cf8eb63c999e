"""The pages' counts, computed from the events alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter

from demo.examples.pages.traffic import Page, Visit
from demo.sending.deliveries import Deliveries


class PagesTruth:
    """The number of remaining pages, their remaining views, and the users who made these."""

    def __init__(self, pages: Deliveries[Page], visits: Deliveries[Visit]) -> None:
        left = visits.remaining()
        views = Counter(visit.page for visit in left)
        self.pages = len(pages.remaining())
        self.views = {page: views[page] for page in sorted({page for page, _ in visits.sent})}
        self.visitors = len({visit.user for visit in left})
