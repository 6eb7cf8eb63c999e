"""A discrete-event model of counting at scale: partitions, shards, batches of Lambda, for every design.

Arrivals and capacities come in ticks; every batch of every shard is an event of its own. Assumptions:

- The table is warm: it has the partitions its steady traffic needs (`HEADROOM`), each of 1,000 write units a second.
  The time in which DynamoDB grows there is not modeled. A page's events have several write shards, so that many
  partitions take them.
- An item takes 1,000 units a second. Units beyond that are throttled and tried again in a later tick.
- A partition has one shard; one invocation at a time reads a shard, up to `batch` records, at most once per
  `BATCHING_WINDOW`, and sends up to `PARALLEL_REQUESTS` requests at a time, each of `ROUND_TRIP`.
- Changes of aggregates are records of the stream too, spread over its shards.
- A transaction meets a conflict if another one on the same item begins within `TRANSACTION_TIME` of it.
- Packed events have a part per partition; a call accepts 64 of them.
- Groups are equally likely; delivery happens once.
- A counter written under watermarks keeps one of each shard that has fed it lately, and costs by its size
  (`counter_units`). All shards feed one counter; a million are the partition keys of their events, so one shard at a
  time feeds each. `prices` has what it costs if all feed each.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from benchmarks.databases import dollars_per_million
from dynamodb_counters._cost.batches import touched
from dynamodb_counters._cost.ceilings import UNITS_PER_KEY
from dynamodb_counters._cost.counted_items import GROUP_BYTES, WATERMARK_BYTES, watermarks_kept
from dynamodb_counters._cost.functions import INVOCATION, PARALLEL_REQUESTS, ROUND_TRIP
from dynamodb_counters._items.item_sizes import write_units

TICK: Final = 0.1
HEADROOM: Final = 0.7
"""Share of a partition's units that steady traffic uses."""
BATCHING_WINDOW: Final = 1.0
GRACE: Final = 10.0
"""A count with less lag keeps up."""

CPU_PER_RECORD: Final = 20e-6
TRANSACTION_TIME: Final = 0.004
CHECKPOINTS: Final = 0.01
"""Units per update of a counter for moving the shards' checkpoints."""

OFFERED: Final = 2.0
"""Requests that clients and queues make at most, per arriving event."""


@dataclass(frozen=True)
class Traits:
    """Properties of a design in the model.

    It counts directly (when the event is written) or from the stream. `event_units` are what an event takes apart from
    its `counters`, `counter_units` those of one write of a counter without watermarks; one that coalesces writes each
    counter once per batch. `write_shards` items share the shards that feed a counter. A record of the stream holds
    `events_per_record`, each of which takes `cpu_seconds`.
    """

    kind: Literal["direct", "stream"]
    event_units: float
    counter_units: float = 1.0
    counters: int = 1
    coalesces: bool = False
    transaction: bool = False
    watermarks: bool = False
    write_shards: int = 1
    events_per_record: int = 1
    cpu_seconds: float = CPU_PER_RECORD


TRAITS: Final = {
    "naive_increment": Traits("direct", 0),
    "transaction_marker": Traits("direct", 2, counter_units=2, transaction=True),
    "put_then_increment": Traits("direct", 1),
    "powertools_idempotency": Traits("direct", 2),
    "hour_minute_keys": Traits("stream", 1, counters=2),
    "coalescing": Traits("stream", 1, coalesces=True),
    "checkpoint_transaction": Traits("stream", 1, counter_units=2, coalesces=True, transaction=True),
    "accept_and_watermark": Traits("stream", 1, coalesces=True, watermarks=True),
    "packed": Traits("stream", 0.02, coalesces=True, watermarks=True, events_per_record=64, cpu_seconds=5e-6),
    "accept_and_watermark_16_write_shards": Traits("stream", 1, coalesces=True, watermarks=True, write_shards=16),
}


