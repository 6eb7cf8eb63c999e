"""Insert: put an item unless its key is taken, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import PASSING
from dynamodb_counters._clients import may_pass
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._table import Table
from dynamodb_counters._writes.conflicts import repetition
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus

REFUSED: Final = {"ValidationError", "ValidationException", "ItemCollectionSizeLimitExceeded"}


def insert(table: Table, event: Event, item: dict[str, Any]) -> Outcome:
    """Put the typed item of an event unless its key is taken, by the same or a greater version."""
    request: dict[str, Any] = {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({PK})",
        # A refused put is charged for the item it met, and this returns it at no more.
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if (version := event.version) is not None:
        request["ConditionExpression"] += " OR #version < :version"
        request["ExpressionAttributeNames"] = {"#version": version}
        request["ExpressionAttributeValues"] = {":version": item[version]}
    try:
        table.client.put_item(**request)
    except (ClientError, BotoCoreError) as error:
        if not isinstance(error, ClientError) or may_pass(error):
            return failed(error)
        outcome = outcome_of(error, error.response["Error"])
        stored: Any = error.response.get("Item")
        return repetition(event, item, stored) if stored and outcome == DUPLICATE else outcome
    return ACCEPTED


def failed(error: Exception) -> Outcome:
    """The outcome of an event for whose request there is no answer now; other errors are raised."""
    # No credentials, no permission: a fault of the deployment, not of the event.
    if not may_pass(error):
        raise error
    if not isinstance(error, ClientError):
        return Outcome(OutcomeStatus.FAILED, f"{type(error).__name__}: {error}")
    response: Any = error.response
    reasons = [reason.get("Code", "None") for reason in response.get("CancellationReasons", ())]
    return Outcome(
        OutcomeStatus.FAILED, ": ".join([_reason(response["Error"]), *([", ".join(reasons)] if reasons else [])])
    )


def outcome_of(raised: ClientError | None, error: Mapping[str, Any]) -> Outcome:
    code, reason = error.get("Code", ""), _reason(error)
    if code in ("DuplicateItem", "DuplicateItemException", "ConditionalCheckFailedException"):
        return DUPLICATE
    if code in REFUSED:
        return Outcome(OutcomeStatus.REJECTED, reason)
    if code in PASSING:
        return Outcome(OutcomeStatus.FAILED, reason)
    # No table or no permission: a fault of the deployment, not of the event.
    raise raised or ClientError({"Error": {"Code": code, "Message": json.dumps(dict(error))}}, "BatchExecuteStatement")


def _reason(error: Mapping[str, Any]) -> str:
    return f"{error.get('Code')}: {error.get('Message', '')}"
