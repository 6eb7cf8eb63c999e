"""An event source mapping on a stream, by the rules of `simulation.aws`: order, batches, retries, expiry.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.aws.streams import TumblingWindow, halves, older
from simulation.delivery.stream_api import Source, shard_id
from simulation.memory.memory_stream import Page, Record

MAX_PAYLOAD_BYTES: Final = 6_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a mapping is configured.

    No limit of bytes is checked with `max_bytes` None. Without a tumbling window (0 seconds) no event names its shard.
    Records older than `max_age_seconds` go to the on-failure destination; those older than `retention_seconds` vanish.
    """

    batch_size: int = 100
    max_bytes: int | None = MAX_PAYLOAD_BYTES
    window_seconds: int = 60
    bisect: bool = False
    report_item_failures: bool = False
    max_age_seconds: float = 23 * 3600.0
    retention_seconds: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """One invocation the mapping asks for; without records it is the last one of a window."""

    shard: str
    records: list[Record]
    event: dict[str, Any]


@dataclass(eq=False)
class EventSourceMapping:
    """Delivers a stream to a function.

    The caller invokes: it polls a shard, runs the function however it likes, and settles or fails the delivery. A
    delivery that was failed may still be running; what becomes of it then does not matter to the mapping.

    `cut` says where a batch of that length is bisected, by default in the middle. `on_failure` has what went to the
    on-failure destination, by shard; `deliveries` and `delivered` count invocations and records.
    """

    source: Source
    clock: Callable[[], float]
    settings: Settings = Settings()
    cut: Callable[[int], int] = lambda length: length // 2
    on_failure: list[tuple[str, list[Record]]] = field(default_factory=list)
    deliveries: int = 0
    delivered: int = 0
    _pollers: dict[str, _ShardPoller] = field(default_factory=dict)
    _busy: dict[str, Delivery] = field(default_factory=dict)
    _finished: set[str] = field(default_factory=set)

    def shards(self) -> list[str]:
        """Return the shards that may be delivered from: those not busy whose parents are through."""
        shards = self.source.shards()
        ids = {shard.id for shard in shards}
        for shard in shards:
            # A parent that the stream has forgotten can have nothing left.
            if shard.id not in self._pollers and (shard.parent not in ids or shard.parent in self._finished):
                options = (shard.id, self.source, self.clock, self.settings, self.on_failure.append)
                self._pollers[shard.id] = _ShardPoller(*options)
        return [name for name in self._pollers if name not in self._busy and name not in self._finished]

    def poll(self, shard: str, batch_size: int | None = None) -> Delivery | None:
        """Return the next delivery of one of `shards`, or None when there is nothing to deliver.

        A `batch_size` below the configured one stands for what the batching window or the payload's size would do.
        """
        poller = self._pollers[shard]
        assert shard not in self._busy, "a shard has one delivery at a time"
        page = poller.page(batch_size or self.settings.batch_size)
        records = poller.window.admit(page.records)
        final = not records and poller.window.is_over(self.clock(), page)
        if not records and not final:
            if page.ended:
                self._finished.add(shard)
            return None
        event: dict[str, Any] = {"Records": records}
        if self.settings.window_seconds:
            poller.arn = str(records[0].get("eventSourceARN", poller.arn)) if records else poller.arn
            event |= {"shardId": shard_id(shard), "eventSourceARN": poller.arn, **poller.window.envelope(final=final)}
        delivery = self._busy[shard] = Delivery(shard, records, event)
        self.deliveries += 1
        self.delivered += len(records)
        return delivery

    def settle(self, delivery: Delivery, response: Any) -> bool:
        """Take a function's response; return False if it means failure, or comes too late to matter."""
        if self._busy.get(delivery.shard) is not delivery:
            return False
        poller, windowed = self._pollers[delivery.shard], bool(self.settings.window_seconds)
        failed = windowed and not (isinstance(response, dict) and isinstance(response.get("state"), dict))
        done = 0 if failed else self._successful(delivery, response)
        poller.advance(delivery.records[:done])
        if failed or done < len(delivery.records):
            self.fail(delivery)
            return False
        if windowed:
            poller.window.keep(response["state"], final=not delivery.records)
        del self._busy[delivery.shard]
        return True

    def fail(self, delivery: Delivery) -> None:
        """Record that an invocation failed or timed out."""
        if self._busy.get(delivery.shard) is not delivery:
            return
        del self._busy[delivery.shard]
        if delivery.records and self.settings.bisect:
            self._pollers[delivery.shard].bisect(self.cut)

    def rewind(self, shard: str, checkpoint: str | None) -> None:
        """Go back to an earlier position of a shard that is not busy, as after a lost checkpoint."""
        assert shard not in self._busy, "a busy shard cannot be rewound"
        self._pollers[shard].rewind(checkpoint)
        self._finished.discard(shard)

    def checkpoint(self, shard: str) -> str | None:
        """Return the last sequence number of a shard that needs no delivery any more."""
        return self._pollers[shard].checkpoint if shard in self._pollers else None

    def _successful(self, delivery: Delivery, response: Any) -> int:
        """Count the records before the first one the response reports as failed."""
        failures = response.get("batchItemFailures") if isinstance(response, dict) else None
        if not self.settings.report_item_failures or not failures:
            return len(delivery.records)
        indexes = {record["dynamodb"]["SequenceNumber"]: index for index, record in enumerate(delivery.records)}
        try:
            return min(indexes[entry["itemIdentifier"]] for entry in failures)
        except (KeyError, TypeError):
            return 0


