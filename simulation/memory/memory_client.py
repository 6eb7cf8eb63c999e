"""DynamoDB in memory behind the methods of boto3's client: as many of them as the runtime and the benchmarks call."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError
from botocore.paginate import Paginator

from dynamodb_counters._items.schema import item_bytes, read_units
from simulation.memory.client_errors import EXCEPTIONS, failure, raise_first
from simulation.memory.expressions import EXPRESSIONS, Placeholders, matcher, used
from simulation.memory.memory_partitions import Attempt, Key, Table, answer, attempt
from simulation.memory.memory_stream import MemoryStream
from simulation.memory.request_checks import crowd_problem, service_model
from simulation.memory.typed_values import InvalidValueError, Item

_KEY_TYPES: Final = ("HASH", "RANGE")

_PAGES: Final = {
    "input_token": "ExclusiveStartKey",
    "output_token": "LastEvaluatedKey",
    "limit_key": "Limit",
    "result_key": ["Items", "Count", "ScannedCount"],
}

_NAME: Final = r'"((?:[^"]|"")+)"'
_UPDATE: Final = re.compile(
    rf"UPDATE {_NAME} (.*) WHERE {_NAME} = \? AND {_NAME} = \? AND \({_NAME} IS MISSING OR {_NAME} < \?\)", re.DOTALL
)
_CLAUSE: Final = re.compile(rf"SET {_NAME} = (?:{_NAME} \+ )?\?")


def paginator(call: Any) -> Any:
    return Paginator(call, _PAGES, service_model().operation_model("Query"))


@dataclass(slots=True)
class Usage:
    """Units that requests have consumed, refused ones included; `items` has the write units by item."""

    calls: int = 0
    writes: float = 0.0
    reads: float = 0.0
    items: Counter[Key] = field(default_factory=Counter)


class MemoryDynamoDB:
    """A client that counts calls and units in its `usage`."""

    exceptions = EXCEPTIONS
    # Powertools registers its user agent; nothing is sent that could carry it.
    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    page_items = 1000

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tables: dict[str, Table] = {}
        self.usage = Usage()
        self._clock = clock
        self._lock = threading.RLock()

    def create(self, name: str, *keys: str, seed: int = 0, shards: int = 1, ttl: str = "ttl") -> Table:
        """Create a table with the given key attributes; the seed decides its stream's shard ids and numbers."""
        table = Table(name, keys, MemoryStream(seed, shards, self._clock, name), ttl=ttl)
        self.tables[_table_name(name)] = table
        return table

    def get_item(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self.usage.calls += 1
            item = self._table("GetItem", request).find("GetItem", request["Key"])
            self.usage.reads += read_units([item or {}], consistent=request.get("ConsistentRead", False))
            return {"Item": _projected(request, [item])[0]} if item else {}

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._single("PutItem", "Put", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        return self._single("UpdateItem", "Update", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        return self._single("DeleteItem", "Delete", request)

    def transact_write_items(self, *, TransactItems: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        self._require_few("TransactWriteItems", TransactItems=TransactItems)
        writes = [next(iter(item.items())) for item in TransactItems]
        with self._lock:
            self.usage.calls += 1
            keys = [str(self._table("TransactWriteItems", request).key_of(request)) for _, request in writes]
            if len(set(keys)) < len(keys):
                raise failure("TransactWriteItems", "ValidationException", "Transaction request cannot include twice")
            self._execute("TransactWriteItems", writes)
        return {}

    def batch_get_item(self, *, RequestItems: dict[str, dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        [(name, request)] = RequestItems.items()
        with self._lock:
            self.usage.calls += 1
            self._require_few("BatchGetItem", Keys=request["Keys"])
            table = self._table("BatchGetItem", {**request, "TableName": name})
            items = [table.find("BatchGetItem", key) for key in request["Keys"]]
            consistent = request.get("ConsistentRead", False)
            self.usage.reads += sum(read_units([item or {}], consistent=consistent) for item in items)
        return {"Responses": {name: _projected(request, [item for item in items if item])}, "UnprocessedKeys": {}}

    def batch_execute_statement(self, *, Statements: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        """Return UPDATEs of one item by its key."""
        with self._lock:
            self.usage.calls += 1
        self._require_few("BatchExecuteStatement", Statements=Statements)
        answers = [self._statement(statement) for statement in Statements]
        units = sum(units for _, units in answers)
        return {
            "Responses": [answer for answer, _ in answers],
            "ConsumedCapacity": [{"TableName": "", "CapacityUnits": units}],
        }

    def _statement(self, statement: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        try:
            with self._lock:
                [done] = self._execute("UpdateItem", [("Update", _update_of(statement))])
        except ClientError as error:
            code = error.response["Error"]["Code"].removesuffix("Exception")
            refused = {"Code": code.replace("Validation", "ValidationError"), "Message": str(error)}
            item = error.response.get("Item")
            return {"Error": refused | ({"Item": item} if item else {})}, 0.0
        return {"TableName": ""}, done.units

    def query(self, **request: Any) -> dict[str, Any]:
        return self._page("Query", request)

    def scan(self, **request: Any) -> dict[str, Any]:
        return self._page("Scan", request)

    def _page(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.usage.calls += 1
            table = self._table(operation, request)
            try:
                items, more = (table.page if operation == "Query" else table.scanned)(request, self.page_items)
                matches = _projected(request, list(filter(matcher(request, "FilterExpression"), items)))
            except InvalidValueError as error:
                raise failure(operation, "ValidationException", str(error)) from None
            units = read_units(items, consistent=request.get("ConsistentRead", False))
            self.usage.reads += units
        content = {} if request.get("Select") == "COUNT" else {"Items": matches}
        last = {"LastEvaluatedKey": table.key_of({"Item": items[-1]})} if more else {}
        counts = {"Count": len(matches), "ScannedCount": len(items)}
        return {**content, **counts, "ConsumedCapacity": {"CapacityUnits": units}, **last}

    def describe_table(self, **request: Any) -> dict[str, Any]:
        """Return what a run asks for: keys, about how many items there are, how large they are, the stream."""
        table = self._table("DescribeTable", request)
        sizes = [item_bytes(item) for item in table.items()]
        keys = [{"AttributeName": name, "KeyType": kind} for name, kind in zip(table.keys, _KEY_TYPES, strict=False)]
        described = {"ItemCount": len(sizes), "TableSizeBytes": sum(sizes), "LatestStreamArn": table.stream.arn}
        return {"Table": {**described, "KeySchema": keys}}

    def get_paginator(self, operation: str) -> Any:
        return paginator({"query": self.query, "scan": self.scan}[operation])

    def _require_few(self, operation: str, **parts: Any) -> None:
        if problem := crowd_problem(parts):
            raise failure(operation, "ValidationException", problem)

    def _table(self, operation: str, request: Mapping[str, Any]) -> Table:
        """Return the table of a request, whose placeholders must be those that its expressions use."""
        names = {*(request.get("ExpressionAttributeNames") or ()), *(request.get("ExpressionAttributeValues") or ())}
        needed = used(*(request[name] for name in EXPRESSIONS if name in request))
        if names != needed:
            message = f"Value provided unused in expressions, or used and not provided: {sorted(names ^ needed)}"
            raise failure(operation, "ValidationException", message)
        name = _table_name(request["TableName"])
        if name not in self.tables:
            raise failure(operation, "ResourceNotFoundException", "Requested resource not found")
        return self.tables[name]

    def _single(self, operation: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.usage.calls += 1
            [done] = self._execute(operation, [(kind, request)])
        return answer(request, done)

    def _admit(self, tried: Sequence[tuple[Key, Attempt, float]]) -> None:
        """Note what a request is about to write, by keys and units; what refuses it raises."""
        for key, done, units in tried:
            if done.reason["Code"] != "ValidationError":
                self.usage.writes += units
                self.usage.items[key] += units  # type: ignore[assignment]  # typeshed wants whole counts

    def _execute(self, operation: str, writes: list[tuple[str, dict[str, Any]]]) -> list[Attempt]:
        tried = []
        for kind, request in writes:
            table = self._table(operation, request)
            key = table.key_of(request)
            tried.append((table, key, attempt(kind, request, table.keys, table.find(operation, key))))
        # A transaction writes twice: it prepares, then commits.
        times = 2 if operation == "TransactWriteItems" else 1
        self._admit([(table.address(key), done, done.units * times) for table, key, done in tried])
        raise_first(operation, [done.reason for _, _, done in tried])
        for table, key, done in tried:
            if (done.old or None) != done.new:
                table.store(key, done.old, done.new, size=done.old_bytes + done.new_bytes)
        return [done for _, _, done in tried]


def _table_name(name: str) -> str:
    """Return the name of a table that its name or its ARN stands for."""
    return name.rpartition("/")[2]


def _projected(request: Mapping[str, Any], items: list[Item]) -> list[Item]:
    """Return copies of the items with the attributes the request asks for."""
    if "ProjectionExpression" not in request:
        return [dict(item) for item in items]
    bindings = Placeholders.of(request)
    names = [bindings.name(token.strip()) for token in request["ProjectionExpression"].split(",")]
    return [{name: item[name] for name in names if name in item} for item in items]


def _update_of(statement: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of the UpdateItem that does as a PartiQL UPDATE of one item by its key.

    An item that is not there, or lacks a number, is refused.
    """
    parsed = _UPDATE.fullmatch(statement["Statement"])
    assert parsed is not None, f"unknown statement {statement['Statement']!r}"
    table, clauses, pk, sk, guard, _ = (part.replace('""', '"') for part in parsed.groups())
    parameters, numbers = iter(statement["Parameters"]), count()
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    terms = []
    for name, number in _CLAUSE.findall(clauses):
        index = next(numbers)
        names[f"#{index}"], values[f":{index}"] = name.replace('""', '"'), next(parameters)
        terms.append(f"#{index} = #{index} + :{index}" if number else f"#{index} = :{index}")
    key = {pk: next(parameters), sk: next(parameters)}
    names |= {"#pk": pk, "#guard": guard}
    values[":bound"] = next(parameters)
    assert not [*parameters], "more parameters than placeholders"
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": f"SET {', '.join(terms)}",
        "ConditionExpression": "attribute_exists(#pk) AND (attribute_not_exists(#guard) OR #guard < :bound)",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
