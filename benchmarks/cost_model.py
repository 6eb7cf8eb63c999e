"""Cost of a month: units per event from what batches touch, dollars from units. Pure.

Checked against replays of the real writer and handler, echoes included: of 72 measurements in memory the units deviated
by at most 2.9 %, and of three months of steady traffic no line of the bill by more than 3.1 %.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._items.schema import WRITE_UNIT_BYTES, write_units
from dynamodb_counters._tiers import DAY, HOUR

FILE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("prices.toml").read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = {name: table for name, table in FILE.items() if isinstance(table, dict)}
PRICES: Final[dict[str, float]] = {
    f"{service}.{name}": price["dollars"] / price["per"]
    for service, table in SERVICES.items()
    for name, price in table.items()
    if isinstance(price, dict)
}
"""Dollars for one of what is billed, by names such as ``dynamodb.write_unit``, of one Region at one date."""

Door: TypeAlias = Literal["sdk", "queue", "http", "url", "validated"]
"""Who accepts: your own code; a queue's consumer; that behind an API; that behind a function that checks before, which
has a URL or an API."""

Dollars: TypeAlias = dict[str, float]
"""By service."""

MONTH: Final = 730.0 * HOUR
_GB: Final = 1e9

# DynamoDB: partitions and shards.
_FEWEST_PARTITIONS: Final = 4
_PARTITION_UNITS: Final = 700.0
"""Write units per second that steady traffic uses of a partition's 1,000."""
_SHARD_LIFETIME: Final = 4 * HOUR
"""About four hours, as seen; AWS does not say."""
_STORED_BYTES: Final = 100
"""Bytes that DynamoDB adds to each item it stores."""

# Items.
_EVENT_BYTES: Final = 200.0
_RETENTION: Final = 7 * DAY
_BATCH: Final = 1000
"""Records of the stream."""
_GROUP_BYTES: Final = 90
_WATERMARK_BYTES: Final = 25
_GUARD_SECONDS: Final = 40 * 60.0
"""How long an item keeps a watermark that its shard does not move again."""
_ITEMS_PER_CHECKPOINT: Final = 100
_LEAST_PRUNED: Final = 8
_SPARE_BYTES: Final = 64
"""Items are pruned of as many watermarks when they come so close to their next unit."""
_SHARD_WRITES: Final = 1.0
"""A new shard's checkpoint."""
_TUMBLING_SECONDS: Final = 900
_READS_PER_LOOK: Final = 2

# Packed events: bytes per chunk of n events of a real access log, in bytes of one event as an item.
_CHUNK_BYTES: Final = 100
_CHUNK_MOST: Final = 16_384 * 0.97
_RATIO, _EXPONENT, _SPREAD = 0.49, 0.76, 0.1
_WRITER_RAISES: Final = 0.05
"""By each further process that writes the same log: measured 1.05 with 2, 1.35 with 8, 2.6 with 32."""
_EVENTS_PER_BUCKET: Final = 6_000
_TENANT_READS: Final = 3.0
"""Read units of a flush of a tenant's log, whose bucket it meets for the first time."""
TENANTS_MEASURED: Final = {1: 0.003, 100: 0.016, 1_000: 0.25, 10_000: 1.01}
"""Dollars per million to accept small events, 5,000 a flush, by tenants."""

# Functions: seconds of CPU as measured over HTTPS, and of waiting as assumed.
_PARALLEL_REQUESTS: Final = 16
_CPU_PER_RECORD, _CPU_PER_PACKED_EVENT, _CPU_PER_UPDATE = 6e-6, 1.5e-6, 0.77e-3
_CPU_ACCEPTED, _CPU_ACCEPTED_PACKED, _CPU_PER_MESSAGE = 59e-6, 24e-6, 22e-6
_CPU_RECEIVED, _CPU_RECEIVED_MORE = 1.0e-3, 16e-6
"""Per request with one event, and per further event in it."""
_GB_PER_CPU: Final = 1769 / 1024
"""A function has a whole CPU at this memory size, and less in proportion: a second of CPU costs the same at any size.

https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
_EVENTS_PER_CALL: Final = 25

# The door.
_MESSAGES_PER_CALL: Final = 10
_IDLE_POLLS: Final = 21_600 / DAY
"""Five pollers that wait 20 seconds each ask an idle queue, too."""

_ROUND_TRIP, _INVOCATION = 0.006, 0.02
"""Seconds of a request to DynamoDB, and of an invocation apart from its work, as assumed."""

# Always on, by construct.
ALARMS: Final = {"StreamAggregator": 5, "EventIngest": 3}
"""On AWS's free metrics, and on ours of what is not counted: these, and logs, cost nothing while all goes well."""
_WATCH_RUNS, _WATCH_READS = 1 / 900, 16.0
"""The rule that looks for what waits: runs per second, and read units of each when nothing does. Its pulse is a unit,
and wakes the aggregator, which ends a window."""


