"""The stream of a table with many partitions: a shard each, replaced every few hours, delivered as Lambda does."""

from __future__ import annotations

import itertools
import math
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

from dynamodb_counters._streams import Shard
from dynamodb_counters.testing._dynamodb.memory_stream import MemoryStream, Page, Record
from dynamodb_counters.testing._dynamodb.typed_values import Item
from simulation.clock import VirtualClock
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings

LIFETIME: Final = 4 * 3600.0
"""Seconds after which DynamoDB replaces a shard."""

WINDOW_SECONDS: Final = 900
"""The tumbling window that the construct configures."""

_SETTINGS: Final = Settings(batch_size=10_000, max_bytes=None, window_seconds=WINDOW_SECONDS)
_FIRST_SEQUENCE: Final = 10**22

Invoke = Callable[[int, dict[str, Any]], Mapping[str, Any]]
"""Runs the function for a partition's event and returns the window's state."""


class _Shard:
    """One shard as a stream of its own, so that polling it asks no other one; read records are forgotten."""

    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/counters/stream/2026-11-20T00:00:00.000"

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.closed = False
        self.unread: deque[Record] = deque()
        self.mapping = EventSourceMapping(self, clock, _SETTINGS)
        self.window_ends = 0.0
        """When the last invocation of the open window is due; 0 without one."""

    def shards(self) -> list[Shard]:
        return [Shard(self.name, "", is_open=True)]

    def read(self, _shard: str, _after: str | None, limit: int) -> Page:
        self.forget()
        return Page(list(itertools.islice(self.unread, limit)), ended=self.closed and len(self.unread) <= limit)

    def forget(self) -> None:
        done = self.mapping.checkpoint(self.name)
        while done and self.unread and int(self.unread[0]["dynamodb"]["SequenceNumber"]) <= int(done):
            self.unread.popleft()


class Partitions(MemoryStream):
    """Takes the place of a table's stream.

    Shards are replaced one after the other (`staggered`) or all at once. A change of an item goes to the partition its
    key belongs to, unless only events are in the stream.
    """

    def __init__(self, clock: VirtualClock, number: int, *, staggered: bool = True, only_events: bool = False) -> None:
        self.arn = _Shard.arn
        self._now = clock
        self._only_events = only_events
        self._sequences = itertools.count(_FIRST_SEQUENCE, 1_000_003)
        self._names = itertools.count(1_795_168_063_870)
        self._lives = [self._new_shard() for _ in range(number)]
        self._replaced = [clock() + LIFETIME * ((index + 1) / number if staggered else 1.0) for index in range(number)]

    def append(self, keys: Item, old: Item | None, new: Item | None, *, size: int, by_ttl: bool = False) -> None:
        del size, by_ttl
        if not self._only_events:
            self.put(zlib.crc32(keys["pk"]["S"].encode()) % len(self._lives), keys, old, new)

    def put(self, partition: int, keys: Item, old: Item | None, new: Item | None) -> None:
        images = {name: image for name, image in (("NewImage", new), ("OldImage", old)) if image is not None}
        sequence = str(next(self._sequences))
        created = float(int(self._now()))
        change = {"ApproximateCreationDateTime": created, "Keys": keys, "SequenceNumber": sequence, **images}
        kind = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
        self._lives[partition].unread.append({"eventID": sequence, "eventName": kind, "dynamodb": change})

    def unread(self) -> set[int]:
        """Partitions whose shard has records."""
        return {partition for partition, shard in enumerate(self._lives) if shard.unread}

    def next_window_end(self) -> float:
        return min((shard.window_ends for shard in self._lives if shard.window_ends), default=math.inf)

    def deliver(self, invoke: Invoke, among: Container[int] | None = None) -> None:
        """Deliver one batch of each shard (of those partitions) that has records, and the end of each window."""
        now = self._now()
        for partition, replaced_at in enumerate(self._replaced):
            if now >= replaced_at:
                # A shard is read to its end before the one that replaces it.
                closing = self._lives[partition]
                closing.closed = True
                self._deliver(closing, partition, invoke)
                self._replaced[partition] += LIFETIME * ((now - replaced_at) // LIFETIME + 1)
                self._lives[partition] = self._new_shard()
            shard = self._lives[partition]
            if (shard.unread and (among is None or partition in among)) or 0 < shard.window_ends <= now:
                self._deliver(shard, partition, invoke)

    def replay(self, delivered: Iterable[tuple[int, Mapping[str, Any]]], invoke: Invoke) -> None:
        """Deliver shards again from their beginning, as a new mapping does."""
        shards: dict[str, tuple[int, _Shard]] = {}
        for partition, event in delivered:
            name = event["shardId"]
            shards.setdefault(name, (partition, _Shard(name, self._now)))[1].unread.extend(event["Records"])
        for partition, shard in shards.values():
            shard.closed = True
            self._deliver(shard, partition, invoke)

    def _deliver(self, shard: _Shard, partition: int, invoke: Invoke) -> None:
        """Deliver what is there now; what the function itself changes meanwhile comes with the next batch."""
        waiting = len(shard.unread)
        while shard.mapping.shards() and (delivery := shard.mapping.poll(shard.name)):
            shard.mapping.settle(delivery, {"state": invoke(partition, delivery.event)})
            if not delivery.records:
                shard.window_ends = 0.0
                continue
            created = delivery.records[0]["dynamodb"]["ApproximateCreationDateTime"]
            shard.window_ends = created - created % WINDOW_SECONDS + WINDOW_SECONDS
            waiting -= len(delivery.records)
            if waiting <= 0 and not shard.closed:
                break
        shard.forget()

    def _new_shard(self) -> _Shard:
        number = next(self._names)
        return _Shard(f"shardId-{number:020d}-{zlib.crc32(str(number).encode()):08x}", self._now)
