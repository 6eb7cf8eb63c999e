"""Accept: insert each event once, by a condition; the stream does the counting.

Bulk inserts use PartiQL INSERT, 25 per call: one write unit and 1/25 round trip per event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import ClientError

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._table import Table
from dynamodb_counters._writes.event_items import event_item
from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
_STATEMENTS_PER_CALL: Final = 25
_MAX_STATEMENT_CHARACTERS: Final = 8192
_TRIES: Final = 8

_TRANSIENT: Final = {
    "InternalServerError",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingError",
    "ThrottlingException",
    "TransactionConflict",
    "TransactionConflictException",
}
_REFUSED: Final = {"ValidationError", "ValidationException", "ItemCollectionSizeLimitExceeded"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an event.

    Parameters
    ----------
    status : {"accepted", "duplicate", "rejected", "failed"}
        ``"accepted"``: inserted now. ``"duplicate"``: inserted before, perhaps by an earlier attempt of this call.
        ``"rejected"``: can never be accepted. ``"failed"``: the table kept refusing; send it again.
    reason : str, optional
        Why it was rejected or failed.

    Examples
    --------
    >>> Outcome("accepted")
    Outcome(status='accepted', reason=None)
    """

    status: Literal["accepted", "duplicate", "rejected", "failed"]
    reason: str | None = None


ACCEPTED: Final = Outcome("accepted")
DUPLICATE: Final = Outcome("duplicate")


def accept(table: Table, event: Event, values: Mapping[str, Any]) -> Outcome:
    try:
        item = event_item(table, event, values)
    except InvalidArgumentError as error:
        return Outcome("rejected", str(error))
    return insert(table, item, event.version)


def accept_many(table: Table, event: Event, events: Iterable[Mapping[str, Any]]) -> list[Outcome]:
    """Outcomes in the order of the events; a repetition within the call is a duplicate of its first occurrence."""
    outcomes: list[Outcome | None] = []
    indexes: dict[tuple[str, str], list[int]] = {}
    items: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for index, values in enumerate(events):
        try:
            item = event_item(table, event, values)
        except InvalidArgumentError as error:
            outcomes.append(Outcome("rejected", str(error)))
            continue
        outcomes.append(None)
        key = item[PK]["S"], item[SK]["S"]
        indexes.setdefault(key, []).append(index)
        items.setdefault(key, []).append(item)
    for key, found in zip(items, _settle(table, event, list(items.values())), strict=True):
        for index, outcome in zip(indexes[key], found, strict=True):
            outcomes[index] = outcome
    return [outcome for outcome in outcomes if outcome is not None]


def _settle(table: Table, event: Event, groups: list[list[dict[str, Any]]]) -> list[list[Outcome]]:
    """Insert groups of items that share a key; return the outcomes of each group."""
    if event.version is not None:
        # PartiQL cannot say "unless newer": one call per item, and the versions of a key one after the other.
        return list(table.pool.map(lambda items: [insert(table, item, event.version) for item in items], groups))
    first = insert_many(table, [items[0] for items in groups])
    return [
        [outcome] + [DUPLICATE if outcome == ACCEPTED else outcome] * (len(items) - 1)
        for outcome, items in zip(first, groups, strict=True)
    ]


def retract(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Delete an event; the stream takes back what it counted. Return whether there was such an event."""
    key = {PK: {"S": event.pk_template.render(values)}, SK: {"S": event.sk_template.render(values)}}
    return "Attributes" in table.client.delete_item(TableName=table.name, Key=key, ReturnValues="ALL_OLD")


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
        return _outcome(error, error.response["Error"])
    return ACCEPTED


def insert_many(table: Table, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Put typed items with distinct keys, each unless its key is taken."""
    if table.bulk == "put":
        return list(table.pool.map(lambda item: insert(table, item), items))
    chunks = [items[start : start + _STATEMENTS_PER_CALL] for start in range(0, len(items), _STATEMENTS_PER_CALL)]
    return [
        outcome
        for outcomes in table.pool.map(lambda chunk: _insert_chunk(table, chunk), chunks)
        for outcome in outcomes
    ]


def _insert_chunk(table: Table, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    statements = [_statement(table.name, item) for item in items]
    outcomes = [Outcome("failed", "not tried")] * len(items)
    pending = []
    for index, statement in enumerate(statements):
        if len(statement["Statement"]) > _MAX_STATEMENT_CHARACTERS:
            outcomes[index] = insert(table, items[index])
        else:
            pending.append(index)
    for _ in table.tries(_TRIES if pending else 0):
        try:
            answers = table.client.batch_execute_statement(Statements=[statements[index] for index in pending])[
                "Responses"
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] not in _REFUSED:
                for index in pending:
                    outcomes[index] = _outcome(error, error.response["Error"])
                continue
            # One bad statement can make DynamoDB refuse the whole call: sent alone, each gets its own answer.
            for index in pending:
                outcomes[index] = insert(table, items[index])
            break
        for index, answer in zip(pending, answers, strict=True):
            outcomes[index] = _outcome(None, answer["Error"]) if "Error" in answer else ACCEPTED
        pending = [index for index in pending if outcomes[index].status == "failed"]
        if not pending:
            break
    return outcomes


def _statement(table_name: str, item: dict[str, Any]) -> BatchStatementRequestTypeDef:
    names = ",".join("'" + name.replace("'", "''") + "':?" for name in item)
    return {"Statement": f'INSERT INTO "{table_name}" VALUE {{{names}}}', "Parameters": list(item.values())}


def _outcome(raised: ClientError | None, error: Mapping[str, Any]) -> Outcome:
    code, reason = error.get("Code", ""), f"{error.get('Code')}: {error.get('Message', '')}"
    if code in ("DuplicateItem", "DuplicateItemException", "ConditionalCheckFailedException"):
        return DUPLICATE
    if code in _REFUSED:
        return Outcome("rejected", reason)
    if code in _TRANSIENT:
        return Outcome("failed", reason)
    # No table or no permission: a fault of the deployment, not of the event.
    raise raised or ClientError({"Error": {"Code": code, "Message": json.dumps(dict(error))}}, "BatchExecuteStatement")
