"""The writers: plain and packed events and items of other code; recorded once, corrected, retracted, expired.

Answers to the writers of packed events are compared with what the logs must hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from boto3.dynamodb.types import TypeSerializer

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Event
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept, accept_many, retract
from dynamodb_counters._writes.direct_counts import record_once
from simulation.aws.sigv4 import SKEW_SECONDS
from simulation.oracle.aggregates import MOST_TEXT
from simulation.oracle.layout import EventKey, LoggedEvent, Logs, event_key, plain_values, read_logs
from simulation.pairs import coverage, features
from simulation.pairs.apart import Apart, Backend
from simulation.pairs.declared import MOST_GROUPS, ORDER, POISON, TAP, VISIT, signature
from simulation.pairs.engine import Act, Engine

_FINAL: Final = ("accepted", "duplicate", "too_late", "retracted", "absent")


@dataclass(eq=False)
class _Entry:
    """An event to accept or to retract, what was answered, and when; `unanswered` calls may have been done or not."""

    values: dict[str, Any]
    retracts: bool = False
    unanswered: int = 0
    answer: str = ""
    at: float = 0.0


class Answers:
    """Has events accepted and retracted, until there is an answer, and remembers it."""

    def __init__(self, engine: Engine, event: Event) -> None:
        self._engine, self._event = engine, event
        self._all: list[_Entry] = []

    def accept(self, events: Sequence[dict[str, Any]], ended: Callable[[bool], None]) -> None:
        self._ask([_Entry(dict(values)) for values in events], ended)

    def retract(self, values: dict[str, Any], ended: Callable[[bool], None]) -> None:
        self._ask([_Entry(dict(values), retracts=True)], ended)

    def _ask(self, entries: list[_Entry], ended: Callable[[bool], None]) -> None:
        self._all += entries
        self._call(entries, ended)

    def _call(self, entries: list[_Entry], ended: Callable[[bool], None]) -> None:
        event, events = self._event, [entry.values for entry in entries]

        def work(table: Table) -> list[str]:
            if entries[0].retracts:
                return ["retracted" if retract(table, event, events[0]) else "absent"]
            if len(events) == 1:
                return [accept(table, event, events[0]).status]
            return [outcome.status for outcome in accept_many(table, event, events)]

        def failed(reason: str) -> None:
            self._note(entries, ["failed"] * len(entries), ended)
            if reason:
                self._engine.wrong.append(f"a call without a fault failed: {reason}")

        self._engine.call(work, lambda statuses: self._note(entries, statuses, ended), failed=failed)

    def _note(self, entries: list[_Entry], statuses: Sequence[str], ended: Callable[[bool], None]) -> None:
        engine = self._engine
        for entry, status in zip(entries, statuses, strict=True):
            engine.reached[coverage.ANSWERED + status] += 1
            if status in _FINAL:
                entry.answer, entry.at = status, engine.clock()
            else:
                entry.unanswered += 1
                if status != "failed":
                    engine.wrong.append(f"{status}: {entry.values}")
        ended(any(status in ("accepted", "retracted") for status in statuses))
        if rest := [entry for entry in entries if not entry.answer]:
            self._call(rest, ended)

    def wrong(self) -> list[str]:
        """Differences of the logs from what was asked for and answered."""
        if not self._all:
            return []
        logs, wrong = read_logs(self._engine.backend.history()), list[str]()
        of_event: dict[EventKey, list[_Entry]] = {}
        for entry in self._all:
            of_event.setdefault(event_key(entry.values), []).append(entry)
        for key, entries in of_event.items():
            late = self._too_late(key) - SKEW_SECONDS
            wrong += [f"event {key}: {text}" for text in _untrue(entries, logs.events.get(key, LoggedEvent()), late)]
        wrong += [f"event {key} was made up" for key in logs.events.keys() - of_event.keys()]
        return logs.wrong + wrong + self._misread(logs)

    def _misread(self, logs: Logs) -> list[str]:
        """Differences of reads from the logs."""
        backend, packed = self._engine.backend, self._event.packed
        counters = Counters(backend.name, client=backend.client, clock=backend.clock)
        assert packed is not None
        devices = {entry.values["device"] for entry in self._all}
        tenants = [{"device": device} for device in sorted(devices)] if packed.tenant else [{}]
        read = [
            plain_values(values)
            for tenant in tenants
            for values in counters.events(self._event, tenant, consistent=True)
        ]
        now = backend.clock()
        live = [event.values for key, event in logs.events.items() if event.is_live and now < self._too_late(key)]
        return [f"read back, but not there: {values}" for values in read if values not in live] + [
            f"there, but not read back: {values}" for values in live if values is None or read.count(dict(values)) != 1
        ]

    def _too_late(self, key: EventKey) -> float:
        """Return when an event begins to be too late."""
        packed, retention = self._event.packed, self._event.retention
        assert packed is not None
        assert retention is not None
        bucket = packed.bucket.total_seconds()
        return (key[-1] // bucket + 1) * bucket + retention.total_seconds()


def _untrue(entries: Sequence[_Entry], event: LoggedEvent, late: float) -> Iterator[str]:
    """Yield false answers about an event; from `late` on it may have been too late."""
    yield from _untrue_accepts([entry for entry in entries if not entry.retracts], event)
    retractions = [entry for entry in entries if entry.retracts]
    if sum(entry.answer == "retracted" for entry in retractions) > (event.values is not None):
        yield "retracted more often than it was there"
    if not event.is_gone and any(item.answer == "retracted" or item.at < late for item in retractions if item.answer):
        yield "retracted, but still there"
    if event.is_gone and not any(entry.answer or entry.unanswered for entry in retractions):
        yield "gone, but never retracted"
    if any(entry.answer == "too_late" and entry.at < late for entry in entries):
        yield f"answered as too late before {late}"


def _untrue_accepts(entries: Sequence[_Entry], event: LoggedEvent) -> Iterator[str]:
    accepted = [entry.values for entry in entries if entry.answer == "accepted"]
    if untrue := [values for values in accepted if values != event.values]:
        yield f"answered as accepted, but not there: {untrue}"
    if len(accepted) > 1:
        yield f"accepted {len(accepted)} times"
    requests = [entry.values for entry in entries if entry.answer == "accepted" or entry.unanswered]
    if event.values is not None and event.values not in requests:
        yield f"there, but never answered as accepted: {event.values}"
    if event.values is None and not event.is_gone and any(entry.answer == "duplicate" for entry in entries):
        yield "answered as a duplicate, but not there"


PAGES: Final = ("a", "a#b")
_CLIENTS: Final = ("b#c", "c", "50%")
"""Together "a", "b#c" and "a#b", "c" make the same text, unless "#" is escaped."""
_DEVICES: Final = "kl"
_CUSTOMERS: Final = ("ann", "bob", "c#d")
_AMOUNTS: Final = (*map(Decimal, ("1", "-1", "0", "0.1", "-2.50", "12345678901234567890123456789.0625")), 10**30)
_TAGS: Final = ("t", "#", "50%")
_SERIALIZER: Final = TypeSerializer()
_SPOILED: Final = 0.4
"""Share of prices that are none, and of tags that are no list, if orders are spoiled."""
_KNOWS: Final = 0.9
"""Share of writers that count in nothing that is registered otherwise, which is refused."""


class Writers:
    """Writes events, a share of which nothing can add up."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._random = engine.rng
        self._poison = engine.rng.choice((0.0, 0.0, 0.15, 0.3, 0.7))
        self._has_more, self._tap_event = engine.swarm is not None, engine.sources.get(TAP.name, TAP)
        if engine.swarm:
            self._poison = engine.swarm.poison
        self._orders = Orders(engine.backend, engine.rng, spoils=self._poison > 0)
        self._taps: list[dict[str, Any]] = []
        self.answers = Answers(engine, self._tap_event)

    def acts(self) -> Iterable[Act]:
        often = {self._visit: 4, self._tap: 3, **({self._correct: 4} if self._has_more else {})}
        others = (self._order, self._correct, self._retract, self._record_once, self._expire)
        return [(weight, act) for act, weight in (dict.fromkeys(others, 2) | often).items()]

    def write(self) -> None:
        """Write an event, or an order."""
        self._random.choice((self._visit, self._tap, self._order))()

    def touch(self) -> None:
        self._orders.touch()

    def values(self, page: str, number: int) -> dict[str, Any]:
        draw = self._random
        weight: Any = POISON if draw.random() < self._poison else draw.randint(1, 5)
        at = self._time(ahead=self._poison > 0)
        score = {} if number % 3 == 0 else {"score": number if number % 3 == 1 else None}
        more = self._more() if self._has_more else {}
        client = draw.choice(_CLIENTS)
        return {"page": page, "id": str(number), "client": client, "weight": weight, "at": at, **score, **more}

    def _more(self) -> dict[str, Any]:
        """Attributes of swarms, and now and then ones that some declarations cannot count."""
        draw = self._random
        values = {
            "amount": draw.choice(_AMOUNTS),
            "tags": draw.sample(_TAGS, draw.randint(0, 2)),
            "cats": draw.sample(_TAGS, draw.randint(0, 3)),
        }
        if draw.random() < self._poison:
            many = [str(number) for number in range(MOST_GROUPS)]
            poison: list[dict[str, Any]] = [
                {"amount": None},
                {"amount": "much"},
                {"client": (MOST_TEXT + 1) * "x"},
                {"tags": many, "cats": many},
            ]
            values |= draw.choice(poison)
        return values

    def _time(self, *, ahead: bool = False) -> int:
        before: int = self._random.choice((0, 60, 600, 3000, *((-1500,) if ahead else ())))
        return int(self._engine.clock()) - before

    def _some_visit(self) -> dict[str, Any]:
        return self.values(self._random.choice(PAGES), self._random.randrange(15 if self._has_more else 6))

    def _visit(self) -> None:
        values = self._some_visit()
        # Some of them twice, as a producer sends them that did not hear of its success.
        batch = [values, *(self._some_visit() for _ in range(self._random.randint(0, 4 if self._has_more else 1)))]
        batch += self._random.choices(batch, k=self._random.choice((0, 0, 1)))
        self._call(lambda table: len(accept_many(table, VISIT, batch)), features.PLAIN, VISIT.name)

    def _noting(self, feature: str, source: str) -> Callable[[Any], None]:
        return self._engine.noting(feature, self._engine.over(source))

    def _call(self, work: Any, feature: str, source: str) -> None:
        self._engine.call(work, self._noting(feature, source))

    def _order(self) -> None:
        before, names = self._order_items(), self._engine.over(ORDER.name)
        for _ in range(self._random.randint(1, 4) if self._has_more else 1):
            self._orders.change()
        after = self._order_items()
        self._engine.note(features.FOREIGN, names)
        if before.keys() - after.keys():
            self._engine.note(features.RETRACTED, names)
        if any(after[key] != item for key, item in before.items() if key in after):
            self._engine.note(features.CORRECTED, names)

    def _order_items(self) -> dict[str, Any]:
        items = [item for item in self._engine.backend.items() if item["sk"] == {"S": "ORDER"}]
        return {item["pk"]["S"]: dict(item) for item in items}

    def _tap(self) -> None:
        draw, events = self._random, []
        for _ in range(draw.randint(1, 4)):
            if self._taps and draw.random() < 0.4:
                event = dict(draw.choice(self._taps))
            else:
                number = draw.randrange(1000)
                event = {"device": draw.choice(_DEVICES), "id": number, "at": self._time()}
                event |= {"mode": "fast"} if number % 2 else {"code": 204 if number % 4 else 404}
                if self._has_more and draw.random() < 0.2:
                    event["note"] = f"{draw.getrandbits(2000):x}"
            event["force"] = POISON if draw.random() < self._poison else draw.randint(1, 5)
            events.append(event)
        self._taps += events
        self.answers.accept(events, self._noting(features.PACKED, TAP.name))

    def _correct(self) -> None:
        """Replace an event whole, as other code may."""
        backend, kinds = self._engine.backend, ({"S": VISIT.name}, {"S": f"{VISIT.name}#once"})
        if visits := [item for item in backend.items() if item.get("_type") in kinds]:
            item, values = self._random.choice(visits), self._some_visit()
            changed = ["client", "weight", "at"]
            if self._has_more:
                changed = self._random.sample([*changed, "amount", "tags", "cats"], self._random.randint(0, 6))
            new = {name: _SERIALIZER.serialize(values[name]) for name in changed}
            # No write without a change, so that each has its record.
            new["revision"] = {"N": str(self._engine.operations)}
            backend.client.put_item(TableName=backend.name, Item={**item, **new})
            self._engine.note(features.CORRECTED, self._engine.over(VISIT.name))

    def _retract(self) -> None:
        draw = self._random
        if self._taps and draw.random() < (1 if "visit" in self._engine.without else 0.4):
            tap = draw.choice(self._taps)
            # Now and then before it comes.
            tap = tap if draw.random() < 0.65 else {**tap, "id": 2000 + draw.randrange(9)}
            self.answers.retract(tap, self._noting(features.RETRACTED, TAP.name))
        else:
            values = self._some_visit()
            self._call(lambda table: retract(table, VISIT, values), features.RETRACTED, VISIT.name)

    def _record_once(self) -> None:
        registered = self._engine.registered()
        declared = [
            level
            for level in self._engine.deployments.declared
            if level.source == VISIT and not (isinstance(level, Aggregate) and level.pages)
        ]
        if self._random.random() < _KNOWS:
            declared = [level for level in declared if signature(registered.get(level.name, level)) == signature(level)]
        values = self._some_visit()

        def work(table: Table) -> bool:
            return record_once(table, VISIT, values, declared).status == "accepted"

        self._engine.call(work, self._engine.noting(features.ONCE, [level.name for level in declared]))

    def _expire(self) -> None:
        self._engine.clock.advance(self._random.choice((60, 900, 1800)))
        sources = {VISIT.name: VISIT, f"{VISIT.name}#once": VISIT, f"{TAP.name}#pack": TAP}
        for item in self._engine.backend.expire(self._random.randint(1, 4)):
            source = sources.get(item.get("_type", {}).get("S", ""))
            name = source.name if source else ORDER.name if "customer" in item else ""
            if name:
                self._engine.note(features.EXPIRED, self._engine.over(name))


