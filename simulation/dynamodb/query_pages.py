"""What a query finds in a partition, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from simulation.dynamodb.condition_expressions import compile_condition
from simulation.dynamodb.expression_tokens import Placeholders
from simulation.dynamodb.typed_values import Item

_PARTITION: Final = re.compile(r"(\S+)\s*=\s*(:\w+)")


def partition_of(request: Mapping[str, Any]) -> str:
    """The partition key a query asks for."""
    named = _PARTITION.search(request["KeyConditionExpression"])
    assert named is not None
    return str(Placeholders.of(request).value(named[2])["S"])


def items_of_page(
    request: Mapping[str, Any], partition: Mapping[str, Item], sort_key: str, most: int
) -> tuple[list[Item], bool]:
    """The items of one page, whole, and whether more follow."""
    given = Placeholders.of(request)
    matches = compile_condition(request["KeyConditionExpression"])
    forward = request.get("ScanIndexForward", True)
    start = request.get("ExclusiveStartKey", {}).get(sort_key, {}).get("S", "").encode()
    keys = sorted((key.encode() for key in partition), reverse=not forward)
    beyond = [partition[key.decode()] for key in keys if not start or (key > start if forward else key < start)]
    items = [item for item in beyond if matches(item, given)]
    most = min(most, request.get("Limit", most))
    return items[:most], len(items) > most


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
