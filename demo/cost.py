"""Cost of an example: DynamoDB's published rules applied to the requests of its clients."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from counters_lambda.counting.feeds import StreamReader
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.layouts import is_split
from dynamodb_counters._items.schema import LEADERBOARD, TYPE, item_bytes, read_units, write_units

_PARAMETERS: Final = "demo_parameters"
INDEX: Final = "index of "
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class Meter:
    """Adds up the units of one DynamoDB client's inserts and queries, by the sizes of the items.

    An insert whose condition fails costs as much as a successful one. Use a client of its own for each thing to be
    measured.
    """

    def __init__(self, client: Any) -> None:
        self.write_units = 0.0
        self.read_units = 0.0
        self.queries = 0
        # Clients are shared among threads, and += is not atomic.
        self._lock = threading.Lock()
        client.meta.events.register("before-parameter-build.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

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
            elif model.name == "Query":
                self.queries += 1
                self.read_units += read_units(parsed["Items"], consistent=params.get("ConsistentRead", False))


def units_written(streams: Any, stream: str) -> Counter[str]:
    """Write units of all changes in a stream, by the type of their items; those of the index, by `INDEX` and type."""
    reader, units = StreamReader(streams, stream, sleep=lambda _: None, quiet_pages=50), Counter[str]()
    for shard in (entry.id for entry in reader.shards()):
        for record in reader.records(shard):
            old, new = (record["dynamodb"].get(name) for name in ("OldImage", "NewImage"))
            images = [image for image in (old, new) if image]
            # Two pages are put in a transaction.
            changed = max(write_units(item_bytes(image)) for image in images) * (1 + is_split(old, new))
            kind = images[-1].get(TYPE, {}).get("S", "")
            units[kind] += int(changed)
            if LEADERBOARD in images[-1]:
                units[INDEX + kind] += 2  # An entry is deleted, another one put.
    return units


@dataclass(frozen=True)
class Costs:
    """Write units per event sent to accept it, and per distinct event by aggregate or window; read units per query."""

    accept: float
    counted: Mapping[str, float]
    window: float

    def aggregate(self, declared: Iterable[Declaration]) -> float:
        """Write units per distinct event of some aggregates and windows, without the index."""
        return round(sum(self.counted.get(declaration.name, 0.0) for declaration in declared), 4)

    def index(self, declared: Iterable[Declaration]) -> float:
        """Those of the ranking index."""
        return round(sum(self.counted.get(INDEX + declaration.name, 0.0) for declaration in declared), 4)


@dataclass(frozen=True)
class Bill:
    """The meters on an example's clients, and what its table's stream comes to."""

    accepting: Meter
    reading: Meter
    table_units: Callable[[], Mapping[str, float]]

    def costs(self, total: int, distinct: int) -> Costs:
        """Divide the units measured so far among the events."""
        if not total:
            return Costs(0.0, {}, self.reading.units_per_query)
        counted = {name: units / distinct for name, units in self.table_units().items()}
        return Costs(round(self.accepting.write_units / total, 4), counted, self.reading.units_per_query)
