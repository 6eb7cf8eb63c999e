"""Updates sent once, and conditions of updates: none changes an item of another declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._clients import may_be_done, may_pass, sending_once
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InDoubtError, InvalidArgumentError, UnavailableError


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
    answer: dict[str, Any] = dict(refusal.response)
    return answer.get("Item") or {}


def writer_of(item: Mapping[str, Any], name: str) -> str:
    return str(item.get(TYPE, {}).get("S", name))


def require_own(item: Mapping[str, Any], name: str) -> None:
    writer = writer_of(item, name)
    if writer != name:
        raise InvalidArgumentError("aggregate", name, f"{writer!r}, which has written the item of this group")


def update_once(table: Table, request: Mapping[str, Any], done: str) -> Mapping[str, Any]:
    """Return the item after an update, which is sent again only where the table refused it, so never done twice.

    `InDoubtError` if its answer is lost; the refusal of its condition is the client's.
    """
    failure: Exception | None = None
    for _ in table.tries():
        try:
            with sending_once(table.client):
                answer: Any = table.client.update_item(
                    **request,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except (ClientError, BotoCoreError) as error:
            if may_be_done(error):
                raise InDoubtError(f"may have been {done}: the answer was lost: {error}") from error
            if not may_pass(error):
                raise
            failure = error
        else:
            return dict(answer["Attributes"])
    raise UnavailableError(f"was not {done}: {failure}") from failure
