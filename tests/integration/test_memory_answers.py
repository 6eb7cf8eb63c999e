"""The table in memory answers each request of the simulators as AWS's own engine does."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Counters, Event
from simulation.clock import VirtualClock
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table
from simulation.faults.hooked_client import HookedClient
from simulation.night import NIGHT, scaled
from simulation.pairs.schedule import PairSchedule
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.schedule import Schedule

SCHEDULES = range(8, 8 + scaled(1))
PAIRS = range(5, 5 + NIGHT)
SHAPES = {
    "batch_execute_statement",
    "batch_get_item",
    "delete_item",
    "get_item",
    "put_item",
    "put_item refused",
    "query",
    "scan",
    "transact_write_items",
    "transact_write_items refused",
    "update_item",
    "update_item refused",
}


class _Sent:
    """Requests by shape, and the answers that differ."""

    def __init__(self) -> None:
        self.shapes: set[str] = set()
        self.different: list[str] = []

    def note(self, name: str, request: Mapping[str, Any], ours: Any, theirs: Any) -> None:
        self.shapes.add(f"{name} refused" if isinstance(theirs, ClientError) else name)
        got, expected = _comparable(name, request, ours), _comparable(name, request, theirs)
        if got != expected:
            self.different.append(f"{name} {request}: {got}, expected {expected}")


class _Mirrored(MemoryBackend):
    """A table in memory, and one in DynamoDB Local that gets the same requests."""

    def __init__(
        self,
        engine: DynamoDBLocal,
        sent: _Sent,
        rng: random.Random,
        clock: VirtualClock | None = None,
        keys: tuple[str, ...] = ("pk", "sk"),
        ttl: str = "ttl",
    ) -> None:
        super().__init__(rng, clock, name=f"mirrored-{uuid.uuid4().hex[:12]}", keys=keys, ttl=ttl)
        self._engine, self._sent, self._keys = engine, sent, keys
        create_table(engine.client, self.name, expires=False, keys=keys, streams=False)
        self.client = HookedClient(self, self._send)

    def __setattr__(self, name: str, value: Any) -> None:
        # Engines end pages by bytes: pages of a few items have no equal there.
        super().__setattr__(name, 10**6 if name == "page_items" else value)

    def _send(self, name: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
        ours = _answer(send)
        if name != "scan" or not {"Limit", "ExclusiveStartKey", "Segment"} & request.keys():
            # Engines scan in orders of their own.
            theirs = _answer(lambda: getattr(self._engine.client, name)(**request))
            self._sent.note(name, request, ours, theirs)
        if isinstance(ours, ClientError):
            raise ours
        return ours

    def beside(self, _name: str, keys: tuple[str, ...], ttl: str) -> MemoryBackend:
        return _Mirrored(self._engine, self._sent, random.Random(1), self.clock, keys, ttl)

    def delete(self, key: Mapping[str, Any]) -> Mapping[str, Any]:
        self._engine.client.delete_item(TableName=self.name, Key=key)
        return super().delete(key)

    def expire(self, limit: int | None = None) -> list[dict[str, Any]]:
        expired = super().expire(limit)
        for item in expired:
            self._engine.client.delete_item(TableName=self.name, Key={name: item[name] for name in self._keys})
        return expired

    def drop(self) -> None:
        self.client.scan(TableName=self.name)
        self._engine.client.delete_table(TableName=self.name)


def _answer(send: Callable[[], Any]) -> Any:
    try:
        return send()
    except ClientError as refused:
        return refused


def _comparable(name: str, request: Mapping[str, Any], answer: Any) -> Any:
    """The parts of an answer that the runtime may rely on."""
    if isinstance(answer, ClientError):
        response: Any = answer.response
        reasons = [(one["Code"], _item(one.get("Item", {}))) for one in response.get("CancellationReasons", [])]
        return response["Error"]["Code"], _item(response.get("Item", {})), reasons
    if name == "batch_execute_statement":
        return [one.get("Error", {}).get("Code") for one in answer["Responses"]]
    if name == "batch_get_item":
        return sorted(map(_item, answer["Responses"][next(iter(request["RequestItems"]))]))
    if name == "query":
        return list(map(_item, answer.get("Items", []))), answer["Count"], answer.get("LastEvaluatedKey")
    if name == "scan":
        return sorted(map(_item, answer["Items"]))
    return _item(answer.get("Item", {})), _item(answer.get("Attributes", {}))


def _item(item: Mapping[str, Any]) -> str:
    """An item as text: names and sets in order, and numbers as DynamoDB writes them, which is not 0.0 as in Local."""
    return repr(_ordered({"M": item}))


def _ordered(value: Mapping[str, Any]) -> Any:
    [(kind, inner)] = value.items()
    match kind:
        case "M":
            return sorted((name, _ordered(it)) for name, it in inner.items())
        case "N":
            return Decimal(inner).normalize()
        case _:
            return kind, sorted(inner) if kind == "SS" else inner


def _write_again(backend: MemoryBackend) -> None:
    """Write what is there: alone, in bulk, and in a transaction; take it back, and read several groups at once."""
    counters = Counters(backend.name, client=backend.client, clock=backend.clock)
    visit = Event("visit", key="id")
    visits = Aggregate("visits", visit, measures={"visits": Count()})
    by_id = Aggregate("by_id", visit, by="id", measures={"visits": Count()})
    for values in ({"id": "1"}, {"id": "1", "it's": "é"}):
        counters.accept(visit, values)
        counters.accept_many(visit, [values, {"id": "2", "it's": "é"}, {"id": "3"}])
        counters.record_once(visit, {"id": "4", **values}, [visits])
    assert counters.retract(visit, {"id": "2", "it's": "é"})
    assert not counters.retract(visit, {"id": "5"})
    counters.get_many([(by_id, {"id": name}) for name in ("1", "4", "5")])
    backend.drop()


def test_requests_of_schedules_and_pairs_are_answered_alike(dynamodb_local_engine: DynamoDBLocal) -> None:
    sent = _Sent()

    def make(rng: random.Random) -> MemoryBackend:
        return _Mirrored(dynamodb_local_engine, sent, rng)

    backend: MakeBackend = make
    _write_again(make(random.Random(1)))
    for seed in SCHEDULES:
        Schedule(seed, backend).run()
        assert not sent.different, sent.different[0]
    for seed in PAIRS:
        PairSchedule(seed, backend).run()
        assert not sent.different, sent.different[0]
    assert SHAPES - sent.shapes == set()