class Stage(NamedTuple):
    """Units per event."""

    writes: float = 0.0
    reads: float = 0.0


class Function(NamedTuple):
    """How often a function runs per second; seconds of CPU of a run, and rounds of requests."""

    runs: float
    cpu: float
    rounds: float

    def dollars(self) -> Dollars:
        seconds = self.cpu * _GB_PER_CPU + _INVOCATION + self.rounds * _ROUND_TRIP
        return {"Lambda": self.runs * MONTH * (PRICES["lambda.request"] + seconds * PRICES["lambda.gb_second"])}


@dataclass(frozen=True, slots=True)
class Workload:
    """Events per second, the groups that they are counted in, all alike, and how they come.

    `packed` are events per flush, by so many `writers` of a log, of so many `tenants` with logs of their own;
    `per_request` those of a request or message; `gather` the seconds that the stream's batches gather for.
    """

    rate: float
    groups: int = 50
    gather: float = 1.0
    packed: float | None = None
    writers: int = 1
    tenants: int = 1
    door: Door = "sdk"
    per_request: int = 1

    def shards(self) -> int:
        """Partitions of the table, each of which is a shard of its stream: as many as the writes need."""
        shards = _FEWEST_PARTITIONS
        while (
            needed := math.ceil(self.rate * sum(s.writes for s in self.stages(shards).values()) / _PARTITION_UNITS)
        ) > shards:
            shards = needed
        return shards

    def feeding(self, shards: int) -> int:
        """Shards that have events: chunks of a log have one partition key."""
        return shards if self.packed is None else min(self.tenants, shards)

    def events_per_batch(self, shards: int) -> float:
        """Return those of a shard that has events; the table's own changes take part of a batch's room."""
        feeding = self.feeding(shards)
        per_record = self.flushed
        rate, room = self.rate / feeding, _BATCH * per_record
        # The next batch gathers while this one is counted.
        gathered = max(per_record, min(per_record + rate * max(self.gather, _INVOCATION + _ROUND_TRIP), room))

        def fits(events: float) -> bool:
            return events + self.updates(events) * feeding / shards * per_record <= room

        low, high = per_record, gathered
        for _ in range(0 if fits(gathered) else 25):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return gathered if fits(gathered) else low

    def updates(self, events: float) -> float:
        """Items that a batch updates."""
        return touched(self.groups, events)

    def stages(self, shards: int) -> dict[str, Stage]:
        """Units by stage: accepting an event, updating what it counts in, and the shards' bookkeeping."""
        feeding, events = self.feeding(shards), self.events_per_batch(shards)
        seconds = events * feeding / self.rate
        updates = self.updates(events)
        touches = updates * feeding / self.groups / seconds
        alive = feeding * (1 + _GUARD_SECONDS / _SHARD_LIFETIME)
        size = _GROUP_BYTES + _WATERMARK_BYTES * alive * -math.expm1(-touches * _GUARD_SECONDS / alive)
        units = write_units(size)
        per_life = touches * _SHARD_LIFETIME / feeding
        room = (WRITE_UNIT_BYTES - (size + _SPARE_BYTES) % WRITE_UNIT_BYTES) / _WATERMARK_BYTES
        pruning = updates * -math.expm1(-per_life) / per_life / max(_LEAST_PRUNED, room) * units
        every = math.ceil(_ITEMS_PER_CHECKPOINT / max(updates, 1e-9))
        moves = min(1.0, math.ceil(_TUMBLING_SECONDS / seconds / every) * seconds / _TUMBLING_SECONDS)
        return {
            "accept": self._accept(),
            "update": Stage(updates * units / events),
            "prune": Stage(pruning / events),
            "checkpoint": Stage((moves + _SHARD_WRITES * seconds / _SHARD_LIFETIME) / events),
        }

    def _accept(self) -> Stage:
        if self.packed is None:
            return Stage(write_units(_EVENT_BYTES))
        # A queue's consumer cannot be limited to fewer than two.
        writers = max(self.writers, 1 if self.door == "sdk" else 2)
        seconds = self.flushed * self.tenants / self.rate
        full, rest = divmod(self.chunks, 1.0) if self.chunks > 1 else (0.0, 1.0)
        last = _chunk_units(_CHUNK_BYTES + self._content(rest * self.flushed / self.chunks)) if rest else 0.0
        writes = full * write_units(_CHUNK_MOST) + last
        # Each process asks for the layout once a minute, and looks into a bucket that it meets for the first time.
        buckets = 0.5 * min(1.0, self.flushed / _EVENTS_PER_BUCKET) if self.tenants == 1 else _TENANT_READS
        reads = min(1.0, writers * seconds / FRESH) / self.tenants + buckets
        raised = 1 + _WRITER_RAISES * (writers - 1)
        return Stage(raised * writes / self.flushed, raised * reads / self.flushed)

    @property
    def flushed(self) -> float:
        """Events of a flush that share a log; of a record of the stream."""
        return 1.0 if self.packed is None else max(1.0, self.packed / self.tenants)

    @property
    def chunks(self) -> float:
        """Per flush and log; each is compressed alone."""
        fitting = math.pow((_CHUNK_MOST - _CHUNK_BYTES) / (_RATIO * _EVENT_BYTES), 1 / _EXPONENT)
        return max(1.0, self.flushed / fitting)

    def _content(self, events: float) -> float:
        """Bytes of so many packed events."""
        return _RATIO * math.pow(events, _EXPONENT) * _EVENT_BYTES

    def stored_bytes(self, shards: int) -> float:
        """Events and groups."""
        per_event = _EVENT_BYTES + _STORED_BYTES
        if self.packed is not None:
            content = self._content(self.flushed / self.chunks) + _CHUNK_BYTES + _STORED_BYTES
            per_event = self.chunks * content / self.flushed
        groups = self.groups * (_GROUP_BYTES + _STORED_BYTES + _WATERMARK_BYTES * shards / 2)
        return self.rate * _RETENTION * per_event + groups


