"""The table in memory answers as AWS's own engine does: what schedules, and chance, have sent is sent again, there."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters import Aggregate, Count, Counter, Counters, Event, Ranking
from dynamodb_counters._items.schema import item_bytes, write_units
from simulation.clock import VirtualClock
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table
from simulation.memory import request_checks
from simulation.memory.memory_client import paginator
from simulation.memory_table import MemoryTable
from simulation.night import NIGHT, scaled
from simulation.pairs.backend import MakeBackend, MemoryBackend
from simulation.pairs.schedule import PairSchedule
from simulation.pairs.swarm import Swarm
from tests.integration.random_requests import RandomRequests, comparisons

VISIT: Final = Event("visit", key="id")
BY_ID: Final = Aggregate("by_id", VISIT, by="id", measures={"visits": Count()})
SHOP: Final = Counter("shop", n=Count(), ranking=Ranking(measure="n", leaderboard="SHOPS"))

_METERED: Final = ("put_item", "update_item", "delete_item", "query", "scan")
"""Local says what they take, as DynamoDB documents it."""

_PLACE: Final = ("Limit", "Segment", "TotalSegments")
_UNLIKE: Final = ("ResponseMetadata", "ConsumedCapacity", "UnprocessedKeys", "Message", "TableName")
"""What engines are free to answer, or Local does not."""


class Exchange(NamedTuple):
    operation: str
    request: dict[str, Any]
    answer: Any
    """A `ClientError` if the request is refused."""


class Recording(list[Exchange]):
    """What reached some tables, below all faults, in order."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[str, ...]] = {}
        """Names of their keys."""

    def send(self, operation: str, client: Any, request: dict[str, Any]) -> Any:
        def checked(**request: Any) -> Any:
            request |= {"ReturnConsumedCapacity": "TOTAL"} if operation in _METERED else {}
            request_checks.check(request_checks.operations()[operation], request)
            return getattr(client, operation)(**request)

        answer = _answer(checked, request)
        self.append(Exchange(operation, deepcopy(request), deepcopy(answer)))
        if isinstance(answer, ClientError):
            raise answer
        return answer


class _RecordedTable(MemoryBackend):
    """A table in memory whose requests are recorded."""

    def __init__(
        self, recording: Recording, rng: random.Random, clock: VirtualClock | None = None, **more: Any
    ) -> None:
        super().__init__(rng, clock, **{**more, "name": f"replay-{uuid.uuid4().hex[:12]}"})
        self.client = _RecordedClient(self, recording)
        self._recording = recording
        recording.tables[self.name] = self._only.keys

    def beside(self, _name: str, keys: tuple[str, ...], ttl: str) -> MemoryBackend:
        same = random.Random()
        same.setstate(self._drawn)
        return _RecordedTable(self._recording, same, self.clock, keys=keys, ttl=ttl)

    def expire(self, limit: int | None = None) -> list[dict[str, Any]]:
        expired = super().expire(limit)
        for item in expired:
            self._note_deleted(item)
        return expired

    def _note_deleted(self, item: Mapping[str, Any]) -> None:
        key = {name: item[name] for name in self._only.keys}
        request = {"TableName": self.name, "Key": key, "ReturnValues": "ALL_OLD"}
        units = {"CapacityUnits": write_units(item_bytes(item))}
        self._recording.append(Exchange("delete_item", request, {"Attributes": item, "ConsumedCapacity": units}))

    def drop(self) -> None:
        self.client.scan(TableName=self.name)


class _RecordedClient:
    def __init__(self, table: _RecordedTable, recording: Recording) -> None:
        self.exceptions, self.meta = table.exceptions, table.meta
        self._table, self._recording = table, recording

    def __getattr__(self, operation: str) -> Any:
        def send(**request: Any) -> Any:
            if operation == "query":
                # Engines end pages by bytes.
                request = {"Limit": self._table.page_items, **request}
            if operation != "scan":
                return self._recording.send(operation, self._table, request)
            if "ExclusiveStartKey" not in request:
                self._scan({name: value for name, value in request.items() if name not in _PLACE})
            return self._table.scan(**request)

        return send

    def get_paginator(self, operation: str) -> Any:
        return paginator(getattr(self, operation))

    def _scan(self, request: dict[str, Any]) -> None:
        """Record the whole scan of which a caller asks for a part: engines scan in orders of their own."""
        most, self._table.page_items = self._table.page_items, 10**6
        self._recording.send("scan", self._table, request)
        self._table.page_items = most