def counter_units(traits: Traits, feeding: float, touches: float) -> float:
    """Units of one write of a counter that so many shards feed, together `touches` times per second, by its size.

    >>> ours = TRAITS["accept_and_watermark"]
    >>> counter_units(ours, 4, 4), counter_units(ours, 64, 64), counter_units(ours, 256, 256)
    (1.0, 2.0, 8.0)
    """
    if not traits.watermarks:
        return traits.counter_units
    return write_units(math.ceil(GROUP_BYTES + WATERMARK_BYTES * watermarks_kept(feeding, touches)))


def simulate(traits: Traits, rate: int, groups: int, *, batch: int = 1000, seconds: float) -> dict[str, Any]:
    """Run the model with so many events per second over so many counters."""
    run = _direct if traits.kind == "direct" else _stream
    return run(traits, rate, groups, batch * traits.events_per_record, seconds)


@dataclass
class _Run:
    """Events counted so far and what that took; `worst` is the longest lag."""

    counted: float = 0.0
    throttles: float = 0.0
    conflicts: float = 0.0
    worst: float = 0.0

    def figures(self, rate: int, sustained: float, write_units: float) -> dict[str, Any]:
        return {
            "events_per_second": round(min(sustained, float(rate)), 3),
            "keeps_up": sustained >= rate * 0.99 and self.worst < GRACE,
            "throttles": self.throttles,
            "throttles_per_event": self.throttles / self.counted if self.counted else 0.0,
            "conflicts_per_event": self.conflicts / self.counted if self.counted else 0.0,
            "lag_seconds": self.worst,
            "write_units": write_units,
            "dollars_per_million": dollars_per_million(write_units, 0),
        }


def _direct(traits: Traits, rate: int, groups: int, _: int, seconds: float) -> dict[str, Any]:
    capacity = UNITS_PER_KEY * groups / traits.counter_units
    pending = 0.0
    run = _Run()
    for tick in range(1, round(seconds / TICK) + 1):
        pending += rate * TICK
        tries = min(pending, OFFERED * rate * TICK)
        taken = min(tries, capacity * TICK)
        run.throttles += tries - taken
        if traits.transaction:
            # Those that begin within its time on the same item; a busy client backs off to where most get through.
            offered = min(taken / TICK / groups, 1 / TRANSACTION_TIME)
            done = offered * math.exp(-offered * TRANSACTION_TIME) * groups * TICK
            run.conflicts += offered * groups * TICK - done
            taken = done
        pending -= taken
        run.counted += taken
        run.worst = max(run.worst, pending / (run.counted / (tick * TICK)) if run.counted else seconds)
    units = (traits.event_units + traits.counter_units) * (run.counted + run.conflicts) / run.counted
    return run.figures(rate, run.counted / seconds, units)


def _stream(traits: Traits, rate: int, groups: int, batch: int, seconds: float) -> dict[str, Any]:
    steady = _steady(traits, rate, groups, batch, scattered=groups == 1)
    shards, each = steady.shards, steady.counter_units
    dice = random.Random(rate + groups)
    queues: list[deque[tuple[float, float]]] = [deque() for _ in range(shards)]  # when, how many events
    changes = [0.0] * shards
    free = [dice.random() * BATCHING_WINDOW for _ in range(shards)]
    open_batches: deque[tuple[float, int, float, float]] = deque()  # arrived, shard, events, counter writes left
    units = in_time = 0.0
    run = _Run()
    ticks = round(seconds / TICK)
    tick = 0
    while tick < ticks or (tick < 3 * ticks and (open_batches or any(queues))):
        now = tick * TICK
        if tick < ticks:
            for queue in queues:
                queue.append((now, rate * TICK / shards))
        room = UNITS_PER_KEY * TICK * groups * traits.write_shards / each
        # Batches that were throttled go on first.
        for _ in range(len(open_batches)):
            arrived, shard, events, left = open_batches.popleft()
            written = min(left, room)
            room -= written
            units += written * (each + CHECKPOINTS * traits.watermarks)
            if left > written:
                run.throttles += left - written
                open_batches.append((arrived, shard, events, left - written))
                free[shard] = now + TICK
            else:
                run.counted += events
                run.worst = max(run.worst, now - arrived + TICK)
                in_time += events if tick < ticks + GRACE / TICK else 0.0
        starters = [shard for shard in range(shards) if free[shard] <= now and queues[shard]]
        for shard in starters:
            arrived, events, own = _take(queues[shard], changes, shard, batch)
            writes = touched(groups, events) if traits.coalesces else events * traits.counters
            if traits.transaction and groups == 1 and len(starters) > 1:
                others = (len(starters) - 1) * TRANSACTION_TIME / TICK
                lost = writes * math.expm1(min(others, 20.0))  # tries again until it gets through
                run.conflicts += lost
                units += lost * each
                free[shard] = now + lost * ROUND_TRIP
            concurrent = PARALLEL_REQUESTS if traits.coalesces and not traits.transaction else 1
            requests = math.ceil(writes / 99) if traits.transaction else writes
            working = events * traits.cpu_seconds + own * CPU_PER_RECORD
            length = INVOCATION + working + math.ceil(requests / concurrent) * ROUND_TRIP
            free[shard] = max(free[shard], now) + max(length, BATCHING_WINDOW if events + own < batch else 0.0)
            changes[dice.randrange(shards)] += writes
            # Written when the invocation is through; what the item takes by then is room of that tick.
            open_batches.append((arrived - length, shard, events, writes))
        tick += 1
    unsent = sum(events for queue in queues for _, events in queue) + sum(events for _, _, events, _ in open_batches)
    if unsent > rate * TICK:
        run.worst = max(run.worst, unsent / max(run.counted / (tick * TICK), 1.0))
    return run.figures(rate, in_time / seconds, traits.event_units + units / max(run.counted, 1.0))


