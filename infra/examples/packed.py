"""The blog's counts, from packed views: the same counts, where storing a view takes a fraction of a write unit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from dynamodb_counters import Aggregate, Event, Packed
from examples import blog

VIEW: Final = Event(
    blog.VIEW.name,
    pk=blog.VIEW.pk,
    sk=blog.VIEW.sk,
    packed=Packed("time", bucket=timedelta(days=1), future_tolerance=None),
    attributes=blog.VIEW.attributes,
)
"""A client viewed a url. Without retention, so that a log of any age can be replayed."""

VIEWS: Final = replace(blog.VIEWS, source=VIEW)
SITE: Final = replace(blog.SITE, source=VIEW)
VISITORS: Final = replace(blog.VISITORS, source=VIEW)
ROLLING: Final = replace(blog.ROLLING, source=VIEW)
ACTIVE: Final = replace(blog.ACTIVE, source=VIEW)
SIZES: Final = replace(blog.SIZES, source=VIEW)
LATEST: Final = replace(blog.LATEST, source=VIEW)
BOARD: Final = replace(blog.BOARD, source=VIEWS)

VIEWS_IN_PAGES: Final = Aggregate("views-in-pages", VIEW, by="url", pages=True)
VISITORS_IN_PAGES: Final = Aggregate("visitors-in-pages", VIEW, by="clientId", pages=True)
"""The same once more in pages, to compare: a batch touches many of both."""