class _OwnItems:
    """Items among the counts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self, key: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer = self._backend.client.get_item(TableName=self._backend.name, Key=key, ConsistentRead=True)
        item: Mapping[str, Any] | None = answer.get("Item")
        return item

    def put(self, item: Mapping[str, Any]) -> None:
        self._backend.client.put_item(TableName=self._backend.name, Item=item)

    def delete(self, key: Mapping[str, Any]) -> None:
        self._backend.client.delete_item(TableName=self._backend.name, Key=key)


class Orders:
    """The orders of a table, changed at random."""

    def __init__(self, backend: Backend, rng: random.Random, *, spoils: bool) -> None:
        self._backend = backend
        self._items = backend if isinstance(backend, Apart) else _OwnItems(backend)
        self._random = rng
        self._spoils = spoils

    def touch(self) -> None:
        """Make a change that is sure to have a record."""
        self._put("ORDER#touch", self._order_values())

    def change(self) -> None:
        """Insert, correct or delete an order."""
        draw = self._random
        pk = f"ORDER#{draw.randrange(7)}"
        key = {"pk": {"S": pk}, "sk": {"S": "ORDER"}}
        item, chance = self._items.get(key), draw.random()
        if item and chance < 0.3:
            self._items.delete(key)
        elif item and chance < 0.6:
            # A correction in place; often it moves the item to another group.
            attribute, value = draw.choice(list(self._order_values().items()))
            self._items.put({**item, attribute: value})
        else:
            self._put(pk, self._order_values())

    def _put(self, pk: str, values: dict[str, Any]) -> None:
        item = {"pk": {"S": pk}, "sk": {"S": "ORDER"}, **values}
        if self._random.random() < 0.1:
            # No order, as long as it stays so.
            del item["customer"]
        self._items.put(item)

    def _order_values(self) -> dict[str, Any]:
        draw = self._random
        expires_at = {"N": str(int(self._backend.clock()) + draw.choice((300, 1800, 10**7)))}
        values = {
            "customer": {"S": draw.choice(_CUSTOMERS)},
            "shop": {"S": draw.choice("xyz")},
            "price": {"S": "dear"} if self._is_spoiled() else {"N": str(draw.randint(1, 9))},
            "size": {"N": str(draw.randint(1, 5))},
            "tags": {"N": "1"}
            if self._is_spoiled()
            else {"L": [{"S": tag} for tag in draw.sample("pqr", draw.randint(0, 3))]},
        }
        return {**values, "ttl": expires_at}

    def _is_spoiled(self) -> bool:
        return self._spoils and self._random.random() < _SPOILED
