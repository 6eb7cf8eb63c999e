"""Reading windows, by one Query over neighbouring keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import localcontext

from dynamodb_counters.decimals import EXACT, Number
from dynamodb_counters.declarations import BUCKET_FIELD, Window
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.schema import PK, SK
from dynamodb_counters.store.items import read_number
from dynamodb_counters.store.table import Table
from dynamodb_counters.times import hour_text, seconds_of, utc
from dynamodb_counters.windows import SLOTS, TOTAL, Interval, WindowCount, add_up


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
            text = declared.sk_template.parse(item[SK]["S"])[BUCKET_FIELD]
            buckets.append((by_text[text], {name: read_number(item, name) for name in (TOTAL, *SLOTS) if name in item}))
    with localcontext(EXACT):
        return add_up(interval, buckets)


def _require_retained(declared: Window, interval: Interval, now: float, last: timedelta) -> None:
    if declared.retention is None:
        return
    oldest = now - declared.retention.total_seconds()
    if interval.start < oldest:
        allowed = f"an interval that begins at {utc(oldest).isoformat()} or later, as {declared.name!r} retains no more"
        raise InvalidArgumentError("last", f"{last} from {utc(interval.start).isoformat()}", allowed)