def _use_doors(_seed: int, make: MakeBackend) -> None:
    """Call what schedules do not, or seldom."""
    table = make(random.Random(1))
    counters = Counters(table.name, client=table.client, clock=table.clock)
    for values in ({"id": "1"}, {"id": "1", "it's": "é", ":v": "{}", 'a "b"': "x.y[0]"}):
        counters.accept(VISIT, values)
        counters.accept_many(VISIT, [values, {"id": "2", "it's": "é"}, {"id": "3"}])
        counters.record_once(VISIT, {"id": "4", **values}, [BY_ID])
    assert counters.accept_many(VISIT, [{"id": "6", "note": "x" * 410_000}])[0].status == "rejected"
    assert [counters.retract(VISIT, {"id": name}) for name in "25"] == [True, False]
    counters.increment(SHOP, {}, amount={"n": 2})
    assert counters.reset(SHOP, {}) == {"n": 2}
    counters.get_many([(BY_ID, {"id": name}) for name in "145"])
    counters.erase(VISIT, {"id": "1"}, counts="keep")
    counters.erase(VISIT, {"id": "3"}, counts="take_back")
    table.drop()


_RUNS: Final[Mapping[str, Callable[[int, MakeBackend], object]]] = {
    "schedules": lambda seed, make: PairSchedule(seed, make, swarm=Swarm.draw(seed)).run(),
    "pairs": lambda seed, make: PairSchedule(seed, make).run(),
    "doors": _use_doors,
}
_DAY: Final = (("doors", 1), *(("schedules", seed) for seed in (8, 17, 18)))
_NIGHT: Final = (
    *(("schedules", seed) for seed in range(1, 1 + scaled(20))),
    *(("pairs", seed) for seed in range(5, 5 + scaled(3))),
)


def recorded(kind: str, seed: int) -> Recording:
    recording = Recording()
    _RUNS[kind](seed, lambda rng: _RecordedTable(recording, rng))
    return recording


def recorded_at_random(seed: int, number: int) -> Recording:
    recording, table = Recording(), MemoryTable(time.time, name=f"random-{uuid.uuid4().hex[:12]}")
    recording.tables[table.name] = ("pk", "sk")
    for operation, request in chain(comparisons(table.name), islice(RandomRequests(seed, table.name), number)):
        with suppress(ClientError):
            recording.send(operation, table, request)
    return recording


def differences(recording: Recording, local: DynamoDBLocal) -> Iterator[str]:
    for name, keys in recording.tables.items():
        create_table(local.client, name, expires=False, keys=keys, streams=False)
    for operation, request, answer in recording:
        metered = {**request, "ReturnConsumedCapacity": "TOTAL"} if operation in _METERED else request
        ours = _comparable(operation, answer)
        theirs = _comparable(operation, _answer(getattr(local.client, operation), metered))
        if ours != theirs:
            yield f"{operation} {request}:\n  {ours}, expected\n  {theirs}"
    for name in recording.tables:
        local.client.delete_table(TableName=name)


def _answer(send: Callable[..., Any], request: dict[str, Any]) -> Any:
    try:
        return send(**request)
    except ClientError as refused:
        return refused


def _comparable(operation: str, answer: Any) -> Any:
    if isinstance(answer, ClientError):
        if any(reason["Code"] == "ValidationError" for reason in answer.response.get("CancellationReasons", ())):
            # Local refuses such a transaction as a whole.
            return [("Error", [("Code", "ValidationException")])]
        return _plain(answer.response)
    if operation == "describe_table":
        return answer["Table"]["KeySchema"]
    if operation == "batch_get_item":
        answer = {"Items": [item for items in answer["Responses"].values() for item in items]}
    if operation in ("batch_get_item", "scan"):
        answer = {**answer, "Items": sorted(map(_plain, answer["Items"]), key=repr)}
    # Local takes an empty page for free, where DynamoDB takes the least there is.
    is_metered = operation in _METERED and answer.get("ScannedCount") != 0
    return _plain({**answer, "Units": answer["ConsumedCapacity"]["CapacityUnits"] if is_metered else 0.0})


def _plain(value: Any) -> Any:
    """Return a value with sets and maps in order, and numbers by their worth: Local keeps zeros at their end."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(number := value.get("N"), str):
        return Decimal(number).normalize()
    if "NS" in value:
        return sorted(Decimal(part).normalize() for part in value["NS"])
    if "SS" in value:
        return sorted(value["SS"])
    return sorted((name, _plain(part)) for name, part in value.items() if name not in _UNLIKE)


@pytest.mark.parametrize(("kind", "seed"), [*_DAY, *(_NIGHT if NIGHT else ())])
def test_requests_of_schedules_are_answered_alike(dynamodb_local_engine: DynamoDBLocal, kind: str, seed: int) -> None:
    assert next(differences(recorded(kind, seed), dynamodb_local_engine), None) is None


@pytest.mark.parametrize("seed", range(scaled(1)))
def test_requests_at_random_are_answered_alike(dynamodb_local_engine: DynamoDBLocal, seed: int) -> None:
    assert next(differences(recorded_at_random(seed, 400), dynamodb_local_engine), None) is None
