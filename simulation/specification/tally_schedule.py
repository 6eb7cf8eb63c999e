"""Schedules for traces of the tally: one group, incremented, reset, erased from and redefined by backfills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters._backfill.dropping import Dropping
from dynamodb_counters._declarations import Aggregate, Event, Sum
from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._erase.plain_erase import EventItems
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY
from dynamodb_counters._writes.accept import accept, retract
from dynamodb_counters._writes.increments import increment, reset
from dynamodb_counters.testing._dynamodb.memory_stream import MemoryStream
from dynamodb_counters.testing._dynamodb.stream_source import Record
from simulation.backfill.backfill_schedule import BackfillSchedule
from simulation.backfill.subjects import Subject
from simulation.faults.actors import Crashed
from simulation.schedules.backend import Backend

SALE: Final = Event("sale", pk="CLIENT#{client}", sk="SALE")
MEASURE: Final = "amount"
_CLIENTS: Final = "abcdef"
_GROUP: Final = {"shop": "oslo"}


def _sold(attribute: str) -> Aggregate:
    return Aggregate("sold", SALE, pk="SHOP#{shop}", sk="SOLD", measures={MEASURE: Sum(attribute)})


DEFINITIONS: Final = (_sold("amount"), _sold("worth"))
"""Turns of redefinitions: an event is worth three times its amount."""
WEIGHTS: Final = {"amount": 1, "worth": 3}


class _Dies:
    """A client of a process that dies before it deletes what it has marked."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        if name == "delete_item":
            raise Crashed
        return getattr(self._client, name)


class _Shop:
    """Writers: sales, corrections, deletions, erasures, increments and resets; each call is one of them."""

    def __init__(self, backend: Backend, rng: Random, declared: Callable[[], Aggregate], operations: int) -> None:
        self._backend, self._random, self._declared = backend, rng, declared
        # Processes, each of which learns of a switch in its own time.
        self._tables = [Table(backend.name, backend.client, clock=backend.clock, jitter=rng.random) for _ in range(3)]
        self.left = operations

    def write(self) -> None:
        self.left -= 1
        kinds = (
            self._sell,
            self._sell,
            self._sell,
            self._delete,
            self._erase,
            self._erase,
            self._increment,
            self._reset,
        )
        self._random.choice(kinds)()

    def touch(self) -> None:
        """A change that the stream is sure to tell."""
        self._put("touch", 1)

    def expire(self) -> None:
        """Nothing expires: what is erased is deleted at once, or by the next erasure."""

    def drop(self) -> None:
        """Delete what nobody counts or reads any more."""
        self._backend.clock.advance(3 * DAY)
        clock = self._backend.clock
        table = Table(self._backend.name, self._backend.client, clock=clock, sleep=clock.advance)
        for _ in Dropping(table=table, now=clock).steps():
            pass

    def _table(self) -> Table:
        return self._random.choice(self._tables)

    def _sell(self) -> None:
        client, amount = self._random.choice(_CLIENTS), self._random.randint(1, 5)
        values = {**_GROUP, "client": client, "amount": amount, "worth": 3 * amount}
        if accept(self._table(), SALE, values).status != "accepted" and self._random.random() < 0.7:
            # Other code replaces it whole; it may be marked as erased.
            self._put(client, amount)

    def _put(self, client: str, amount: int) -> None:
        numbers = {name: {"N": str(amount * weight)} for name, weight in WEIGHTS.items()}
        item = {"pk": {"S": f"CLIENT#{client}"}, "sk": {"S": "SALE"}, "_type": {"S": SALE.name}, "shop": {"S": "oslo"}}
        self._backend.client.put_item(TableName=self._backend.name, Item={**item, "client": {"S": client}, **numbers})

    def _delete(self) -> None:
        retract(self._table(), SALE, {"client": self._random.choice(_CLIENTS)})

    def _erase(self) -> None:
        client: Any = self._backend.client
        if self._random.random() < 0.3:
            client = _Dies(client)
        table = Table(self._backend.name, client, clock=self._backend.clock)
        known = sorted(item["client"]["S"] for item in self._backend.items() if item.get("_type") == {"S": SALE.name})
        wanted = Wanted(SALE, {"client": self._random.choice(known or _CLIENTS)})
        try:
            EventItems(table, wanted).sweep(keeps_counts=True, writes=True)
        except Crashed:
            return

    def _increment(self) -> None:
        increment(self._table(), self._declared(), _GROUP, self._random.choice((-7, 50, 300)))

    def _reset(self) -> None:
        reset(self._table(), self._declared(), _GROUP)


class TallySchedule(BackfillSchedule):
    """Backfills of one group's redefinitions, beside whatever changes its tally."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        # Positions in a shard tell eras apart, and an item's records stay in one shard.
        self.backend.stream.disorder = lambda: 0.0
        self._population: Any = _Shop(self._backend, self._random, self._definition, self._operations)

    @property
    def backend(self) -> Any:
        return self._backend

    def _definition(self) -> Aggregate:
        return DEFINITIONS[len(self._deployments) % len(DEFINITIONS)]

    def _subjects(self) -> list[Subject]:
        return [Subject(self._definition(), lambda _: [])]

    def _pace(self) -> float:
        is_filling = any(runner.phase in ("scanning", "draining", "adding") for runner in self._runners)
        return 0.4 if is_filling else 0.05

    def _finish(self) -> None:
        super()._finish()
        if self._random.random() < 0.5:
            self._population.drop()
            self._population.left = 3
            self._go(self._is_over)

    def _audit(self, when: str, *, whole: bool) -> None:
        """The specification judges what was counted."""

    def _split(self) -> None:
        """Shards stay."""

    _split_near = _split


@contextmanager
def in_order() -> Iterator[list[tuple[str, Record]]]:
    """Every record of a stream with its shard, in the order in which they were written."""
    append, found, seen = MemoryStream.append, list[tuple[str, Record]](), dict[str, int]()

    def appended(self: MemoryStream, *arguments: Any, **options: Any) -> None:
        append(self, *arguments, **options)
        for name, shard in self._shards.items():
            if len(shard.records) > seen.get(name, 0):
                seen[name] = len(shard.records)
                found.append((name, shard.records[-1]))

    with patch.object(MemoryStream, "append", appended):
        yield found
