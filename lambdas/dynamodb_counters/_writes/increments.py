"""Counting without the stream: add to a group of a `Counter` at once, or set it to 0.

Each update is sent once, and again only where it was refused. So it never counts twice; where its answer is lost, it
may have counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._control.counted_names import NameStates
from dynamodb_counters._declarations import Counter
from dynamodb_counters._declarations.groups import Key, canonical_fields, group_key, group_of
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES, require_storable_group
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.conversions import Number, converted, parse_number, require_storable
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.update_conditions import item_of, only_own, require_own, update_once
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError, UncountedError

_BUSY: Final = f"nothing was written: {TRIES} times, other updates of the group came first"
_COUNTER: Final = "a Counter: what the stream counts is changed by its items alone"
Amount: TypeAlias = Mapping[str, Number | float] | Number | float
_ZERO: Final = {"N": "0"}


def increment(table: Table, counter: Counter, values: Mapping[str, object], amount: Amount) -> dict[str, Any]:
    """Add to a group at once and return its measures; not idempotent. A write-sharded group returns one item's."""
    layout, group = open_group(table, counter, values)
    update = Update(layout, group, _by_measure(counter, amount), str(table.jitter()))
    request = only_own(update.request(table.name), layout.name)
    try:
        item = update_once(table, request, "counted")
    except table.client.exceptions.ConditionalCheckFailedException as refusal:
        require_own(item_of(refusal), layout.name)
        raise
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        # The item cannot take it, as it is.
        raise InvalidArgumentError("amount", amount, "one whose sum has at most 38 digits") from error
    return dict(group_of(counter, values, [item]).measures)


def reset(table: Table, counter: Counter, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0 and return what they were; nothing is lost or counted twice."""
    layout, group = open_group(table, counter, values)
    items: list[Mapping[str, Any]] = []
    for key in layout.keys(group):
        try:
            items.append(_reset_item(table, counter, layout, key))
        except (BotoCoreError, ClientError, InvalidArgumentError, UnavailableError) as error:
            if not items:
                raise
            before = dict(group_of(counter, values, items).measures)
            raise UnavailableError(f"{error}; other items of the group were reset, from {before}") from error
    return dict(group_of(counter, values, items).measures)


def _reset_item(table: Table, counter: Counter, layout: ItemLayout, key: Key) -> Mapping[str, Any]:
    """Set what an item has counted to 0, if it still is what was read; return the item as it was read."""
    for _ in table.tries():
        item: Mapping[str, Any] = table.read_item(key)
        require_own(item, layout.name)
        counted = {name: item[name] for name in counter._attributes if parse_number(item.get(name, _ZERO)["N"])}
        if not counted:
            return item
        names = {f"#n{index}": name for index, name in enumerate(counted)}
        reads = {f":v{index}": number for index, number in enumerate(counted.values())}
        # Else what it ranks by was 0, and may have grown since: then the score goes with it.
        is_ranked = counter.ranking is not None and counter.ranking.measure in counted
        score = {"#score": SCORE} if is_ranked else {}
        request = {
            "TableName": table.name,
            "Key": key,
            "UpdateExpression": "SET " + ", ".join(f"{name} = :zero" for name in (*names, *score)),
            "ConditionExpression": " AND ".join(f"{name} = {read}" for name, read in zip(names, reads, strict=True)),
            "ExpressionAttributeNames": {**names, **score},
            "ExpressionAttributeValues": {":zero": _ZERO, **reads},
        }
        before = ", ".join(f"{name}={number['N']}" for name, number in counted.items())
        try:
            update_once(table, only_own(request, layout.name), f"reset, from {before}")
        except table.client.exceptions.ConditionalCheckFailedException:
            continue
        return item
    raise UnavailableError(_BUSY)


def open_group(table: Table, declared: Counter, values: Mapping[str, object]) -> tuple[ItemLayout, GroupKey]:
    """The group to change."""
    if not isinstance(declared, Counter):
        raise InvalidArgumentError("counter", getattr(declared, "name", declared), _COUNTER)
    if not NameStates.of_table(table).counts(declared):
        raise UncountedError(declared.name)  # It is being dropped.
    values = canonical_fields(declared, declared.fields, values)
    layout, group = ItemLayout(declared), group_key(declared, values)
    try:
        require_storable_group(group)
        is_open = layout.closing_time is None or table.clock() < layout.closing_time(group)
    except MalformedImageError as error:
        raise InvalidArgumentError("values", dict(values), f"at most {MAX_GROUP_BYTES} bytes of UTF-8") from error
    except ValueError:
        raise InvalidArgumentError("values", dict(values), "a time as the key has it, such as 2026-11-20") from None
    if not is_open:
        # All that looks at it has counted it for good.
        raise InvalidArgumentError("values", dict(values), f"a group of {layout.name!r} whose retention is not over")
    return layout, group


def _by_measure(counter: Counter, amount: Amount) -> dict[str, Number]:
    measures = [*counter.measures]
    if not isinstance(amount, Mapping) and len(measures) == 1:
        amount = {measures[0]: amount}
    if not isinstance(amount, Mapping) or not amount or not set(amount) <= set(measures):
        allowed = f"a mapping of measures to numbers, of {counter.name!r}: {', '.join(measures)}"
        raise InvalidArgumentError("amount", amount, allowed)
    return {name: require_storable("amount", converted("amount", number)) for name, number in amount.items()}
