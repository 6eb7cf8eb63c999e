"""A month's bill of this design and of the known ones, in dollars by service."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from dynamodb_counters._cost import functions
from dynamodb_counters._cost.batches import Batches
from dynamodb_counters._cost.ceilings import Ceiling, ceiling_of
from dynamodb_counters._cost.counted_items import BUCKET_BYTES, GROUP_BYTES, SLOT_BYTES, WATERMARK_BYTES, Counted
from dynamodb_counters._cost.dollars import Price, added, doors, dynamodb, function_dollars, idle, metered, receiver
from dynamodb_counters._cost.functions import Function
from dynamodb_counters._cost.invocations import invocations
from dynamodb_counters._cost.known_units import KNOWN, KnownDesign
from dynamodb_counters._cost.own_units import READS_PER_LOOK, Stage, checkpoint_reads, count_units, updates_per_batch
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._timeline.times import DAY

_STORED_BYTES: Final = 100
"""Bytes that DynamoDB adds to each item it stores."""

_MESSAGES: Final = {False: 100, True: 1000}
"""Messages of a consumer's batch: with plain events, with packed ones."""

_EVENTS_PER_CALL: Final = 25
_MARKER_BYTES: Final = 200


@dataclass(frozen=True, slots=True)
class Bill:
    """Units per event and stage, dollars per month and service; whether counts are exact, what finds the ceiling."""

    title: str
    exact: bool
    ceiling: Callable[[], Ceiling | None]
    units: dict[str, Stage]
    dollars: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.dollars.values())


def bills(load: Workload, price: Price) -> list[Bill]:
    """Bills of this design, then of the known ones with the same door, function settings, logs and traces."""
    own = [load] if load.packed is None else [load, load.unpacked()]
    return [*(_own(each, price) for each in own), *(_known(load, known, price) for known in KNOWN)]


def in_pages(load: Workload, price: Price) -> list[tuple[int, float, float]]:
    """Groups of each aggregate that may have pages; dollars per month to count it alone, in items and in pages."""
    shards = load.shards()

    def dollars(counted: Counted) -> float:
        counting = count_units([counted], load.batches(shards), load.feeding(shards))
        writes = load.rate * sum(stage.writes for stage in counting.values())
        return dynamodb(writes, 0.0, 0.0, price)["DynamoDB writes"]

    may = [one for one in load.counted if not one.ranked and not one.tiers and one.write_shards == 1]
    return [(one.groups, dollars(one), dollars(replace(one, pages=True))) for one in may]


def _own(load: Workload, price: Price) -> Bill:
    shards, packing = load.shards(), load.packing()
    feeding, batches = load.feeding(shards), load.batches(shards)
    updates = updates_per_batch(load.counted, batches, feeding)
    runs = invocations(load)
    if packing is None:
        stored, per_event, calls = load.event_bytes + _STORED_BYTES, functions.CPU_ACCEPTED, 1 / _EVENTS_PER_CALL
    else:
        calls = packing.chunks / packing.events_per_flush
        stored = packing.flush_bytes / packing.events_per_flush + _STORED_BYTES * calls
        per_event = functions.CPU_ACCEPTED_PACKED
    looks = runs.looks(shards)
    # One request after the other.
    more = READS_PER_LOOK * looks / (runs.events + runs.echoes)
    work = functions.counting(batches.events, updates, runs.events, packed=packing is not None)
    counting = [
        replace(work, rounds=work.rounds + more),
        Function(runs.echoes, 0.0, more),
        Function(runs.windows, 0.0, 1),
    ]
    used = [counting, *_behind_queue(load, per_event, calls, one_by_one=packing is not None)]
    units = load.stages(shards)
    units["checkpoint"] = Stage(units["checkpoint"].writes, checkpoint_reads(looks, shards) / load.rate)
    writes, reads = (load.rate * sum(getattr(one, kind) for one in units.values()) for kind in ("writes", "reads"))
    kept = load.rate * load.retention_days * DAY * stored + sum(_counted_bytes(one, load) for one in load.counted)
    running = (function_dollars(one, price, tracing=load.tracing) for one in used)
    fixed = idle(load, price).values()
    dollars = added([dynamodb(writes, reads, kept, price), *running, metered(load, price), *fixed])
    # The queue's requests take the place of those of an idle one.
    dollars |= doors(load, price)
    title = "this: accept + watermark" if packing is None else "this: packed"
    return Bill(title, True, partial(ceiling_of, load), units, dollars)


def _known(load: Workload, known: KnownDesign, price: Price) -> Bill:
    shards = load.shards() if load.packed is None else load.unpacked().shards()
    batches = load.unpacked().batches(shards)
    units = known.units(load.event_bytes, load.counted, batches, shards)
    per_run = batches.events * (units["update"].writes / (1 + known.transaction) if known.stream else 0.0)
    waits = known.requests(load.counted)
    # Those that do not coalesce send their requests for each event.
    used = _behind_queue(load, functions.CPU_PER_UPDATE * waits, waits, one_by_one=False)
    if known.stream:
        cpu = batches.events * functions.CPU_PER_RECORD + per_run * functions.CPU_PER_UPDATE
        echoes = invocations(load.unpacked()).echoes if known.coalesces else 0.0
        used.append([Function(shards / batches.seconds, cpu, functions.rounds(per_run)), Function(echoes, 0.0, 0)])
    # Without an item that shows it, an event that comes again is counted again.
    keeps = known.event_writes + known.small_writes > 0
    again = 1 + (load.duplicates if not keeps else 0.0)
    writes = load.rate * again * sum(one.writes for one in units.values())
    reads = load.rate * sum(one.reads for one in units.values())
    item = _MARKER_BYTES if known.small_writes else load.event_bytes
    kept = keeps * load.rate * load.retention_days * DAY * (item + _STORED_BYTES)
    kept += sum(one.groups for one in load.counted) * known.counter_writes * (GROUP_BYTES + _STORED_BYTES)
    running = (function_dollars(one, price, tracing=load.tracing) for one in used)
    dollars = added([dynamodb(writes, reads, kept, price), *running, doors(load, price)])
    return Bill(known.title, known.transaction, partial(ceiling_of, load.unpacked(), known), units, dollars)


def _behind_queue(load: Workload, cpu: float, requests: float, *, one_by_one: bool) -> list[list[Function]]:
    """The runs of the functions before and behind the queue; CPU time and requests are per event."""
    if load.door == "sdk":
        return []
    most = _MESSAGES[load.packed is not None] * load.per_request
    events = Batches.gathered(load.rate, load.gather, most, load.per_request).events
    sent = events * requests
    rounds = math.ceil(sent) if one_by_one else functions.rounds(sent)
    cpu += functions.CPU_PER_MESSAGE / load.per_request
    return [receiver(load), [Function(load.rate / events, events * cpu, rounds)]]


def _counted_bytes(counted: Counted, load: Workload) -> float:
    """Bytes of all groups or, for as long as events are kept, buckets."""
    if not counted.tiers:
        return counted.groups * (GROUP_BYTES + _STORED_BYTES + WATERMARK_BYTES * load.shards() / 2)
    return sum(
        counted.groups
        * max(1.0, load.retention_days * DAY / tier.seconds)
        * (BUCKET_BYTES + SLOT_BYTES * len(tier.slots) + _STORED_BYTES)
        for tier in counted.tiers
    )
