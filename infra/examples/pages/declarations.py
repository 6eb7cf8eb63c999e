"""What a site counts without scans: page views, unique per user, per page and in all, and the pages there are."""

from __future__ import annotations

from typing import Final

from dynamodb_counters import Aggregate, Count, Distinct, Event

PAGE: Final = Event("page", pk="PAGE#{page}", sk="PAGE")
"""A page was created."""

VIEW: Final = Event("page_view", pk="PAGE#{page}", sk="VIEW#{user}")
"""A user viewed a page. The same user viewing it once more is the same event."""

VIEWS: Final = Aggregate("views", VIEW, pk="PAGE#{page}", sk="STATISTICS", measures={"views": Count()})
"""Views of each page: as a view is unique per user, also the page's unique visitors."""

PAGES: Final = Aggregate("pages", PAGE, pk="SITE", sk="PAGES", measures={"pages": Count()})

TOTAL: Final = Aggregate("total", VIEW, pk="SITE", sk="VIEWS", measures={"views": Count()}, spread=4)
"""Views of all pages. Every batch of every shard changes it, so it is four items, which a read adds up."""

VISITORS: Final = Distinct("visitors", VIEW, pk="SITE", sk="VISITORS", member="user")
"""Users who have viewed any page."""
