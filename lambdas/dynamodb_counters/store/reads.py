"""Reading counts: groups by key, many at once, and windows by one Query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import localcontext
from typing import Any, Final

from dynamodb_counters.decimals import EXACT, Number
from dynamodb_counters.declarations import SPREAD_FIELD, Aggregate, Window
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.keys import key_text
from dynamodb_counters.schema import PK, SK
from dynamodb_counters.store.items import read_number
from dynamodb_counters.store.table import Table
from dynamodb_counters.times import hour_text, seconds_of, utc
from dynamodb_counters.windows import SLOTS, TOTAL, Interval, WindowCount, add_up

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_A_CALL: Final = 100
_TRIES: Final = 8

Key = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of an aggregate, as it is now.

    Parameters
    ----------
    values : mapping of str to str
        What makes the group.
    measures : mapping of str to int or Decimal
        All measures of the aggregate; 0 for what was never counted.

    Examples
    --------
    >>> Group({"url": "/"}, {"views": 3}).measures["views"]
    3
    """

    values: Mapping[str, str]
    measures: Mapping[str, Number]


def get(table: Table, aggregate: Aggregate, values: Mapping[str, object], *, consistent: bool) -> Group:
    """Read one group.

    Parameters
    ----------
    table : Table
        Where from.
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    Group
        With measures of 0 where there is no item.
    """
    if aggregate.spread > 1:
        return get_many(table, [(aggregate, values)], consistent=consistent)[0]
    [key] = group_keys(aggregate, values)
    answer = table.client.get_item(TableName=table.name, Key=key, ConsistentRead=consistent)
    return _group(aggregate, values, [answer.get("Item", {})])


def get_many(
    table: Table, groups: Iterable[tuple[Aggregate, Mapping[str, object]]], *, consistent: bool
) -> list[Group]:
    """Read many groups, of one or several aggregates.

    Parameters
    ----------
    table : Table
        Where from.
    groups : iterable of (Aggregate, mapping)
        Aggregate and group, any number.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    list of Group
        In the order asked.
    """
    asked = [(aggregate, values, group_keys(aggregate, values)) for aggregate, values in groups]
    keys = list({_identity(key): key for _, _, keys in asked for key in keys}.values())
    chunks = [keys[start : start + _KEYS_A_CALL] for start in range(0, len(keys), _KEYS_A_CALL)]
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for items in table.pool.map(lambda chunk: _get_chunk(table, chunk, consistent=consistent), chunks):
        found.update((_identity(item), item) for item in items)
    return [
        _group(aggregate, values, [found.get(_identity(key), {}) for key in keys]) for aggregate, values, keys in asked
    ]


def window(
    table: Table,
    declared: Window,
    values: Mapping[str, object],
    *,
    last: timedelta,
    as_of: datetime | None,
    consistent: bool,
) -> WindowCount:
    """Count the last so long, by one Query over neighbouring keys.

    Parameters
    ----------
    table : Table
        Where from.
    declared : Window
        Which window.
    values : mapping of str to str or number
        Its group.
    last : timedelta
        How long; whole minutes.
    as_of : datetime or None
        Until when; None is now.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    WindowCount
        The count and the interval it covers.

    Raises
    ------
    InvalidArgumentError
        `last` is no positive number of whole minutes, or the interval begins before what the window retains.
    """
    now = table.clock()
    interval = Interval.ending_at(now if as_of is None else seconds_of("as_of", as_of), last)
    _require_retained(declared, interval, now, last)
    hours = interval.hours
    pk = declared.pk_template.render(values)
    first, final = (declared.sk_template.render_texts([hour_text(hour)]) for hour in (hours[0], hours[-1]))
    buckets: list[tuple[int, dict[str, Number]]] = []
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :final",
        ExpressionAttributeValues={":pk": {"S": pk}, ":first": {"S": first}, ":final": {"S": final}},
        ConsistentRead=consistent,
    )
    by_text = {hour_text(hour): hour for hour in hours}
    for page in pages:
        for item in page["Items"]:
            text = declared.sk_template.parse(item[SK]["S"])["_bucket"]
            buckets.append((by_text[text], {name: read_number(item, name) for name in (TOTAL, *SLOTS) if name in item}))
    with localcontext(EXACT):
        return add_up(interval, buckets)


def group_keys(aggregate: Aggregate, values: Mapping[str, object]) -> list[Key]:
    """Give the keys of a group's items.

    Parameters
    ----------
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.

    Returns
    -------
    list of dict
        Typed keys: one, or several for a spread aggregate.
    """
    return [
        {
            PK: {"S": aggregate.pk_template.render({**values, SPREAD_FIELD: part})},
            SK: {"S": aggregate.sk_template.render(values)},
        }
        for part in range(aggregate.spread)
    ]


def _require_retained(declared: Window, interval: Interval, now: float, last: timedelta) -> None:
    if declared.retention is None:
        return
    oldest = now - declared.retention.total_seconds()
    if interval.start < oldest:
        allowed = f"an interval that begins at {utc(oldest).isoformat()} or later, as {declared.name!r} retains no more"
        raise InvalidArgumentError("last", f"{last} from {utc(interval.start).isoformat()}", allowed)


def _get_chunk(table: Table, keys: list[Any], *, consistent: bool) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    for _ in table.tries(_TRIES):
        answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": consistent}})
        items += answer["Responses"].get(table.name, [])
        keys = answer.get("UnprocessedKeys", {}).get(table.name, {"Keys": []})["Keys"]
        if not keys:
            return items
    raise TimeoutError(f"{len(keys)} keys stayed unread after {_TRIES} tries; DynamoDB throttles the reads")


def _identity(item: Mapping[str, Any]) -> tuple[str, str]:
    return item[PK]["S"], item[SK]["S"]


def _group(aggregate: Aggregate, values: Mapping[str, object], items: list[Mapping[str, Any]]) -> Group:
    with localcontext(EXACT):
        measures = {name: sum(read_number(item, name) for item in items) for name in aggregate.measures}
    return Group({name: key_text(name, values[name]) for name in aggregate.fields}, measures)
