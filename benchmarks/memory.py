"""Tables in memory behind the methods of boto3's client: fast enough for 100,000 events, units by the documented rule.

Only what the compared designs call. That it charges as DynamoDB does is what the run on DynamoDB Local is for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.usage import Key, Usage
from demo.cost.capacity import item_bytes, query_units, write_units
from tests.harness.failures import EXCEPTIONS, raise_first
from tests.harness.values import Item
from tests.harness.writes import Attempt, attempt

_INSERT: Final = re.compile(r"""INSERT INTO "([^"]+)" VALUE \{(.*)\}""", re.DOTALL)
_NAME: Final = re.compile(r"'((?:[^']|'')*)':\?")
_PARTITION: Final = re.compile(r"\S+ = (:\w+)")
_BETWEEN: Final = re.compile(r"(\S+) BETWEEN (:\w+) AND (:\w+)")
_PREFIX: Final = re.compile(r"begins_with\((\S+), (:\w+)\)")


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

    exceptions = EXCEPTIONS

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
        return self._single("PutItem", "Put", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        return self._single("UpdateItem", "Update", request)

    def transact_write_items(self, *, TransactItems: Sequence[Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        with self._lock:
            self.usage.call()
            attempts = [self._attempt(kind, request) for part in TransactItems for kind, request in part.items()]
            for key, done in attempts:
                self.usage.write(key, 2 * write_units(max(item_bytes(done.old or {}), item_bytes(done.new or {}))))
            raise_first("TransactWriteItems", [done.reason for _, done in attempts], transaction=True)
            for key, done in attempts:
                self._store(key, done)
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

    def _single(self, operation: str, kind: str, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.usage.call()
            key, done = self._attempt(kind, request)
            refused = done.reason["Code"] != "None"
            units = write_units(max(item_bytes(done.old or {}), 0 if refused else item_bytes(done.new or {})))
            self.usage.write(key, units)
            raise_first(operation, [done.reason], transaction=False)
            self._store(key, done)
        attributes = {"Attributes": dict(done.new or {})} if request.get("ReturnValues") == "ALL_NEW" else {}
        return {**attributes, "ConsumedCapacity": {"CapacityUnits": units}}

    def _attempt(self, kind: str, request: Mapping[str, Any]) -> tuple[Key, Attempt]:
        key = self._key(request["TableName"], request["Item"] if kind == "Put" else request["Key"])
        return key, attempt(kind, request, self._find(key))

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
            self._store(key, Attempt(None, item))
        return {"TableName": parsed[1]}

    def _key(self, table: str, item: Mapping[str, Any]) -> Key:
        return (table, *[item[name]["S"] for name in self._keys[table]])

    def _find(self, key: Key) -> Item | None:
        return self._tables[key[0]].get(key[1], {}).get(key[2] if len(key) > 2 else "")  # noqa: PLR2004

    def _store(self, key: Key, done: Attempt) -> None:
        old, new = done.old, done.new
        if old == new or new is None:
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
