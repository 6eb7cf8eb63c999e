"""The table in memory answers as AWS's own engine does: what schedules, and chance, have sent is sent again, there."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from functools import partial, reduce
from itertools import chain, islice, product
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
from simulation.memory.typed_values import Item, comparable
from simulation.memory_table import MemoryTable
from simulation.night import NIGHT, scaled
from simulation.pairs.backend import MakeBackend, MemoryBackend
from simulation.pairs.schedule import PairSchedule
from simulation.pairs.swarm import Swarm

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


# Requests at random: every shape that the table in memory knows, over few keys, names and values

_SORTS: Final = ("1", "10", "2", "a", "ab", "é", "\uffff", "\U0001f600")
_KEYS: Final[tuple[Item, ...]] = tuple({"pk": {"S": pk}, "sk": {"S": sk}} for pk in "ab" for sk in _SORTS)
_NO_KEYS: Final = ({"pk": {"S": ""}, "sk": {"S": "1"}}, {"pk": {"S": "a"}}, {"pk": {"N": "1"}, "sk": {"S": "1"}})
_NAMES: Final = ("x", "y", "status", "it's")
"""One of them is a reserved word, and one has no place in an expression."""

_NUMBERS: Final[tuple[Item, ...]] = tuple(
    {"N": text} for text in ("0", "1", "-1.50", "1E+2", "9" * 38, f"0.{1:0130}", "9E125", "10", "9")
)
_TEXTS: Final[tuple[Item, ...]] = tuple({"S": text} for text in ("", "a", "ab", "b", "é", "\uffff", "\U0001f600"))
_BYTES: Final[tuple[Item, ...]] = tuple({"B": value} for value in (b"", b"\0", b"a", b"ab", b"b", b"\xff"))
_ALIKE: Final[tuple[tuple[Item, ...], ...]] = (
    *(_NUMBERS, _TEXTS, _BYTES),
    ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, {"SS": ["a"]}, {"S": "a"}, {"BS": [b"a"]}),
    ({"NS": ["1"]}, {"NS": ["1.0"]}, {"NS": ["1", "2"]}, {"N": "1"}),
    ({"L": []}, {"L": [{"N": "1"}]}, {"L": [{"N": "1.0"}]}, {"N": "1.00"}),
    ({"M": {}}, {"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "1.0"}}}),
    ({"BOOL": True}, {"BOOL": False}, {"NULL": True}),
)
"""Values that are the same to DynamoDB, or nearly so."""

_NO_VALUES: Final[tuple[Item, ...]] = (
    *({"N": text} for text in ("NaN", "one", "", "1" * 39, "1E126", "1E-131")),
    *({"SS": []}, {"SS": ["a", "a"]}, {"S": "x" * 409_590}),
)
_STATEMENT: Final = (
    'UPDATE "{}" SET "x" = "x" + ? SET "y" = ? WHERE "pk" = ? AND "sk" = ? AND ("status" IS MISSING OR "status" < ?)'
)

Request = dict[str, Any]


def comparisons(table: str) -> Iterator[tuple[str, Request]]:
    """Put values that are alike, and compare each of them with all; then name what has no place in an expression."""
    tests = {"x = :v": "", "contains(x, :v)": "", "x < :v": "NSB", "x >= :v": "NSB", "begins_with(x, :v)": "SB"}
    for values in _ALIKE:
        for key, value in zip(_KEYS, values, strict=False):
            yield "put_item", {"TableName": table, "Item": {**key, "x": value}}
        for value, (test, kinds) in product(values, tests.items()):
            if not kinds or not value.keys().isdisjoint(kinds):
                yield "scan", {"TableName": table, "FilterExpression": test, "ExpressionAttributeValues": {":v": value}}
    for name in ("status", "Ttl", "_x", "it's"):
        yield "scan", {"TableName": table, "ProjectionExpression": name}
    yield "batch_get_item", {"RequestItems": {table: {"Keys": [_KEYS[0]] * 2}}}
    number: Item = {"N": "1"}
    yield "put_item", {"TableName": table, "Item": {**_KEYS[0], "x": number, "status": number}}
    deep = [reduce(lambda value, _: {"L": [value]}, range(levels), number) for levels in (31, 32)]
    for more in (*({"x": value} for value in deep), *({"n" * size: number} for size in (0, 65_535, 65_536))):
        yield "put_item", {"TableName": table, "Item": {**_KEYS[0], **more}}
    for bound in (number, {"N": "1.5"}):
        update = {"Statement": _STATEMENT.format(table), "Parameters": [number, number, *_KEYS[0].values(), bound]}
        yield "batch_execute_statement", {"Statements": [{**update, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}]}


class RandomRequests:
    """Requests to one table, which a seed decides; one in fifty has a wrong part."""

    def __init__(self, seed: int, table: str) -> None:
        self._random, self._table = random.Random(seed), table
        self._common: list[Item] = []
        self._names: dict[str, str] = {}
        self._values: dict[str, Item] = {}

    def __iter__(self) -> Iterator[tuple[str, Request]]:
        makers: dict[str, Callable[[], Request]] = {
            "put_item": lambda: self._put(self._some("NONE", "ALL_OLD")),
            "update_item": lambda: self._update(self._some("NONE", "ALL_OLD", "ALL_NEW")),
            "delete_item": lambda: self._delete(self._some("NONE", "ALL_OLD")),
            "transact_write_items": self._transaction,
            "batch_execute_statement": self._statements,
            "get_item": lambda: {**self._read(), "Key": self._key()},
            "batch_get_item": self._batch_get,
            "query": self._query,
            "scan": lambda: self._read(FilterExpression=self._condition()),
        }
        while True:
            # Few at a time, so that they meet their like.
            alike = self._random.sample(_ALIKE, 2)
            self._common = [value for values in alike for value in values] + self._random.sample(_NUMBERS, 3)
            for operation in self._random.choices([*makers], (2, 4, 1, 2, 1, 1, 1, 2, 2), k=30):
                yield operation, makers[operation]()

    def _some(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _is_rare(self) -> bool:
        return self._random.random() < 0.02

    def _maybe(self, text: str) -> str:
        return text if self._random.random() < 0.4 else ""

    def _key(self) -> Any:
        return self._some(*_NO_KEYS) if self._is_rare() else self._some(*_KEYS)

    def _value(self) -> Any:
        return self._some(*_NO_VALUES) if self._is_rare() else self._some(*self._common)

    def _common_of(self, *kinds: str) -> Any:
        return [value for value in self._common if not value.keys().isdisjoint(kinds)] or _TEXTS

    # Expressions

    def _name(self, *among: str) -> str:
        name: str = self._some(*(among or _NAMES))
        if self._is_rare():
            return str(self._some(name, "sk"))
        if name in ("x", "pk", "sk"):
            return name
        self._names[f"#{name[:2]}"] = name
        return f"#{name[:2]}"

    def _token(self, *among: Item) -> str:
        token = f":{len(self._values)}"
        self._values[token] = self._some(*among) if among else self._value()
        return token

    def _condition(self, depth: int = 2) -> str:
        name, token = self._name(), self._token
        if depth and self._random.random() < 0.3:
            p, q = self._condition(depth - 1), self._condition(depth - 1)
            return str(self._some(f"NOT {p}", f"{p} AND {q}", f"{p} OR {q}", f"({p} OR {q}) AND {p}"))
        low, high = sorted(self._random.sample(self._some(_NUMBERS, _TEXTS, _BYTES), 2), key=comparable)
        test: Callable[[], str] = self._some(
            lambda: f"attribute_exists({name})",
            lambda: f"attribute_not_exists({name})",
            lambda: f"begins_with({name}, {token(*self._common_of('S', 'B'))})",
            *[lambda: f"contains({name}, {token()})"] * 2,
            lambda: f"attribute_type({name}, {token({'S': 'S'}, {'S': 'N'}, {'S': 'SS'}, {'S': 'BOOL'})})",
            lambda: f"{name} BETWEEN {token(low)} AND {token(high)}",
            lambda: f"{self._some(self._name, token)()} {self._some('=', '<>')} {token()}",
            *[lambda: f"{name} {self._some('<', '<=', '>', '>=')} {token(*self._common_of('N', 'S', 'B'))}"] * 2,
        )
        return test()

    def _change(self) -> str:
        name, other, token = self._name(), self._name(), self._token
        number = partial(token, *_NUMBERS)
        change: Callable[[], str] = self._some(
            lambda: f"SET {name} = {token()}",
            lambda: f"SET {name} = {other}",
            lambda: f"SET {name} = if_not_exists({other}, {token()})",
            lambda: f"SET {name} = {other} + {number()}",
            lambda: f"SET {name} = {number()} - {other}",
            lambda: f"SET {name} = {other}, {other} = {name}",
            lambda: f"SET {name} = if_not_exists({name}, {number()}) + {number()}",
            lambda: f"REMOVE {name}, {other}",
            lambda: f"ADD {name} {number()}",
            lambda: f"ADD {name} {number()} SET {other} = {token()}",
            lambda: f"SET {name} = {token()} REMOVE {other}",
        )
        return change()

    def _expressions(self, **texts: str) -> Request:
        """Return a request with expressions and the placeholders that they have; now and then with one more."""
        request: Request = {"TableName": self._table} | {name: text for name, text in texts.items() if text}
        used = " ".join(texts.values())
        fields: dict[str, dict[str, Any]] = {
            "ExpressionAttributeNames": self._names,
            "ExpressionAttributeValues": self._values,
        }
        self._names, self._values = {}, {}
        for name, placeholders in fields.items():
            if entries := {key: value for key, value in placeholders.items() if key in used or self._is_rare()}:
                request[name] = entries
        return request

    # Writes

    def _write(self, returned: str = "", **texts: str) -> Request:
        more = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if self._random.random() < 0.5 else {}
        return self._expressions(**texts) | more | ({"ReturnValues": returned} if returned else {})

    def _put(self, returned: str = "") -> Request:
        names = self._random.sample(_NAMES, self._random.randint(0, 4))
        item = {**self._key(), **{name: self._value() for name in names}}
        return {**self._write(returned, ConditionExpression=self._maybe(self._condition())), "Item": item}

    def _update(self, returned: str = "") -> Request:
        texts = {"UpdateExpression": self._change(), "ConditionExpression": self._maybe(self._condition())}
        return {**self._write(returned, **texts), "Key": self._key()}

    def _delete(self, returned: str = "") -> Request:
        return {**self._write(returned, ConditionExpression=self._maybe(self._condition())), "Key": self._key()}

    def _check(self) -> Request:
        return {**self._write(ConditionExpression=self._condition()), "Key": self._key()}

    def _transaction(self) -> Request:
        makers = {"Put": self._put, "Update": self._update, "Delete": self._delete, "ConditionCheck": self._check}
        items: list[dict[str, Request]] = []
        for key in self._random.sample(_KEYS, self._random.randint(1, 3)):
            kind = self._some(*makers)
            write = makers[kind]()
            items.append({kind: {**write, **({"Item": {**write["Item"], **key}} if "Item" in write else {"Key": key})}})
        return {"TransactItems": items}

    def _statements(self) -> Request:
        some, old = self._some, {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        parameters = (
            [some(*_NUMBERS), some(*self._common), *key.values(), some(*_NUMBERS, *_TEXTS)]
            for key in self._random.sample(_KEYS, self._random.randint(1, 3))
        )
        return {
            "Statements": [{"Statement": _STATEMENT.format(self._table), "Parameters": p, **old} for p in parameters]
        }

    # Reads

    def _read(self, **texts: str) -> Request:
        names = [self._name(name) for name in self._random.sample(("pk", "sk", *_NAMES), 3)]
        request = self._expressions(**texts, ProjectionExpression=self._maybe(", ".join(dict.fromkeys(names))))
        return {**request, "ConsistentRead": self._some(True, False)}

    def _batch_get(self) -> Request:
        request = {**self._read(), "Keys": [self._key() for _ in range(self._random.randint(1, 3))]}
        return {"RequestItems": {request.pop("TableName"): request}}

    def _query(self) -> Request:
        key = self._some(*_KEYS)
        low, high = ({"S": text} for text in sorted(self._random.choices(_SORTS, k=2)))
        # At a bound of the sort key, DynamoDB Local knows that nothing follows.
        sort, most = self._some(
            *[("", self._some(1, 2, 3))] * 3,
            (f" AND begins_with(sk, {self._token(low)})", 1),
            (f" AND sk BETWEEN {self._token(low)} AND {self._token(high)}", 100),
            (f" AND sk {self._some('=', '<', '<=', '>', '>=')} {self._token(low)}", 100),
        )
        condition = f"pk = {self._token(key['pk'])}{sort}"
        request = self._read(KeyConditionExpression=condition, FilterExpression=self._condition(1))
        if not sort and self._random.random() < 0.3:
            request["ExclusiveStartKey"] = key
        if self._is_rare():
            request["Select"] = "COUNT"
        return {**request, "Limit": most, "ScanIndexForward": self._some(True, False)}


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