def touched(groups: float, events: float) -> float:
    """Return how many of equally likely groups so many events touch on average.

    >>> touched(1, 1000), round(touched(100, 100), 1)
    (1.0, 63.4)
    """
    return min(1.0, events) if groups <= 1 else groups * -math.expm1(events * math.log1p(-1 / groups))


def _chunk_units(size: float) -> float:
    """Return expected write units of a chunk: sizes vary, and a unit begins with every KB."""
    width = max(1.0, math.sqrt(3) * _SPREAD * size)
    low, high = size - width, size + width
    boundaries = range(max(1, math.ceil(low / WRITE_UNIT_BYTES)), math.floor(high / WRITE_UNIT_BYTES) + 1)
    return write_units(low) + sum((high - boundary * WRITE_UNIT_BYTES) / (high - low) for boundary in boundaries)


def bill(load: Workload) -> Dollars:
    """Dollars of a month, by service, what is always on included."""
    shards = load.shards()
    feeding, events = load.feeding(shards), load.events_per_batch(shards)
    updates, batches = load.updates(events), load.rate / events
    # Changes come back in the stream: to a batch that gathers events in their shard, or as a batch of their own.
    gathers = 1 - load.flushed / events
    stages = load.stages(shards)
    own = updates + stages["checkpoint"].writes * events
    reached = shards - (shards - 1) * math.exp(-max(0.0, own - 1) / shards)
    echoes = batches * reached * (1 - gathers * (feeding - 1) / shards)
    windows = min(batches + echoes, shards / _TUMBLING_SECONDS)
    rate = (batches + echoes - batches / shards) / shards
    looks = shards * rate / (1 + rate * FRESH)
    waiting = _READS_PER_LOOK * looks / (batches + echoes)
    per_record = _CPU_PER_RECORD if load.packed is None else _CPU_PER_PACKED_EVENT
    cpu = events * per_record + updates * (_CPU_PER_UPDATE + _CPU_PER_RECORD)
    functions = [
        Function(batches, cpu, math.ceil(updates / _PARALLEL_REQUESTS) + waiting),
        Function(echoes, 0.0, waiting),
        Function(windows, 0.0, 1),
        *_behind_door(load),
    ]
    writes = load.rate * sum(stage.writes for stage in stages.values())
    reads = load.rate * sum(stage.reads for stage in stages.values()) + _READS_PER_LOOK * looks
    return added(
        [
            dynamodb(writes, reads, load.stored_bytes(shards)),
            *(function.dollars() for function in functions),
            *fixed(load.door).values(),
            _door(load),
        ]
    )


