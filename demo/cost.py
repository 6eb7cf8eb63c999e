"""Cost of an example: DynamoDB's published rules applied to the requests of its clients."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._cost.counted_items import INDEX_UNITS
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import CHUNK, LEADERBOARD
from dynamodb_counters.testing._dynamodb.memory_partitions import read_units

_PARAMETERS: Final = "demo_parameters"
_TAKEN: Final = "DuplicateItem"
_ATTRIBUTE: Final = re.compile(r"'((?:[^']|'')+)':\?")
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class Meter:
    """Adds up the units of one DynamoDB client's inserts and queries, by the sizes of the items.

    An insert whose condition fails costs as much as a successful one. `item_units` is what writing each of the `items`
    read once would cost, its move in the ranking index included. Use a client of its own for each thing to be measured.
    """

    def __init__(self, client: Any) -> None:
        self.write_units = 0.0
        self.read_units = 0.0
        self.queries = 0
        self.items = 0
        self.item_units = 0.0
        # Clients are shared among threads, and += is not atomic.
        self._lock = threading.Lock()
        client.meta.events.register("before-parameter-build.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

    @property
    def units_per_item(self) -> float:
        """Average write units of an update of one of the items read."""
        return self.item_units / self.items if self.items else 1.0

    @property
    def units_per_query(self) -> float:
        return self.read_units / self.queries if self.queries else 0.0

    def _before(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context[_PARAMETERS] = params

    def _after(self, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: Any) -> None:
        params = context[_PARAMETERS]
        code = parsed.get("Error", {}).get("Code")
        if code not in (None, _CONDITION_FAILED):
            return
        with self._lock:
            if model.name == "PutItem":
                self.write_units += write_units(item_bytes(params["Item"]))
            elif model.name == "BatchExecuteStatement":
                for statement, answer in zip(params["Statements"], parsed["Responses"], strict=True):
                    if answer.get("Error", {}).get("Code") in (None, _TAKEN):
                        self.write_units += write_units(item_bytes(_inserted(statement)))
            elif model.name == "Query":
                self.queries += 1
                self.read_units += read_units(parsed["Items"], consistent=params.get("ConsistentRead", False))
                if "IndexName" not in params:
                    self._weigh(parsed["Items"])
            elif model.name == "BatchGetItem":
                for found in parsed["Responses"].values():
                    self._weigh(found)

    def _weigh(self, items: Sequence[Mapping[str, Any]]) -> None:
        # Chunks of events are read, too, but counts are what an update writes.
        items = [item for item in items if CHUNK not in item]
        self.items += len(items)
        self.item_units += sum(write_units(item_bytes(item)) for item in items)
        # An update of a ranked item changes its score.
        self.item_units += sum(INDEX_UNITS for item in items if LEADERBOARD in item)


def _inserted(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The item of a PartiQL INSERT with a parameter per attribute."""
    names = [name.replace("''", "'") for name in _ATTRIBUTE.findall(statement["Statement"])]
    return dict(zip(names, statement["Parameters"], strict=True))


@dataclass(frozen=True)
class Costs:
    """Write units per event sent and per distinct event, None where not measured; read units per window query.

    `metrics` are the sums of what the aggregator reports of itself; `accept_reads` the read units per event sent.
    """

    accept: float | None
    aggregate: float | None
    window: float
    metrics: Mapping[str, float]
    accept_reads: float = 0.0

    def section(self) -> dict[str, float | None]:
        return {"accept": self.accept, "aggregate": self.aggregate}

    def line(self, digits: int) -> str:
        accept, aggregate = (
            "unknown" if value is None else f"{value:.{digits}f}" for value in (self.accept, self.aggregate)
        )
        return f"{accept} to accept a view sent, {aggregate} to aggregate a distinct one"


@dataclass(frozen=True)
class Bill:
    """The meters on an example's clients, and the metrics of its aggregator."""

    accepting: Meter
    reading: Meter
    metrics: Callable[[], Mapping[str, float]]

    def costs(self, sent: int, distinct: int) -> Costs:
        """Divide the units measured so far among the events."""
        if not sent:
            return Costs(0.0, 0.0, self.reading.units_per_query, {})
        metrics, aggregate = self.metrics(), None
        if metrics:
            # A refused update costs as much as a successful one.
            updates = metrics.get("ItemsUpdated", 0) + metrics.get("AlreadyCounted", 0)
            aggregate = round(updates * self.reading.units_per_item / distinct, 4)
        accept, reads = (round(units / sent, 4) for units in (self.accepting.write_units, self.accepting.read_units))
        return Costs(accept, aggregate, self.reading.units_per_query, metrics, reads)
