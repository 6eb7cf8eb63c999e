"""Tables in memory behind the methods of boto3's client: fast enough for 100,000 events, units by the documented rule.

Only what the compared designs call. That it charges as DynamoDB does is what the run on DynamoDB Local is for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError

from benchmarks.expressions import Item, compile_condition, compile_update
from benchmarks.usage import Key, Usage
from demo.capacity import item_bytes, query_units, write_units

_INSERT: Final = re.compile(r"""INSERT INTO "([^"]+)" VALUE \{(.*)\}""", re.DOTALL)
_NAME: Final = re.compile(r"'((?:[^']|'')*)':\?")
_PARTITION: Final = re.compile(r"\S+ = (:\w+)")
_BETWEEN: Final = re.compile(r"(\S+) BETWEEN (:\w+) AND (:\w+)")
_PREFIX: Final = re.compile(r"begins_with\((\S+), (:\w+)\)")


class ConditionalCheckFailedException(ClientError):  # noqa: N818
    """As the client's ``exceptions`` name it."""


class TransactionCanceledException(ClientError):  # noqa: N818
    """As the client's ``exceptions`` name it."""


class MemoryClient:
    """Tables, and what using them cost.

    Parameters
    ----------
    usage : Usage
        Where costs are noted.

    Attributes
    ----------
    stream : list of dict
        Stream records of all tables, in order.
    """

    exceptions = SimpleNamespace(
        ConditionalCheckFailedException=ConditionalCheckFailedException,
        TransactionCanceledException=TransactionCanceledException,
    )

    def __init__(self, usage: Usage) -> None:
        self.usage = usage
        self.stream: list[dict[str, Any]] = []
        self._keys: dict[str, tuple[str, ...]] = {}
        self._tables: dict[str, dict[str, dict[str, Item]]] = {}
        self._lock = threading.RLock()

    def create(self, name: str, *keys: str) -> None:
        """Create a table with the given key attributes."""
        self._keys[name], self._tables[name] = keys, {}

    def put_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        return self._single("PutItem", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        return self._single("UpdateItem", request)

    def transact_write_items(self, *, TransactItems: Sequence[Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        with self._lock:
            self.usage.call()
            written = [self._outcome(request) for part in TransactItems for request in part.values()]
            for key, old, new, _ok in written:
                self.usage.write(key, 2 * write_units(max(item_bytes(old or {}), item_bytes(new))))
            if not all(ok for *_, ok in written):
                reasons = [
                    {"Code": "None"} if ok else {"Code": "ConditionalCheckFailed", **({"Item": old} if old else {})}
                    for _, old, _, ok in written
                ]
                answer: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
                raise TransactionCanceledException(answer, "TransactWriteItems")
            for key, old, new, _ok in written:
                self._store(key, old, new)
        return {}

    def batch_execute_statement(self, *, Statements: Sequence[Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3; INSERTs only."""
        self.usage.call()
        return {"Responses": [self._insert(statement) for statement in Statements]}

    def get_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        with self._lock:
            self.usage.call()
            found = self._find(self._key(request["TableName"], request["Key"]))
        self.usage.read(query_units([found or {}], consistent=request.get("ConsistentRead", False)))
        return {"Item": dict(found)} if found else {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        [(name, asked)] = RequestItems.items()
        self.usage.call()
        with self._lock:
            found = [self._find(self._key(name, key)) for key in asked["Keys"]]
        units = sum(query_units([item or {}]) for item in found)
        self.usage.read(units)
        return {
            "Responses": {name: [dict(item) for item in found if item]},
            "UnprocessedKeys": {},
            "ConsumedCapacity": [{"TableName": name, "CapacityUnits": units}],
        }

    def query(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        text, values = request["KeyConditionExpression"], request["ExpressionAttributeValues"]
        partition = _PARTITION.search(text)
        assert partition is not None
        with self._lock:
            self.usage.call()
            items = sorted(self._tables[request["TableName"]].get(values[partition[1]]["S"], {}).items())
        between, prefix = _BETWEEN.search(text), _PREFIX.search(text)
        if between:
            first, last = values[between[2]]["S"], values[between[3]]["S"]
            items = [(key, item) for key, item in items if first <= key <= last]
        elif prefix:
            items = [(key, item) for key, item in items if key.startswith(values[prefix[2]]["S"])]
        found = [item for _, item in items]
        self.usage.read(query_units(found, consistent=request.get("ConsistentRead", False)))
        return {"Items": [dict(item) for item in found], "Count": len(found)}

    @property
    def meta(self) -> Any:
        """See boto3; what is registered is never called."""
        return SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))

    def get_paginator(self, operation: str) -> Any:
        """See boto3; ``query`` only, whose answers are one page."""
        assert operation == "query"
        return SimpleNamespace(paginate=lambda **request: iter([self.query(**request)]))

    def items(self, table: str) -> Iterator[Item]:
        """Give all items of a table, free of charge."""
        for partition in self._tables[table].values():
            yield from partition.values()

    def _single(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.usage.call()
            key, old, new, ok = self._outcome(request)
            units = write_units(max(item_bytes(old or {}), item_bytes(new) if ok else 0))
            self.usage.write(key, units)
            if not ok:
                answer: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": "failed"}}
                if old and request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
                    answer["Item"] = dict(old)
                raise ConditionalCheckFailedException(answer, operation)
            self._store(key, old, new)
        attributes = {"Attributes": dict(new)} if request.get("ReturnValues") == "ALL_NEW" else {}
        return {**attributes, "ConsumedCapacity": {"CapacityUnits": units}}

    def _outcome(self, request: Mapping[str, Any]) -> tuple[Key, Item | None, Item, bool]:
        table, names = request["TableName"], request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        key = self._key(table, request["Item"] if "Item" in request else request["Key"])
        old = self._find(key)
        condition = request.get("ConditionExpression")
        ok = not condition or compile_condition(condition)(old or {}, names, values)
        if "Item" in request:
            return key, old, dict(request["Item"]), ok
        new: Item = dict(old or request["Key"])
        if ok:
            try:
                compile_update(request["UpdateExpression"])(new, names, values)
            except ValueError as error:
                answer: Any = {"Error": {"Code": "ValidationException", "Message": str(error)}}
                raise ClientError(answer, "UpdateItem") from error
        return key, old, new, ok

    def _insert(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        parsed = _INSERT.fullmatch(statement["Statement"])
        assert parsed is not None
        names = [name.replace("''", "'") for name in _NAME.findall(parsed[2])]
        item = dict(zip(names, statement["Parameters"], strict=True))
        with self._lock:
            key = self._key(parsed[1], item)
            old = self._find(key)
            self.usage.write(key, write_units(item_bytes(old or item)))
            if old is not None:
                return {"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}}
            self._store(key, None, item)
        return {"TableName": parsed[1]}

    def _key(self, table: str, item: Mapping[str, Any]) -> Key:
        return (table, *[item[name]["S"] for name in self._keys[table]])

    def _find(self, key: Key) -> Item | None:
        return self._tables[key[0]].get(key[1], {}).get(key[2] if len(key) > 2 else "")  # noqa: PLR2004

    def _store(self, key: Key, old: Item | None, new: Item) -> None:
        if old == new:
            return  # DynamoDB writes no stream record for a change that is none.
        table = self._tables[key[0]]
        table.setdefault(key[1], {})[key[2] if len(key) > 2 else ""] = new  # noqa: PLR2004
        change: dict[str, Any] = {
            "Keys": {name: new[name] for name in self._keys[key[0]]},
            "NewImage": new,
            "SequenceNumber": str(10**21 + len(self.stream)),
            "ApproximateCreationDateTime": 1_795_168_404,
            **({"OldImage": old} if old is not None else {}),
        }
        self.stream.append({"eventName": "INSERT" if old is None else "MODIFY", "dynamodb": change, "table": key[0]})
