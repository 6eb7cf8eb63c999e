"""Views of a blog: by url and visitor, in the last 24 hours, active visitors, response sizes, latest pages.

Its design prescribes the keys, hence the templates.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from dynamodb_counters import (
    ActiveMembers,
    Aggregate,
    Attr,
    Attribute,
    Count,
    Event,
    Extremes,
    Percentiles,
    Ranking,
    Ranks,
    Threshold,
    Window,
)

VIEW: Final = Event(
    "view",
    pk="URL#{url}",
    sk="T#{time}#CID#{clientId}",
    retention=timedelta(days=7),
    attributes={"url": str, "time": datetime, "clientId": str, "bytes": Attribute(int, required=False, minimum=0)},
)
"""A client viewed a url, by a response of so many bytes. The same url, time and client again is the same view."""

VIEW_SCHEMA: Final = {**VIEW.json_schema, "additionalProperties": False}
"""JSON Schema of a posted view: what strangers send has no other attributes."""

VIEWS: Final = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", ranking=Ranking("views", "URLS"))
LEVELS: Final = (10, 100)
POPULAR: Final = Threshold("popular", VIEWS, at=LEVELS)
"""Ten views of a url are worth an event, and a hundred another one."""

SITE: Final = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", site_views=Count())
VISITORS: Final = Aggregate("visitors", VIEW, pk="CLIENT#{clientId}", sk="STATISTICS", requests=Count())

ROLLING: Final = Window("views_24h", VIEW, pk="URL#{url}", time="time", retention=None, future_tolerance=None)
"""Buckets never expire, so that a log of any age can be replayed and queried as of its own end."""

ACTIVE: Final = ActiveMembers("active", VIEW, member="clientId", time="time")
"""Unique visitors of any span of up to 30 days."""

SIZES: Final = Percentiles(
    "sizes", VIEW, attribute="bytes", time="time", precision=timedelta(days=1), where=Attr("bytes").exists()
)
LATEST: Final = Extremes("latest", VIEW, by="clientId", attribute="time", show="url")
"""The page that each visitor viewed last."""

BOARD: Final = Ranks("board", VIEWS, score="views", least=0, most=999_999)
"""The rank of each page by its views."""
