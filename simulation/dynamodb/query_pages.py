"""What a query finds in a partition or an index, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from simulation.dynamodb.expressions import Placeholders, compile_condition
from simulation.dynamodb.typed_values import InvalidValueError, Item

# A key condition is no general expression: the partition key, and at most one test of the sort key.
_KEY_CONDITION: Final = re.compile(
    r"""
    \s*\S+\s*=\s*(:\w+)
    (\s+AND\s+(
        \S+\s+BETWEEN\s+:\w+\s+AND\s+:\w+
        | begins_with\(\s*\S+\s*,\s*:\w+\s*\)
        | [^\s<>=]+\s*(=|<=?|>=?)\s*:\w+
    ))?\s*
    """,
    re.VERBOSE,
)


def partition_of(request: Mapping[str, Any]) -> str:
    """The partition key a query asks for."""
    found = _KEY_CONDITION.fullmatch(request["KeyConditionExpression"])
    if found is None:
        raise InvalidValueError(f"Invalid KeyConditionExpression: {request['KeyConditionExpression']}")
    return str(Placeholders.of(request).value(found[1])["S"])


def items_of_page(
    request: Mapping[str, Any], partition: Mapping[str, Item], sort_key: str, most: int
) -> tuple[list[Item], bool]:
    """The items of one page, whole, and whether more follow."""
    forward = request.get("ScanIndexForward", True)
    start = request.get("ExclusiveStartKey", {}).get(sort_key, {}).get("S", "")
    matches, given = compile_condition(request["KeyConditionExpression"]), Placeholders.of(request)
    keys = [
        key
        for key, item in partition.items()
        if matches(item, given) and (not start or (key > start if forward else key < start))
    ]
    keys.sort(reverse=not forward)
    most = min(most, request.get("Limit", most))
    return [partition[key] for key in keys[:most]], len(keys) > most


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
