"""Our own design, with events that are items and with events packed into chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import unquote

from benchmarks.databases import TABLE
from benchmarks.designs.base import Design
from counters_lambda.counting.batch import Aggregator
from demo.blog.traffic import View
from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._declarations import Declaration, Packed
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.layouts import ItemLayout
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many

SHARD = "shardId-00000001795168063870-8026dcd1"
VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
VISITORS = Aggregate("visitors", VIEW, pk="CLIENT#{clientId}", sk="STATISTICS", measures={"requests": Count()})


PACKED_VIEW = replace(VIEW, packed=Packed("time", bucket=timedelta(days=1), future_tolerance=None))
"""A day a bucket: the real log has 2,500 events a day."""


class Ours(Design):
    """One PutItem per event; one UpdateItem per touched item and batch, under a watermark."""

    name = "accept_and_watermark"
    title = "this: accept + watermark"
    source = "docs/exactly-once.md"
    streamed = TABLE
    event: ClassVar[Event] = VIEW
    declarations: tuple[Declaration, ...] = (VIEWS,)

    def create(self) -> None:
        super().create()
        self.restart()

    def restart(self) -> None:
        self.table = Table(TABLE, self.client, clock=self.database.clock)
        self.aggregator = Aggregator(self.table, self.declarations, quarantine_retention_seconds=86_400)

    def accept(self, views: Sequence[View]) -> None:
        accept_many(self.table, self.event, [view.as_event() for view in views])

    def counts(self) -> dict[str, int]:
        """Return counts of every page; its keys escape what their templates use."""
        return {unquote(url): number for url, number in super().counts().items()}

    def aggregate(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.aggregator.handle({"shardId": SHARD, "Records": records})


class OursOnThree(Ours):
    declarations = (VIEWS, VISITORS, SITE)


class PackedEvents(Ours):
    """As many events per call as `events_per_call`, 100 chunks per batch of the stream."""

    name = "packed"
    title = "this: packed"
    source = "docs/writing-events.md"
    event = PACKED_VIEW
    declarations: tuple[Declaration, ...] = (replace(VIEWS, source=PACKED_VIEW),)
    events_per_call: ClassVar[int] = 64
    records_per_batch = 100
    # The puts of a call's chunks, and a look after each that was refused.
    requests_per_call = 4


class PackedOnThree(PackedEvents):
    declarations = tuple(replace(declared, source=PACKED_VIEW) for declared in (VIEWS, VISITORS, SITE))


class PackedOnThreeAtOnce(PackedOnThree):
    records_per_batch = 10_000


class PagedOnThree(PackedOnThree):
    """Groups in pages; the site is one group, which has no page."""

    views = Aggregate("views", PACKED_VIEW, by="url", views=Count(), pages=True)
    visitors = Aggregate("visitors", PACKED_VIEW, by="clientId", requests=Count(), pages=True)
    declarations = (views, visitors, replace(SITE, source=PACKED_VIEW))

    def counts(self) -> dict[str, int]:
        items = [item for item in self.database.items(TABLE) if "_v" in item and item["_type"]["S"] == "views"]
        groups = [group for item in items for group in ItemLayout(self.views).images(item)]
        return {values_of(self.views, group)["url"]: int(group["views"]["N"]) for group in groups}  # type: ignore[index]


class PagedOnThreeAtOnce(PagedOnThree):
    records_per_batch = 10_000
