"""Insert: put an item unless its key is taken, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from botocore.exceptions import ClientError

from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._table import Table

TRANSIENT: Final = {
    "InternalServerError",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingError",
    "ThrottlingException",
    "TransactionConflict",
    "TransactionConflictException",
}
REFUSED: Final = {"ValidationError", "ValidationException", "ItemCollectionSizeLimitExceeded"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an event.

    Parameters
    ----------
    status : {"accepted", "duplicate", "rejected", "too_late", "failed"}
        ``"accepted"``: inserted now. ``"duplicate"``: inserted before, perhaps by an earlier attempt of this call.
        ``"rejected"``: can never be accepted. ``"too_late"``: older than its event's retention, so that nobody can tell
        any more whether it is a repetition; packed events only. ``"failed"``: the table kept refusing; send it again.
    reason : str, optional
        Why it was rejected, too late or failed.

    Examples
    --------
    >>> Outcome("accepted")
    Outcome(status='accepted', reason=None)
    """

    status: Literal["accepted", "duplicate", "rejected", "too_late", "failed"]
    reason: str | None = None


ACCEPTED: Final = Outcome("accepted")
DUPLICATE: Final = Outcome("duplicate")


def insert(table: Table, item: dict[str, Any], version: str | None = None) -> Outcome:
    """Put a typed item unless its key is taken, by the same or a greater value of the attribute `version`."""
    request: dict[str, Any] = {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({PK})",
    }
    if version is not None:
        request["ConditionExpression"] += " OR #version < :version"
        request["ExpressionAttributeNames"] = {"#version": version}
        request["ExpressionAttributeValues"] = {":version": item[version]}
    try:
        table.client.put_item(**request)
    except ClientError as error:
        return outcome_of(error, error.response["Error"])
    return ACCEPTED


def outcome_of(raised: ClientError | None, error: Mapping[str, Any]) -> Outcome:
    code, reason = error.get("Code", ""), f"{error.get('Code')}: {error.get('Message', '')}"
    if code in ("DuplicateItem", "DuplicateItemException", "ConditionalCheckFailedException"):
        return DUPLICATE
    if code in REFUSED:
        return Outcome("rejected", reason)
    if code in TRANSIENT:
        return Outcome("failed", reason)
    # No table or no permission: a fault of the deployment, not of the event.
    raise raised or ClientError({"Error": {"Code": code, "Message": json.dumps(dict(error))}}, "BatchExecuteStatement")