class _Steady(NamedTuple):
    """Needs of steady traffic: shards, units of a counter's write, write units per event."""

    shards: int
    counter_units: float
    write_units: float


def _steady(traits: Traits, rate: int, groups: int, batch: int, *, scattered: bool) -> _Steady:
    """Shards follow from what a counter costs, and the other way round; `scattered`: all shards feed each group."""
    shards = 1
    while True:
        records = min(batch, rate / shards * BATCHING_WINDOW)
        share = touched(groups, records) / records if traits.coalesces else traits.counters
        feeding = shards / traits.write_shards if scattered else 1
        units = counter_units(traits, feeding, rate * share / groups / traits.write_shards)
        per_event = traits.event_units + (units + CHECKPOINTS * traits.watermarks) * share
        needed = math.ceil(rate * per_event / (UNITS_PER_KEY * HEADROOM))
        if needed <= shards:
            return _Steady(shards, units, per_event)
        shards = needed


def _take(queue: deque[tuple[float, float]], changes: list[float], shard: int, batch: int) -> tuple[float, ...]:
    """Take up to a batch of records off a shard, with a proportional share of the table's own changes."""
    waiting = sum(events for _, events in queue)
    own = min(changes[shard], batch * changes[shard] / (waiting + changes[shard]))
    changes[shard] -= own
    arrived, events, space = queue[0][0], 0.0, batch - own
    while queue and space > 1e-9:
        when, number = queue.popleft()
        taken = min(number, space)
        events, space = events + taken, space - taken
        if number > taken:
            queue.appendleft((when, number - taken))
    return arrived, events, own


def prices(rates: tuple[int, ...], groups: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cost of a counter's write in our design at each rate: groups that are the events' partition key, and others."""
    return [
        {"groups": number, "rate": rate, "fed_by": "all shards" if scattered else "one shard"}
        | _steady(TRAITS["accept_and_watermark"], rate, number, 1000, scattered=scattered)._asdict()
        for number in groups
        for rate in rates
        for scattered in ((False, True) if number > 1 else (True,))
    ]


def measure(rates: tuple[int, ...], groups: tuple[int, ...], seconds: float) -> dict[str, Any]:
    return {f"groups_{number}": {f"rate_{rate}": _all(rate, number, seconds) for rate in rates} for number in groups}


def _all(rate: int, groups: int, seconds: float) -> dict[str, Any]:
    found = {name: simulate(traits, rate, groups, seconds=seconds) for name, traits in TRAITS.items()}
    big = simulate(TRAITS["accept_and_watermark"], rate, groups, batch=10_000, seconds=seconds)
    return {**found, "accept_and_watermark_batch_10000": big}
