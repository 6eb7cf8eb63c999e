"""A table in memory with the methods of boto3's DynamoDB client that the store uses."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.harness.expressions import Placeholders, compile_condition, compile_update, used
from tests.harness.shards import MemoryStream
from tests.harness.values import InvalidValueError, Item, parse, size, stored

_MAX_ITEM_BYTES: Final = 400 * 1024
_MAX_PK_BYTES: Final = 2048
_MAX_SK_BYTES: Final = 1024
_INSERT: Final = re.compile(r"""INSERT INTO "([^"]+)" VALUE \{(.*)\}""", re.DOTALL)
_NAME: Final = re.compile(r"'((?:[^']|'')*)':\?")
_EXPRESSIONS: Final = ("ConditionExpression", "UpdateExpression", "KeyConditionExpression", "ProjectionExpression")


class ConditionalCheckFailedException(ClientError):  # noqa: N818
    """As the client's ``exceptions`` name it."""


class TransactionCanceledException(ClientError):  # noqa: N818
    """As the client's ``exceptions`` name it."""


EXCEPTIONS: Final = SimpleNamespace(
    ConditionalCheckFailedException=ConditionalCheckFailedException,
    TransactionCanceledException=TransactionCanceledException,
)


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
            _check_placeholders("GetItem", request)
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
            keys = [str(request.get("Key") or _key(request["Item"])) for _, request in writes]
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
        _check_placeholders("Query", request)
        given = _placeholders(request)
        expression = request["KeyConditionExpression"]
        matches = compile_condition(expression)
        partition = re.search(r"(\S+)\s*=\s*(:\w+)", expression)
        assert partition is not None
        with self._lock:
            found = self._partitions.get(given.value(partition[2])["S"], {})
            start = request.get("ExclusiveStartKey", {}).get("sk", {}).get("S", "").encode()
            keys = sorted((sk.encode() for sk in found), reverse=not request.get("ScanIndexForward", True))
            items = [found[key.decode()] for key in keys if not start or _beyond(key, start, request)]
        items = [dict(item) for item in items if matches(item, given)]
        size_of_page = min(self._page_items, request.get("Limit", self._page_items))
        page: dict[str, Any] = {"Items": items[:size_of_page]}
        if len(items) > size_of_page:
            page["LastEvaluatedKey"] = _key(page["Items"][-1])
        if "ProjectionExpression" in request:
            names = [given.name(token.strip()) for token in request["ProjectionExpression"].split(",")]
            page["Items"] = [{name: item[name] for name in names if name in item} for item in page["Items"]]
        return {**page, "Count": len(page["Items"])}

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
        transaction = operation == "TransactWriteItems"
        results: list[tuple[Item, Item | None, Item | None]] = []
        reasons: list[dict[str, Any]] = []
        for kind, request in writes:
            _check_placeholders(operation, request)
            old = self._find(operation, request)
            reasons.append({"Code": "None"})
            key = request.get("Key") or _key(request["Item"])
            try:
                condition = request.get("ConditionExpression")
                if condition and not compile_condition(condition)(old or {}, _placeholders(request)):
                    reasons[-1] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
                    if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old:
                        reasons[-1]["Item"] = dict(old)
                    continue
                results.append((key, old, _outcome(kind, request, old)))
            except InvalidValueError as error:
                reasons[-1] = {"Code": "ValidationError", "Message": str(error)}
        _raise_first(operation, reasons, transaction=transaction)
        for key, old, new in results:
            if (old or None) != new:
                self._store(key, old, new)
        return [_answer(request, old, new) for (_, request), (_, old, new) in zip(writes, results, strict=True)]

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
        key = request.get("Key") or _key(request["Item"])
        for name, limit in (("pk", _MAX_PK_BYTES), ("sk", _MAX_SK_BYTES)):
            text = key.get(name, {}).get("S")
            if not text or len(text.encode()) > limit or len(key) != 2:
                raise failure(operation, "ValidationException", "One or more parameter values were invalid: key")
        return self._partitions.get(key["pk"]["S"], {}).get(key["sk"]["S"])


class Paginator:
    """Follows ``LastEvaluatedKey`` through the pages of a query.

    Parameters
    ----------
    query : callable
        The client's method.
    """

    def __init__(self, query: Callable[..., dict[str, Any]]) -> None:
        self._query = query

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """See boto3."""
        while True:
            page = self._query(**request)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def failure(operation: str, code: str, message: str = "injected", **more: Any) -> ClientError:
    """Make the error a client raises.

    Parameters
    ----------
    operation : str
        Name of the API operation.
    code : str
        Error code.
    message : str, optional
        Its text.
    **more : object
        What else the response holds.

    Returns
    -------
    ClientError
        Of the class the client's ``exceptions`` have for the code.
    """
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    kind: type[ClientError] = getattr(EXCEPTIONS, code, ClientError)
    return kind(response, operation)


def _raise_first(operation: str, reasons: list[dict[str, Any]], *, transaction: bool) -> None:
    reason = next((reason for reason in reasons if reason["Code"] != "None"), None)
    if reason is None:
        return
    if transaction:
        message = f"Transaction cancelled, please refer cancellation reasons [{', '.join(r['Code'] for r in reasons)}]"
        raise failure(operation, "TransactionCanceledException", message, CancellationReasons=reasons)
    if reason["Code"] == "ValidationError":
        raise failure(operation, "ValidationException", reason["Message"])
    more = {"Item": reason["Item"]} if "Item" in reason else {}
    raise failure(operation, "ConditionalCheckFailedException", reason["Message"], **more)


def _outcome(kind: str, request: Mapping[str, Any], old: Item | None) -> Item | None:
    if kind == "Delete":
        return None
    if kind == "ConditionCheck":
        return old
    if kind == "Put":
        new = {name: stored(value) for name, value in request["Item"].items()}
    else:
        update = compile_update(request["UpdateExpression"])
        if {"pk", "sk"} & set(update.targets):
            raise InvalidValueError("Cannot update attribute. This attribute is part of the key")
        given = _placeholders(request)
        for value in given.values.values():
            if "N" in value:
                parse(value["N"])
        new = update.apply(old or dict(request["Key"]), given)
    if size(new) > _MAX_ITEM_BYTES:
        raise InvalidValueError("Item size has exceeded the maximum allowed size")
    return new


def _answer(request: Mapping[str, Any], old: Item | None, new: Item | None) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        units = max(1, math.ceil(max(size(old or {}), size(new or {})) / 1024))
        answer["ConsumedCapacity"] = {"TableName": request["TableName"], "CapacityUnits": float(units)}
    returned = request.get("ReturnValues", "NONE")
    if returned == "ALL_NEW":
        answer["Attributes"] = dict(new or {})
    elif returned == "ALL_OLD" and old:
        answer["Attributes"] = dict(old)
    return answer


def _placeholders(request: Mapping[str, Any]) -> Placeholders:
    return Placeholders(request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {})


def _check_placeholders(operation: str, request: Mapping[str, Any]) -> None:
    given = {*(request.get("ExpressionAttributeNames") or ()), *(request.get("ExpressionAttributeValues") or ())}
    needed = used(*(request[name] for name in _EXPRESSIONS if name in request))
    if given != needed:
        message = f"Value provided unused in expressions, or used and not provided: {sorted(given ^ needed)}"
        raise failure(operation, "ValidationException", message)


def _key(item: Mapping[str, Any]) -> Item:
    return {name: item[name] for name in ("pk", "sk") if name in item}


def _beyond(key: bytes, start: bytes, request: Mapping[str, Any]) -> bool:
    return key > start if request.get("ScanIndexForward", True) else key < start