def increment(load: Workload) -> Dollars:
    """Dollars of an `ADD` per event, from the caller's own code: not exact."""
    return dynamodb(load.rate, 0.0, load.groups * (_GROUP_BYTES + _STORED_BYTES))


def per_million(load: Workload, dollars: Mapping[str, float]) -> float:
    return sum(dollars.values()) / (load.rate * MONTH) * 1e6


def fixed(door: Door = "queue") -> dict[str, Dollars]:
    """Return the dollars that are paid whether events come or not, by construct."""
    watch = Function(3 * _WATCH_RUNS, 0.0, 1).dollars()
    bills = {"StreamAggregator": added([watch, dynamodb(_WATCH_RUNS, _WATCH_RUNS * _WATCH_READS, 0.0)])}
    if door != "sdk":
        bills["EventIngest"] = {"SQS": _IDLE_POLLS * MONTH * PRICES["sqs.request"]}
    for name, dollars in bills.items():
        dollars["CloudWatch alarms"] = ALARMS[name] * PRICES["cloudwatch.alarm_month"]
    return bills


def dynamodb(writes: float, reads: float, stored_bytes: float) -> Dollars:
    """Return those of units per second and bytes in the table; the constructs turn point-in-time recovery on."""
    stored = PRICES["dynamodb.storage_gb_month"] + PRICES["dynamodb.recovery_gb_month"]
    return {
        "DynamoDB writes": writes * MONTH * PRICES["dynamodb.write_unit"],
        "DynamoDB reads": reads * MONTH * PRICES["dynamodb.read_unit"],
        "DynamoDB storage": stored_bytes / _GB * stored,
    }


def added(parts: Iterable[Mapping[str, float]]) -> Dollars:
    total: Dollars = {}
    for part in parts:
        for name, dollars in part.items():
            total[name] = total.get(name, 0.0) + dollars
    return total


def _door(load: Workload) -> Dollars:
    """Return what requests cost, messages sent one by one, received and deleted in tens."""
    if load.door == "sdk":
        return {}
    requests = load.rate / load.per_request
    # Polls of an idle queue are in what is fixed.
    messages = requests + max(requests / _MESSAGES_PER_CALL, _IDLE_POLLS) - _IDLE_POLLS + requests / _MESSAGES_PER_CALL
    dollars = {"SQS": messages * MONTH * PRICES["sqs.request"]}
    if load.door in ("http", "validated"):
        dollars["API Gateway"] = requests * MONTH * PRICES["http_api.request"]
    return dollars


def _behind_door(load: Workload) -> list[Function]:
    """Return the receiver and the queue's consumer."""
    if load.door == "sdk":
        return []
    messages = 100 if load.packed is None else 1000
    events = min(load.per_request + load.rate * load.gather, messages * load.per_request)
    if load.packed is None:
        cpu, rounds = _CPU_ACCEPTED, math.ceil(events / _EVENTS_PER_CALL / _PARALLEL_REQUESTS)
    else:
        cpu, rounds = _CPU_ACCEPTED_PACKED, math.ceil(events * load.chunks / load.flushed)
    runs = load.rate / events
    functions = [Function(runs, events * (cpu + _CPU_PER_MESSAGE / load.per_request), rounds)]
    if load.door in ("url", "validated"):
        received = _CPU_RECEIVED + _CPU_RECEIVED_MORE * (load.per_request - 1)
        functions.append(Function(load.rate / load.per_request, received, 1))
    return functions
