"""An event source mapping on a stream, as AWS documents it: order, batches, retries, bisect, windows, expiry.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.delivery.mapping_settings import Settings
from simulation.delivery.shard_poller import ShardPoller
from simulation.dynamodb.stream_source import Record, Source


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """One invocation the mapping asks for; without records it is the last one of a window."""

    shard: str
    records: list[Record]
    event: dict[str, Any]


class EventSourceMapping:
    """Delivers a stream to a function.

    The caller invokes: it polls a shard, runs the function however it likes, and settles or fails the delivery. A
    delivery that was failed may still be running; what becomes of it then does not matter to the mapping.

    `cut` says where a batch of that length is bisected, by default in the middle. `on_failure` has what went to the
    on-failure destination; `deliveries` and `delivered` count invocations and records.
    """

    def __init__(
        self,
        source: Source,
        clock: Callable[[], float],
        settings: Settings | None = None,
        cut: Callable[[int], int] = lambda length: length // 2,
    ) -> None:
        self._source = source
        self._clock = clock
        self._settings = settings or Settings()
        self._cut = cut
        self._pollers: dict[str, ShardPoller] = {}
        self._busy: dict[str, Delivery] = {}
        self._finished: set[str] = set()
        self.on_failure: list[list[Record]] = []
        self.deliveries = 0
        self.delivered = 0

    def shards(self) -> list[str]:
        """The shards that may be delivered from: those not busy whose parents are through."""
        found = self._source.shards()
        for shard in found:
            # A parent that the stream has forgotten can have nothing left.
            known = any(other.id == shard.parent for other in found)
            if shard.id not in self._pollers and (not known or shard.parent in self._finished):
                self._pollers[shard.id] = ShardPoller(
                    shard.id, self._source, self._clock, self._settings, self.on_failure.append
                )
        return [name for name in self._pollers if name not in self._busy and name not in self._finished]

    def poll(self, shard: str, batch_size: int | None = None) -> Delivery | None:
        """The next delivery of one of `shards`, or None when there is nothing to deliver.

        A `batch_size` below the configured one stands for what the batching window or the payload's size would do.
        """
        poller = self._pollers[shard]
        assert shard not in self._busy, "a shard has one delivery at a time"
        page = poller.page(batch_size or self._settings.batch_size)
        records = poller.window.admit(page.records)
        final = not records and poller.window.is_over(self._clock(), page)
        if not records and not final:
            if page.ended:
                self._finished.add(shard)
            return None
        event: dict[str, Any] = {"Records": records}
        if self._settings.window_seconds:
            event |= {"shardId": shard, "eventSourceARN": self._source.arn, **poller.window.envelope(final=final)}
        delivery = self._busy[shard] = Delivery(shard, records, event)
        self.deliveries += 1
        self.delivered += len(records)
        return delivery

    def settle(self, delivery: Delivery, response: Any) -> bool:
        """Take a function's response; return False if it means failure, or comes too late to matter."""
        if self._busy.get(delivery.shard) is not delivery:
            return False
        poller, settings = self._pollers[delivery.shard], self._settings
        if settings.window_seconds and not (isinstance(response, dict) and isinstance(response.get("state"), dict)):
            self.fail(delivery)
            return False
        done = self._successful(delivery, response)
        if delivery.records and done < len(delivery.records):
            poller.advance(delivery.records[:done])
            self.fail(delivery)
            return False
        poller.advance(delivery.records)
        if settings.window_seconds:
            poller.window.keep(response["state"], final=not delivery.records)
        poller.succeed()
        del self._busy[delivery.shard]
        return True

    def fail(self, delivery: Delivery) -> None:
        """Record that an invocation failed or timed out."""
        if self._busy.get(delivery.shard) is not delivery:
            return
        del self._busy[delivery.shard]
        if delivery.records:
            self._pollers[delivery.shard].retry(self._cut)

    def rewind(self, shard: str, checkpoint: str | None) -> None:
        """Go back to an earlier position of a shard that is not busy, as after a lost checkpoint."""
        assert shard not in self._busy, "a busy shard cannot be rewound"
        self._pollers[shard].rewind(checkpoint)
        self._finished.discard(shard)

    def checkpoint(self, shard: str) -> str | None:
        """The last sequence number of a shard that needs no delivery any more."""
        return self._pollers[shard].checkpoint if shard in self._pollers else None

    def _successful(self, delivery: Delivery, response: Any) -> int:
        """Count the records before the first one the response reports as failed."""
        everything = len(delivery.records)
        if not self._settings.report_item_failures or not isinstance(response, dict):
            return everything
        failures = response.get("batchItemFailures")
        if not failures:
            return everything
        indexes = {record["dynamodb"]["SequenceNumber"]: index for index, record in enumerate(delivery.records)}
        try:
            return min(indexes[entry["itemIdentifier"]] for entry in failures)
        except (KeyError, TypeError):
            return 0
