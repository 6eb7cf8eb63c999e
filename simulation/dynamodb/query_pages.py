"""What a query finds in a partition, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from simulation.dynamodb.condition_expressions import ORDER
from simulation.dynamodb.expression_tokens import Placeholders
from simulation.dynamodb.typed_values import InvalidValueError, Item

# A key condition is no general expression: the partition key, and at most one test of the sort key.
_KEY_CONDITION: Final = re.compile(r"\s*\S+\s*=\s*(:\w+)(?:\s+AND\s+(.+?))?\s*")
_BETWEEN: Final = re.compile(r"\S+\s+BETWEEN\s+(:\w+)\s+AND\s+(:\w+)")
_PREFIX: Final = re.compile(r"begins_with\(\s*\S+\s*,\s*(:\w+)\s*\)")
_COMPARISON: Final = re.compile(r"[^\s<>=]+\s*(=|<=?|>=?)\s*(:\w+)")


def partition_of(request: Mapping[str, Any]) -> str:
    """The partition key a query asks for."""
    return str(Placeholders.of(request).value(_parsed(request)[1])["S"])


def items_of_page(
    request: Mapping[str, Any], partition: Mapping[str, Item], sort_key: str, most: int
) -> tuple[list[Item], bool]:
    """The items of one page, whole, and whether more follow."""
    forward = request.get("ScanIndexForward", True)
    start = request.get("ExclusiveStartKey", {}).get(sort_key, {}).get("S", "")
    matches = _range(_parsed(request)[2], Placeholders.of(request))
    keys = [key for key in partition if matches(key) and (not start or (key > start if forward else key < start))]
    keys.sort(reverse=not forward)
    most = min(most, request.get("Limit", most))
    return [partition[key] for key in keys[:most]], len(keys) > most


def _parsed(request: Mapping[str, Any]) -> re.Match[str]:
    found = _KEY_CONDITION.fullmatch(request["KeyConditionExpression"])
    if found is None:
        raise InvalidValueError(f"Invalid KeyConditionExpression: {request['KeyConditionExpression']}")
    return found


def _range(test: str | None, given: Placeholders) -> Callable[[str], bool]:
    # Text in order of code points is text in order of its UTF-8 bytes, as DynamoDB sorts.
    if test is None:
        return lambda _: True
    if found := _BETWEEN.fullmatch(test):
        low, high = (given.value(token)["S"] for token in found.groups())
        return lambda key: low <= key <= high
    if found := _PREFIX.fullmatch(test):
        prefix = given.value(found[1])["S"]
        return lambda key: key.startswith(prefix)
    if found := _COMPARISON.fullmatch(test):
        order, bound = ORDER[found[1]], given.value(found[2])["S"]
        return lambda key: order(key, bound)
    raise InvalidValueError(f"Invalid KeyConditionExpression: {test}")


def projected(request: Mapping[str, Any], items: list[Item]) -> list[Item]:
    """Copies of the items with the attributes the request asks for."""
    if "ProjectionExpression" not in request:
        return [dict(item) for item in items]
    given = Placeholders.of(request)
    names = [given.name(token.strip()) for token in request["ProjectionExpression"].split(",")]
    return [{name: item[name] for name in names if name in item} for item in items]


class Paginator:
    """Follows ``LastEvaluatedKey`` through the pages of a client's ``query``."""

    def __init__(self, query: Callable[..., dict[str, Any]]) -> None:
        self._query = query

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        left = request.pop("PaginationConfig", {}).get("MaxItems")
        while True:
            page = self._query(**request)
            if left is not None:
                page["Items"] = page["Items"][:left]
                left -= len(page["Items"])
            yield page
            if "LastEvaluatedKey" not in page or left == 0:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
