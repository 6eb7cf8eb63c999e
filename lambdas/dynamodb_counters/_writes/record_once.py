"""Counting without the stream: a plain increment, and an event with its counters in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._declarations import Aggregate, Count, Declaration, Event, Sum
from dynamodb_counters._declarations.groups import group_keys, group_of
from dynamodb_counters._fold.compiler import Program
from dynamodb_counters._fold.fold import Plan
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters._items.table_schema import COUNTED_IN, ONCE_SUFFIX, PK, SCORE, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import ACCEPTED, DUPLICATE, Outcome
from dynamodb_counters._writes.event_items import event_item
from dynamodb_counters.errors import InvalidArgumentError

MAX_COUNTED: Final = 99
"""A transaction holds 100 items at most, one of which is the event.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""

_TRIES: Final = 10
_RETRIED: Final = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}


def increment(
    table: Table, aggregate: Aggregate, values: Mapping[str, object], by: Mapping[str, Number] | Number
) -> dict[str, Any]:
    """Add to a group's measures. Not idempotent: a repeated call counts again.

    Parameters
    ----------
    table : Table
        Where to.
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.
    by : int, Decimal or mapping of str to these
        What to add; a number alone is for an aggregate of one measure.

    Returns
    -------
    dict of str to int, Decimal, mapping or None
        All measures after it; of a spread group, those of the one item that was written.

    Raises
    ------
    InvalidArgumentError
        An unknown measure, a number DynamoDB cannot hold, or a value that misses from the group.
    """
    added = _by_measure(aggregate, by)
    program = Program(aggregate)
    missing = [name for name in aggregate.fields if name not in values]
    if missing:
        raise InvalidArgumentError("values", dict(values), f"values for {', '.join(aggregate.fields)}")
    group = tuple(key_text(name, values[name]) for name in aggregate.fields)
    answer = table.client.update_item(
        **Update(program, group, added, str(table.jitter())).request(table.name), ReturnValues="ALL_NEW"
    )
    return dict(group_of(aggregate, values, [answer["Attributes"]]).measures)


def reset(table: Table, aggregate: Aggregate, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0; what was counted stays remembered, so that no redelivery counts it again.

    Parameters
    ----------
    table : Table
        Where to.
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.

    Returns
    -------
    dict of str to int, Decimal, mapping or None
        All measures before it. What is counted meanwhile is either in here or in the group, never in both or neither.
    """
    zeroed = [*aggregate.attributes, *([SCORE] if aggregate.ranking is not None else [])]
    names = {f"#m{place}": name for place, name in enumerate(zeroed)}
    before: list[Mapping[str, Any]] = []
    for key in group_keys(aggregate, values):
        try:
            answer = table.client.update_item(
                TableName=table.name,
                Key=key,
                UpdateExpression="SET " + ", ".join(f"{name} = :zero" for name in names),
                ConditionExpression=f"attribute_exists({PK})",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":zero": {"N": "0"}},
                ReturnValues="ALL_OLD",
            )
        except table.client.exceptions.ConditionalCheckFailedException:
            continue  # Never counted: there is nothing to set to 0.
        before.append(answer["Attributes"])
    return dict(group_of(aggregate, values, before).measures)


def record_once(table: Table, event: Event, values: Mapping[str, Any], declarations: Iterable[Declaration]) -> Outcome:
    """Insert an event and count it, all or nothing, unless it is there.

    The counts are current when the call returns. The stream counts its corrections and deletion only.

    Parameters
    ----------
    table : Table
        Where to.
    event : Event
        What kind of event.
    values : mapping of str to object
        Its attributes.
    declarations : iterable of Aggregate and Window
        What to count it in; all have this event as their source.

    Returns
    -------
    Outcome
        What became of it.

    Raises
    ------
    InvalidArgumentError
        The declarations are not of this event or too many.
    botocore.exceptions.ClientError
        The transaction was refused for a reason that is neither a duplicate nor passing.
    """
    declared = tuple(declarations)
    if len(declared) > MAX_COUNTED or any(declaration.source != event for declaration in declared):
        names = [declaration.name for declaration in declared]
        raise InvalidArgumentError("declarations", names, f"up to {MAX_COUNTED} declarations over {event.name!r}")
    try:
        item = event_item(table, event, values)
    except InvalidArgumentError as error:
        return Outcome("rejected", str(error))
    change = {"NewImage": item, "SequenceNumber": "0", "ApproximateCreationDateTime": table.clock()}
    folded = Plan(declared).fold([{"eventName": "INSERT", "dynamodb": change}])
    if folded.unfoldable:
        return Outcome("rejected", folded.unfoldable[0].reason)
    put = {
        "TableName": table.name,
        "Item": {**item, **_counted(event, declared)},
        "ConditionExpression": f"attribute_not_exists({PK})",
    }
    feed = str(table.jitter())
    updates = [Update(delta.program, delta.group, delta.measures, feed).request(table.name) for delta in folded.deltas]
    return _transact(table, [{"Put": put}, *({"Update": update} for update in updates)])


def _counted(event: Event, declared: tuple[Declaration, ...]) -> dict[str, Any]:
    """Say what has counted the event, so that a later correction or deletion takes back just that."""
    names = [declaration.name for declaration in declared]
    return {TYPE: {"S": event.name + ONCE_SUFFIX}, **({COUNTED_IN: {"SS": names}} if names else {})}


def _transact(table: Table, writes: list[Any]) -> Outcome:
    codes: list[str] = []
    for _ in table.tries(_TRIES):
        try:
            table.client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            if error.response["Error"]["Code"] != "TransactionCanceledException":
                raise
            codes = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
            if codes[:1] == ["ConditionalCheckFailed"]:
                return DUPLICATE
            if not set(codes) - {"None"} <= _RETRIED or not codes:
                raise
        else:
            return ACCEPTED
    return Outcome("failed", f"the transaction was cancelled {_TRIES} times, at last for {', '.join(codes)}")


def _by_measure(aggregate: Aggregate, by: Mapping[str, Number] | Number) -> dict[str, Number]:
    measures = [name for name, measure in aggregate.measures.items() if isinstance(measure, Count | Sum)]
    if not isinstance(by, Mapping):
        if len(measures) != 1:
            raise InvalidArgumentError("by", by, f"a mapping, as {aggregate.name!r} has the measures {measures}")
        by = {measures[0]: by}
    if not by or not set(by) <= set(measures):
        raise InvalidArgumentError("by", dict(by), f"numbers for measures among {measures}")
    return {name: require_storable("by", number) for name, number in by.items()}
