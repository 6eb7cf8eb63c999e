"""Schedules for traces of the tally: one group, incremented, reset, erased from and redefined by backfills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from dynamodb_counters.testing._dynamodb.memory_stream import MemoryStream, Record
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import HookedClient
from simulation.pairs import features
from simulation.pairs.declared import Deployments
from simulation.pairs.engine import Act, Engine
from simulation.pairs.runs import Changes
from simulation.pairs.subjects import Subject
from simulation.schedules.backend import MemoryBackend
from simulation.schedules.housekeeping import housekeeping, seeded

SALE: Final = Event("sale", pk="CLIENT#{client}", sk="SALE")
MEASURE: Final = "amount"
_CLIENTS: Final = "abcdef"
GROUP: Final = {"shop": "oslo"}


def _sold(attribute: str) -> Aggregate:
    return Aggregate("sold", SALE, pk="SHOP#{shop}", sk="SOLD", measures={MEASURE: Sum(attribute)})


DEFINITIONS: Final = (_sold("amount"), _sold("worth"))
"""Turns of redefinitions: an event is worth three times its amount."""
WEIGHTS: Final = {"amount": 1, "worth": 3}


def _dies(name: str, send: Callable[[], Any], _: dict[str, Any]) -> Any:
    """Send, as a process that dies before it deletes what it has marked."""
    if name == "delete_item":
        raise Crashed
    return send()


class Turns(Deployments):
    """Deployments in which the group's two definitions take turns."""

    def __init__(self) -> None:
        self.made = [{}]
        self.first = []
        self._attributes = 0

    @property
    def definition(self) -> Aggregate:
        return DEFINITIONS[len(self.made) % len(DEFINITIONS)]

    @property
    def subjects(self) -> list[Subject]:
        return [Subject(self.definition, lambda _: [])]

    def change(self, *, renames: bool = True) -> tuple[str, frozenset[str]]:  # noqa: ARG002
        self.made.append({})
        return features.REDEFINED, frozenset({self.definition.name})

    def change_attributes(self) -> frozenset[str]:
        return frozenset()


class Shop:
    """Writers: sales, corrections, deletions, erasures, increments and resets."""

    def __init__(self, engine: Engine, turns: Turns) -> None:
        self._backend, self._random, self._turns = engine.backend, engine.rng, turns
        # Processes, each of which learns of a switch in its own time.
        clock, jitter = self._backend.clock, engine.rng.random
        self._tables = [Table(self._backend.name, self._backend.client, clock=clock, jitter=jitter) for _ in range(3)]

    def acts(self) -> Iterable[Act]:
        often = {self._sell: 9, self._erase: 6}
        return [(weight, act) for act, weight in (often | dict.fromkeys(self._others(), 3)).items()]

    def _others(self) -> Sequence[Callable[[], object]]:
        return self._delete, self._increment, self._reset

    def write(self) -> None:
        self._random.choice([self._sell, *self._others()])()

    def touch(self) -> None:
        """A change that is sure to have a record."""
        self._put("touch", 1)

    def drop(self) -> None:
        """Delete what nothing counts or reads."""
        clock = self._backend.clock
        clock.advance(3 * DAY)
        table = Table(self._backend.name, self._backend.client, clock=clock, sleep=clock.advance)
        for _ in Dropping(table=table, now=clock).steps():
            pass

    def _table(self) -> Table:
        return self._random.choice(self._tables)

    def _sell(self) -> None:
        client, amount = self._random.choice(_CLIENTS), self._random.randint(1, 5)
        values = {**GROUP, "client": client, "amount": amount, "worth": 3 * amount}
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
            client = HookedClient(client, _dies)
        table = Table(self._backend.name, client, clock=self._backend.clock)
        known = sorted(item["client"]["S"] for item in self._backend.items() if item.get("_type") == {"S": SALE.name})
        wanted = Wanted(SALE, {"client": self._random.choice(known or _CLIENTS)})
        try:
            EventItems(table, wanted).sweep(keeps_counts=True, writes=True)
        except Crashed:
            return

    def _increment(self) -> None:
        increment(self._table(), self._turns.definition, GROUP, self._random.choice((-7, 50, 300)))

    def _reset(self) -> None:
        reset(self._table(), self._turns.definition, GROUP)


class TallySchedule:
    """Backfills of one group's redefinitions, with changes of its tally; the specification judges the counts.

    Shards stay, and positions in a shard separate eras.
    """

    def __init__(self, seed: int, turns: Turns | None = None, shop: type[Shop] = Shop) -> None:
        turns = turns or Turns()
        self._engine = engine = Engine(seed, MemoryBackend, ("split", "split_near"), turns)
        engine.operations = engine.most_operations = 2 * engine.operations
        assert isinstance(engine.backend, MemoryBackend)
        self.backend = engine.backend
        self.backend.stream.disorder = lambda: 0.0
        self._shop = shop(engine, turns)
        self._changes = Changes(engine, self._shop, least=3)
        engine.actors = [self._shop, self._changes]
        engine.runner_ended, engine.runner_moved = self._changes.ended, self._changes.moved

    def run(self) -> list[str]:
        """Run it; return what is wrong with its runs."""
        engine = self._engine
        with housekeeping(eager=engine.rng.random() < 0.5), seeded(engine.rng, small=engine.rng.random() < 0.3):
            engine.go()
            self._shop.touch()
            engine.go()
            engine.calm_down()
            if self._changes.backfill_all():
                self._end()
        return engine.wrong + engine.function.standstills

    def _end(self) -> None:
        if self._engine.rng.random() < 0.5:
            self._shop.drop()
            for _ in range(3):
                self._shop.write()
            self._engine.go()


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
