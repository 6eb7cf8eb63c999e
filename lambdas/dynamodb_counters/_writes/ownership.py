"""Writers change only items that their own declaration has written: another one would go on with what they leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters.errors import InvalidArgumentError


def only_own(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An update on condition that no other declaration has written the item."""
    is_own = "(attribute_not_exists(#own) OR #own = :own)"
    return conditional(request, is_own, {"#own": TYPE}, {":own": {"S": name}})


def conditional(
    request: Mapping[str, Any], condition: str, names: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """An update on a further condition, with its placeholders."""
    conditions = [condition, *([request["ConditionExpression"]] if "ConditionExpression" in request else [])]
    return {
        **request,
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {**request["ExpressionAttributeNames"], **names},
        "ExpressionAttributeValues": {**request["ExpressionAttributeValues"], **values},
    }


def item_of(refusal: ClientError) -> Mapping[str, Any]:
    """The item that has refused an update."""
    answer: dict[str, Any] = dict(refusal.response)
    return answer.get("Item") or {}


def writer_of(item: Mapping[str, Any], name: str) -> str:
    """Which declaration has written an item."""
    return str(item.get(TYPE, {}).get("S", name))


def require_own(item: Mapping[str, Any], name: str) -> None:
    writer = writer_of(item, name)
    if writer != name:
        raise InvalidArgumentError("aggregate", name, f"{writer!r}, which has written the item of this group")
