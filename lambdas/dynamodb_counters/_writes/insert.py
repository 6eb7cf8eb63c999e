"""Insert: put items unless their keys are taken, and what became of each: new, repeated, or in conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._clients import may_pass
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.conditions import Image, TypedValue
from dynamodb_counters._items.conversions import plain_value
from dynamodb_counters._items.table_schema import PK, is_reserved
from dynamodb_counters._table import Table
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef


_MOST_NAMES = 10

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
_STATEMENTS_PER_CALL: Final = 25
_MAX_STATEMENT_CHARACTERS: Final = 8192
_TAKEN: Final = {"DuplicateItem", "DuplicateItemException", "ConditionalCheckFailedException"}
_REFUSED: Final = {"ValidationError", "ValidationException", "ItemCollectionSizeLimitExceeded"}


def repetition(event: Event, image: Image, stored: Image) -> Outcome:
    """Outcome of an event whose key is taken by `stored`: a conflict, unless the payloads are equal."""
    version = event.version
    # An older version is a repetition: it is what came late of a source that corrects itself.
    if version is not None and not (version in stored and is_same(image[version], stored[version])):
        return DUPLICATE
    different = differing(event, image, stored)
    if not different:
        return DUPLICATE
    held = {name: plain_value(value) for name, value in stored.items() if not is_reserved(name)}
    return Outcome(OutcomeStatus.CONFLICT, f"the stored event of this key differs in {listed(different)}", held)


def differing(event: Event, image: Image, other: Image) -> list[str]:
    """The names of the attributes in which two events of one key differ, whatever the table has added to them."""
    # In a key, 1 and "1" are the same.
    names = sorted(name for name in image.keys() | other.keys() if not is_reserved(name) and name not in event.fields)
    return [name for name in names if not is_same(image.get(name, {}), other.get(name, {}))]


def listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")


def is_same(one: TypedValue, other: TypedValue) -> bool:
    """Whether typed values are equal, numbers by value and sets without order."""
    if one == other or one.keys() != other.keys():
        return one == other
    [(kind, content)] = one.items()
    known: Any = other[kind]
    match kind:
        case "L":
            return len(content) == len(known) and all(map(is_same, content, known))
        case "M":
            return content.keys() == known.keys() and all(is_same(part, known[name]) for name, part in content.items())
    # DynamoDB keeps 1.50 as 1.5.
    return bool(plain_value(one) == plain_value(other))


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
        outcome = _outcome_of(error)
        stored: Any = error.response.get("Item") if isinstance(error, ClientError) else None
        return repetition(event, item, stored) if stored and outcome == DUPLICATE else outcome
    return ACCEPTED


def insert_many(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Put typed items with distinct keys, each unless its key is taken."""
    if table.bulk == "put":
        return table.each(lambda item: insert(table, event, item), items)
    chunks = [items[start : start + _STATEMENTS_PER_CALL] for start in range(0, len(items), _STATEMENTS_PER_CALL)]
    found = table.each(lambda chunk: _insert_chunk(table, event, chunk), chunks)
    return [outcome for outcomes in found for outcome in outcomes]


def _insert_chunk(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    statements = [_statement(table.name, item) for item in items]
    outcomes = [Outcome(OutcomeStatus.FAILED, "not tried")] * len(items)
    pending = []
    for index, statement in enumerate(statements):
        if len(statement["Statement"]) > _MAX_STATEMENT_CHARACTERS:
            outcomes[index] = insert(table, event, items[index])
        else:
            pending.append(index)
    for _ in table.tries() if pending else ():
        try:
            tried = [statements[index] for index in pending]
            answers: Any = table.client.batch_execute_statement(Statements=tried)["Responses"]
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or error.response["Error"]["Code"] not in _REFUSED:
                for index in pending:
                    outcomes[index] = failed(error)
                continue
            # One bad statement can make DynamoDB refuse the whole call: sent alone, each gets its own answer.
            for index in pending:
                outcomes[index] = insert(table, event, items[index])
            break
        for index, answer in zip(pending, answers, strict=True):
            outcomes[index] = _outcome_of(ClientError(answer, "INSERT")) if "Error" in answer else ACCEPTED
        pending = [index for index in pending if outcomes[index].status == OutcomeStatus.FAILED]
        if not pending:
            break
    return outcomes


def _statement(table_name: str, item: dict[str, Any]) -> BatchStatementRequestTypeDef:
    names = ",".join("'" + name.replace("'", "''") + "':?" for name in item)
    return {"Statement": f'INSERT INTO "{table_name}" VALUE {{{names}}}', "Parameters": list(item.values())}


def failed(error: Exception) -> Outcome:
    """The outcome of an event for whose request there is no answer now; other errors are raised."""
    # No credentials, no permission: a fault of the deployment, not of the event.
    if not may_pass(error):
        raise error
    if not isinstance(error, ClientError):
        return Outcome(OutcomeStatus.FAILED, f"{type(error).__name__}: {error}")
    response: Any = error.response
    codes = ", ".join(reason.get("Code", "None") for reason in response.get("CancellationReasons", ()))
    return Outcome(OutcomeStatus.FAILED, ": ".join(filter(None, (_reason(response["Error"]), codes))))


def _outcome_of(error: Exception) -> Outcome:
    answer: Any = error.response["Error"] if isinstance(error, ClientError) else {}
    if answer.get("Code") in _TAKEN:
        return DUPLICATE
    return Outcome(OutcomeStatus.REJECTED, _reason(answer)) if answer.get("Code") in _REFUSED else failed(error)


def _reason(error: Mapping[str, Any]) -> str:
    return f"{error.get('Code')}: {error.get('Message', '')}"