@dataclass
class _ShardPoller:
    """The batches of one shard, in order: what it has read, what is tried again, what is abandoned.

    `on_failure` takes records that are not tried any more; `checkpoint` is the last sequence number that needs no
    delivery any more.
    """

    shard: str
    source: Source
    clock: Callable[[], float]
    settings: Settings
    on_failure: Callable[[tuple[str, list[Record]]], None]
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        # Batches to try again before anything is read, the next one last.
        self._pending: list[list[Record]] = []
        self.arn = self.source.arn
        self.window = TumblingWindow(self.settings.window_seconds)

    def page(self, batch_size: int) -> Page:
        """Return the batch to deliver next, of records that are not too old; `batch_size` limits one not tried yet."""
        while True:
            if not self._pending:
                page = self.source.read(self.shard, self.checkpoint, batch_size)
                batch = self._fitting(self.window.same(page.records))
                if not batch:
                    return page
                self._pending.append(batch)
            batch, settings = self._pending[-1], self.settings
            vanished = older(batch, self.clock() - settings.retention_seconds)
            expired = older(batch, self.clock() - min(settings.max_age_seconds, settings.retention_seconds))
            if not expired:
                return Page(batch, ended=False)
            if len(vanished) < len(expired):
                self.on_failure((self.shard, expired[len(vanished) :]))
            self.advance(expired)

    def advance(self, records: list[Record]) -> None:
        """Move past the first records of the batch delivered last: they were processed, or are abandoned."""
        if not records:
            return
        self.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        if rest := self._pending.pop()[len(records) :]:
            self._pending.append(rest)

    def bisect(self, cut: Callable[[int], int]) -> None:
        """Split the batch delivered last where `cut` says for its length."""
        self._pending[-1:] = halves(self._pending[-1], cut)

    def rewind(self, checkpoint: str | None) -> None:
        """Go back to after a sequence number, or (None) to the beginning; batches are cut again from there."""
        self.checkpoint = checkpoint
        self._pending.clear()
        self.window.close()

    def _fitting(self, records: list[Record]) -> list[Record]:
        if self.settings.max_bytes is None:
            return records
        room = self.settings.max_bytes
        for index, record in enumerate(records):
            room -= len(json.dumps(record, default=str))
            if room < 0:
                return records[: max(index, 1)]
        return records
