"""A table in memory with the methods of boto3's DynamoDB client that the store uses."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.harness.failures import EXCEPTIONS, ConditionalCheckFailedException, failure, raise_first
from tests.harness.queries import Paginator, page, partition_of
from tests.harness.requests import check_key, check_placeholders, named_key
from tests.harness.shards import MemoryStream
from tests.harness.values import Item
from tests.harness.writes import answer, attempt

_INSERT: Final = re.compile(r"""INSERT INTO "([^"]+)" VALUE \{(.*)\}""", re.DOTALL)
_NAME: Final = re.compile(r"'((?:[^']|'')*)':\?")


class MemoryTable:
    """One table: a client and a stream.

    Parameters
    ----------
    clock : callable
        Gives seconds since 1970.
    seed : int, optional
        Decides shard ids and sequence numbers. Default 0.
    shards : int, optional
        How many the stream begins with. Default 1.
    name : str, optional
        The table's name.
    page_items : int, optional
        How many items a page of a query holds. Default 1000.
    """

    exceptions = EXCEPTIONS

    def __init__(
        self,
        clock: Callable[[], float],
        seed: int = 0,
        shards: int = 1,
        name: str = "counters",
        page_items: int = 1000,
    ) -> None:
        self.name = name
        self.stream = MemoryStream(seed, shards, clock)
        self._clock = clock
        self._page_items = page_items
        self._partitions: dict[str, dict[str, Item]] = {}
        self._lock = threading.RLock()

    def items(self) -> Iterator[Item]:
        """Give all items, in no order."""
        for partition in self._partitions.values():
            yield from partition.values()

    def expire(self, limit: int = 100) -> list[Item]:
        """Delete items whose TTL is over, as DynamoDB does in the background.

        Parameters
        ----------
        limit : int, optional
            How many at most. Default 100.

        Returns
        -------
        list of dict
            The deleted items.
        """
        with self._lock:
            due = [item for item in self.items() if "ttl" in item and float(item["ttl"]["N"]) <= self._clock()][:limit]
            for item in due:
                self._store({"pk": item["pk"], "sk": item["sk"]}, item, None, by_ttl=True)
            return due

    def get_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        with self._lock:
            check_placeholders("GetItem", request)
            item = self._find("GetItem", request)
            return {"Item": dict(item)} if item else {}

    def put_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        with self._lock:
            return self._execute("PutItem", [("Put", request)])[0]

    def update_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        with self._lock:
            return self._execute("UpdateItem", [("Update", request)])[0]

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        with self._lock:
            return self._execute("DeleteItem", [("Delete", request)])[0]

    def transact_write_items(self, *, TransactItems: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        writes = [next(iter(item.items())) for item in TransactItems]
        with self._lock:
            keys = [str(named_key(request)) for _, request in writes]
            if len(set(keys)) < len(keys):
                raise failure("TransactWriteItems", "ValidationException", "Transaction request cannot include twice")
            self._execute("TransactWriteItems", writes)
        return {}

    def batch_get_item(self, *, RequestItems: dict[str, dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3."""
        [(name, asked)] = RequestItems.items()
        with self._lock:
            found = [self._find("BatchGetItem", {"TableName": name, "Key": key}) for key in asked["Keys"]]
        return {"Responses": {name: [dict(item) for item in found if item]}, "UnprocessedKeys": {}}

    def batch_execute_statement(self, *, Statements: list[dict[str, Any]], **_: Any) -> dict[str, Any]:  # noqa: N803
        """See boto3; INSERTs only."""
        return {"Responses": [self._insert(statement) for statement in Statements]}

    def query(self, **request: Any) -> dict[str, Any]:
        """See boto3."""
        check_placeholders("Query", request)
        with self._lock:
            return page(request, self._partitions.get(partition_of(request), {}), self._page_items)

    def get_paginator(self, operation: str) -> Paginator:
        """See boto3; ``query`` only."""
        assert operation == "query"
        return Paginator(self.query)

    def _insert(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        parsed = _INSERT.fullmatch(statement["Statement"])
        if parsed is None:
            return {"Error": {"Code": "ValidationError", "Message": "Statement wasn't well formed"}}
        names = [name.replace("''", "'") for name in _NAME.findall(parsed[2])]
        item = dict(zip(names, statement["Parameters"], strict=True))
        try:
            self.put_item(TableName=parsed[1], Item=item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionalCheckFailedException:
            return {"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}}
        except ClientError as error:
            return {"Error": {"Code": "ValidationError", "Message": str(error)}}
        return {"TableName": parsed[1]}

    def _execute(self, operation: str, writes: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        attempts = []
        for kind, request in writes:
            check_placeholders(operation, request)
            attempts.append(attempt(kind, request, self._find(operation, request)))
        reasons = [tried.reason for tried in attempts]
        raise_first(operation, reasons, transaction=operation == "TransactWriteItems")
        for (_, request), done in zip(writes, attempts, strict=True):
            if (done.old or None) != done.new:
                self._store(named_key(request), done.old, done.new)
        return [answer(request, done) for (_, request), done in zip(writes, attempts, strict=True)]

    def _store(self, key: Item, old: Item | None, new: Item | None, *, by_ttl: bool = False) -> None:
        partition = self._partitions.setdefault(key["pk"]["S"], {})
        if new is None:
            partition.pop(key["sk"]["S"])
        else:
            partition[key["sk"]["S"]] = new
        self.stream.append(key, old or None, new, by_ttl=by_ttl)

    def _find(self, operation: str, request: Mapping[str, Any]) -> Item | None:
        if request["TableName"] != self.name:
            raise failure(operation, "ResourceNotFoundException", "Requested resource not found")
        key = named_key(request)
        check_key(operation, key)
        return self._partitions.get(key["pk"]["S"], {}).get(key["sk"]["S"])
