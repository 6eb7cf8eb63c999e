"""Our own design with packed events: chunks of many events instead of an item each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from benchmarks.designs.ours import SITE, VIEW, VIEWS, VISITORS, Ours
from dynamodb_counters._declarations import Declaration, Packed

PACKED_VIEW = replace(VIEW, packed=Packed("time", bucket=timedelta(days=1), future_tolerance=None))
"""A day a bucket: the real log has 2,500 events a day."""


class PackedEvents(Ours):
    """As many events per call as `events_per_call`, 100 chunks per batch of the stream."""

    name = "packed"
    title = "this: packed"
    source = "docs/packed-events.md"
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
