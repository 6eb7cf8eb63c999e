"""Counters in memory answer, or refuse, random requests as AWS's own engine does."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from dynamodb_counters.testing._dynamodb import request_checks
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table
from simulation.memory_table import MemoryTable
from simulation.night import scaled

SEEDS = range(scaled(2))
REQUESTS = 150
NAMES = ("n", "t", "a_b", "status", "ttl", "Name", "_a", "x1", "pk", "sk")
WRONG = 0.15


class Checked:
    """The client of counters in memory, without counting."""

    def __init__(self, memory: MemoryTable) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            request_checks.check(request_checks.operations()[name], request)
            return getattr(self._memory, name)(**request)

        return call


class Requests:
    """Requests drawn from a seed, some of them wrong."""

    def __init__(self, seed: int, table: str) -> None:
        self._random = random.Random(seed)
        self._table = table
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def draw(self) -> tuple[str, dict[str, Any]]:
        self._names, self._values = {}, {}
        kinds = [self._put] * 5 + [self._update, self._delete, self._get, self._query, self._query, self._scan]
        operation, request = self._random.choice([*kinds, self._transact, self._batch])()
        if operation not in ("transact_write_items", "batch_get_item"):
            request["TableName"] = self._table
            if self._names:
                request["ExpressionAttributeNames"] = dict(self._names)
            if self._values:
                request["ExpressionAttributeValues"] = dict(self._values)
        if self._maybe(WRONG / 3):
            request["ConditonExpression"] = "attribute_exists(pk)"
        return operation, request

    def _maybe(self, share: float = 0.3) -> bool:
        return self._random.random() < share

    def _key(self) -> dict[str, Any]:
        return {"pk": {"S": self._random.choice("ab")}, "sk": {"S": str(self._random.randint(1, 9))}}

    def _value(self) -> dict[str, Any]:
        if self._maybe(WRONG / 2):
            wrong: tuple[dict[str, Any], ...] = ({}, {"S": "a", "N": "1"}, {"SS": []}, {"SS": ["a", "a"]}, {"N": "x"})
            return dict(self._random.choice(wrong))
        return dict(self._random.choice(({"S": "v"}, {"S": "w"}, {"N": "1"}, {"N": "2"}, {"SS": ["a", "b"]})))

    def _name(self) -> str:
        name = self._random.choice(NAMES if self._maybe(WRONG) else NAMES[:3])
        if not self._maybe():
            return name
        self._names[f"#{name}"] = name
        return f"#{name}"

    def _operand(self, value: dict[str, Any]) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def _condition(self) -> str:
        parts = []
        for _ in range(self._random.choice((1, 1, 2))):
            kind = self._random.randrange(3)
            if kind == 0:
                parts.append(f"attribute_exists({self._name()})")
            elif kind == 1:
                parts.append(f"NOT attribute_not_exists({self._name()})")
            else:
                sign = self._random.choice(("=", "<>", "<", ">="))
                value = self._operand(self._random.choice(({"S": "v"}, {"N": "1"})))
                parts.append(f"{self._name()} {sign} {value}")
        return self._random.choice((" AND ", " OR ")).join(parts)

    def _returned(self) -> dict[str, Any]:
        return {"ReturnValues": self._random.choice(("ALL_OLD", "NONE", "ALL_NEW"))} if self._maybe() else {}

    def _guarded(self, request: dict[str, Any]) -> dict[str, Any]:
        return request | ({"ConditionExpression": self._condition()} if self._maybe() else {}) | self._returned()

    def _put(self) -> tuple[str, dict[str, Any]]:
        item = self._key() | {name: self._value() for name in self._random.sample(NAMES[:5], 2)}
        return "put_item", self._guarded({"Item": item})

    def _update(self) -> tuple[str, dict[str, Any]]:
        change = f"SET {self._name()} = {self._operand(self._value())}"
        if self._maybe():
            change += f" REMOVE {self._name()}"
        return "update_item", self._guarded({"Key": self._key(), "UpdateExpression": change})

    def _delete(self) -> tuple[str, dict[str, Any]]:
        return "delete_item", self._guarded({"Key": self._key()})

    def _get(self) -> tuple[str, dict[str, Any]]:
        return "get_item", {"Key": self._key(), **self._projection()}

    def _projection(self) -> dict[str, Any]:
        return {"ProjectionExpression": self._name()} if self._maybe() else {}

    def _page(self) -> dict[str, Any]:
        asked = self._projection()
        if self._maybe():
            asked["FilterExpression"] = self._condition()
        if self._maybe():
            asked["Limit"] = self._random.choice((0, 1, 2, 3, 100))
        if self._maybe(WRONG):
            asked["Select"] = self._random.choice(("COUNT", "ALL_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "ALL"))
        return asked

    def _query(self) -> tuple[str, dict[str, Any]]:
        condition = f"pk = {self._operand({'S': self._random.choice('ab')})}"
        if self._maybe():
            condition += f" AND sk > {self._operand({'S': '4'})}"
        forward = {"ScanIndexForward": False} if self._maybe() else {}
        return "query", {"KeyConditionExpression": condition, **self._page(), **forward}

    def _scan(self) -> tuple[str, dict[str, Any]]:
        asked = self._page()
        # Engines scan in orders of their own.
        asked.pop("Limit", None)
        return "scan", asked

    def _transact(self) -> tuple[str, dict[str, Any]]:
        number = self._random.choice((0, 1, 2, 100, 101))
        puts = [{"TableName": self._table, "Item": {"pk": {"S": "t"}, "sk": {"S": f"{n}"}}} for n in range(number)]
        if puts and self._maybe():
            puts[0]["ConditionExpression"] = "attribute_not_exists(pk)"
        return "transact_write_items", {"TransactItems": [{"Put": put} for put in puts]}

    def _batch(self) -> tuple[str, dict[str, Any]]:
        number = self._random.choice((1, 2, 100, 101))
        keys = [{"pk": {"S": "a"}, "sk": {"S": f"{n}"}} for n in range(1, number + 1)]
        keys += keys[:1] if self._maybe(WRONG) else []
        return "batch_get_item", {"RequestItems": {self._table: {"Keys": keys, "ConsistentRead": True}}}


def answered(client: Any, operation: str, request: dict[str, Any], table: str) -> Any:
    """An answer that does not depend on the order of a scan, or how a request is refused."""
    try:
        answer = getattr(client, operation)(**request)
    except ParamValidationError:
        return "not sent"
    except ClientError as error:
        return error.response["Error"]["Code"]
    items = answer.get("Items", answer.get("Responses", {}).get(table))
    if items is not None and operation != "query":
        items = sorted(map(comparable, items))
    elif items is not None:
        items = list(map(comparable, items))
    told = {name: answer[name] for name in ("Count", "ScannedCount", "LastEvaluatedKey") if name in answer}
    single = {name: comparable(answer[name]) for name in ("Item", "Attributes") if name in answer}
    return items, told, single


def comparable(item: dict[str, Any]) -> str:
    return repr(sorted((name, [(kind, sorted(v) if kind == "SS" else v) for kind, v in value.items()])
                       for name, value in item.items()))  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_are_answered_and_refused_alike(seed: int, dynamodb_local_engine: DynamoDBLocal) -> None:
    engine = dynamodb_local_engine
    memory, real = MemoryTable(lambda: 1.7e9), f"requests-{uuid.uuid4().hex[:12]}"
    create_table(engine.client, real, expires=False)
    ours, theirs = Requests(seed, memory.name), Requests(seed, real)
    different, outcomes = [], set()
    for _ in range(REQUESTS):
        operation, request = ours.draw()
        got = answered(Checked(memory), operation, request, memory.name)
        want = answered(engine.client, *theirs.draw(), real)
        outcomes.add(str(want) if isinstance(want, str) else operation)
        if got != want:
            different.append(f"{operation} {request}: {got}, must be {want}")
    engine.client.delete_table(TableName=real)
    assert not different, "\n".join(different)
    assert {"not sent", "ValidationException", "query", "put_item"} <= outcomes
