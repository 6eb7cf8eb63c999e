"""What a query finds in a partition, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.harness.conditions import compile_condition
from tests.harness.requests import key_of, placeholders
from tests.harness.values import Item


def partition_of(request: Mapping[str, Any]) -> str:
    """Give the partition a query asks for.

    Parameters
    ----------
    request : mapping
        As for boto3.

    Returns
    -------
    str
        Its key.
    """
    named = re.search(r"(\S+)\s*=\s*(:\w+)", request["KeyConditionExpression"])
    assert named is not None
    return str(placeholders(request).value(named[2])["S"])


def page(request: Mapping[str, Any], found: Mapping[str, Item], most_items: int) -> dict[str, Any]:
    """Give one page of a query.

    Parameters
    ----------
    request : mapping
        As for boto3.
    found : mapping
        The partition's items by sort key.
    most_items : int
        How many a page holds.

    Returns
    -------
    dict
        As from boto3.
    """
    given = placeholders(request)
    matches = compile_condition(request["KeyConditionExpression"])
    start = request.get("ExclusiveStartKey", {}).get("sk", {}).get("S", "").encode()
    keys = sorted((sk.encode() for sk in found), reverse=not request.get("ScanIndexForward", True))
    items = [found[key.decode()] for key in keys if not start or _beyond(key, start, request)]
    items = [dict(item) for item in items if matches(item, given)]
    size_of_page = min(most_items, request.get("Limit", most_items))
    result: dict[str, Any] = {"Items": items[:size_of_page]}
    if len(items) > size_of_page:
        result["LastEvaluatedKey"] = key_of(result["Items"][-1])
    if "ProjectionExpression" in request:
        names = [given.name(token.strip()) for token in request["ProjectionExpression"].split(",")]
        result["Items"] = [{name: item[name] for name in names if name in item} for item in result["Items"]]
    return {**result, "Count": len(result["Items"])}


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


def _beyond(key: bytes, start: bytes, request: Mapping[str, Any]) -> bool:
    return key > start if request.get("ScanIndexForward", True) else key < start
