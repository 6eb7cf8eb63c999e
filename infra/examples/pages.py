"""A site's counts without scans: its pages, and their views, unique per user, per page and in all."""

from __future__ import annotations

from typing import Final

from dynamodb_counters import Aggregate, Count, Distinct, Event

PAGE: Final = Event("page", key="page", attributes={"page": str})
"""A page was created."""

VIEW: Final = Event("page_view", key=("page", "user"), attributes={"page": str, "user": str})
"""A user viewed a page. The same user viewing it again is the same event."""

VIEWS: Final = Aggregate("views", VIEW, by="page")
"""Views of each page. As a view is unique per user, this is also the number of unique visitors."""

PAGES: Final = Aggregate("pages", PAGE)

TOTAL: Final = Aggregate("total", VIEW, views=Count(), write_shards=4)
"""Views of all pages. Every batch of every shard updates it, so it is split into four items that a read adds up."""

VISITORS: Final = Distinct("visitors", VIEW, member="user")
"""Users who have viewed any page."""
