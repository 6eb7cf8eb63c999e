"""Units of the known designs that the benchmark compares, per event."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._cost.batches import Batches, touched_by_rank
from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.own_units import Stage
from dynamodb_counters._items.item_sizes import write_units

_ITEMS_PER_TRANSACTION: Final = 99
"""Items of a transaction, which has 100 with the checkpoint."""


@dataclass(frozen=True, slots=True)
class KnownDesign:
    """A known design: what an event takes when it comes, and what each counter it belongs to takes then or later.

    `event_writes` are writes of an item per event, of which `small` ones hold no event; `counter_writes` are those of
    each counter. A `transaction` doubles all, and alone makes counts survive redelivery. From the `stream`, one that
    `coalesces` writes a counter once per batch.
    """

    name: str
    title: str
    event_writes: int = 0
    small_writes: int = 0
    counter_writes: int = 1
    transaction: bool = False
    stream: bool = False
    coalesces: bool = False

    def units(self, event_bytes: float, counted: Sequence[Counted], batches: Batches, shards: int) -> dict[str, Stage]:
        factor = 2 if self.transaction and not self.coalesces else 1
        accept = factor * (self.event_writes * write_units(event_bytes) + self.small_writes)
        if not self.coalesces:
            return {"accept": Stage(accept), "update": Stage(self.counter_writes * len(counted) * factor)}
        touched = sum(
            touched_by_rank(one.groups if one.scattered else -(-one.groups // shards), one.skew, batches.events)
            for one in counted
        )
        found = {"accept": Stage(accept), "update": Stage((1 + self.transaction) * touched / batches.events)}
        if self.transaction:
            transactions = math.ceil(touched / _ITEMS_PER_TRANSACTION)
            found["checkpoint"] = Stage(2 * transactions / batches.events, 1 / batches.events)
        return found

    def requests(self, counted: Sequence[Counted]) -> float:
        """Requests per event that its function waits for, one after the other, where it does not coalesce."""
        if self.transaction:
            return 1.0
        return self.event_writes + self.small_writes + (0 if self.stream else self.counter_writes * len(counted))


KNOWN: Final = (
    KnownDesign("naive_increment", "naive increment"),
    KnownDesign("transaction_marker", "transaction: marker + counter", event_writes=1, transaction=True),
    KnownDesign("put_then_increment", "put, then increment", event_writes=1),
    KnownDesign("powertools_idempotency", "Powertools idempotency + ADD", small_writes=2),
    KnownDesign("hour_minute_keys", "hour and minute keys", event_writes=1, counter_writes=2, stream=True),
    KnownDesign("coalescing", "coalescing stream aggregator", event_writes=1, stream=True, coalesces=True),
    KnownDesign(
        "checkpoint_transaction",
        "checkpoint in a transaction",
        event_writes=1,
        transaction=True,
        stream=True,
        coalesces=True,
    ),
)
