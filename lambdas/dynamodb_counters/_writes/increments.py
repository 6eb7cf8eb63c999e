"""Counting without the stream: add to a group of a `Counter` at once, or set it to 0."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import localcontext
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._control.counted_names import NameStates
from dynamodb_counters._declarations import Counter
from dynamodb_counters._declarations.groups import Key, canonical_fields, group_key, group_of
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES, require_storable_group
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.conversions import EXACT, Number, converted, parse_number, require_storable
from dynamodb_counters._items.table_schema import LAST_RESET, SCORE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.update_conditions import (
    conditional,
    item_of,
    met,
    new_nonce,
    once,
    only_own,
    require_own,
    watch_for_lost_answers,
)
from dynamodb_counters.errors import CountersError, InvalidArgumentError, MalformedImageError, UncountedError

_BUSY: Final = f"nothing was written: {TRIES} times, other updates of the group came first"
_COUNTER: Final = "a Counter: what the stream counts is changed by its items alone"
Amount: TypeAlias = Mapping[str, Number | float] | Number | float
_ZERO: Final = {"N": "0"}


def increment(table: Table, counter: Counter, values: Mapping[str, object], amount: Amount) -> dict[str, Any]:
    """Add to a group at once and return its measures; not idempotent. A write-sharded group returns one item's."""
    layout, group = open_group(table, counter, values)
    added = _by_measure(counter, amount)
    request = only_own(Update(layout, group, added, str(table.jitter())).request(table.name), layout.name)
    nonce = new_nonce(table)
    for _ in table.tries():
        try:
            answer: Any = table.client.update_item(**once(request, nonce), ReturnValues="ALL_NEW")
        except table.client.exceptions.ConditionalCheckFailedException as refusal:
            require_own(item_of(refusal), layout.name)
            item, done = met(refusal, nonce)
            if not done:
                nonce = new_nonce(table, item)
                continue
        else:
            item = answer["Attributes"]
        return dict(group_of(counter, values, [item]).measures)
    raise CountersError(_BUSY)


def reset(table: Table, counter: Counter, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0 and return what they were; nothing is lost or counted twice."""
    layout, group = open_group(table, counter, values)
    measures = [*counter._attributes, *([SCORE] if counter.ranking is not None else [])]
    taken = [_take(table, layout, group, key, measures) for key in layout.keys(group)]
    return dict(group_of(counter, values, taken).measures)


def _take(table: Table, layout: ItemLayout, group: GroupKey, key: Key, measures: list[str]) -> Mapping[str, Any]:
    """Subtract what an item has counted, and return the item as it was read: its answer cannot be lost."""
    item: Mapping[str, Any] = table.read_item(key)
    require_own(item, layout.name)
    for _ in table.tries():
        counted = {each: parse_number(item[each]["N"]) for each in measures if item.get(each, _ZERO) != _ZERO}
        if not counted:
            return item
        nonce = new_nonce(table, item)
        with localcontext(EXACT):
            update = Update(layout, group, {name: -number for name, number in counted.items()}, "")
        update.key = {name: value["S"] for name, value in key.items()}
        update.set(LAST_RESET, {"S": nonce})
        # Or two resets would subtract the same.
        is_last, last = "attribute_not_exists(#r)", {}
        if LAST_RESET in item:
            is_last, last = "#r = :last", {":last": item[LAST_RESET]}
        request = conditional(update.request(table.name), is_last, {"#r": LAST_RESET}, last)
        try:
            table.client.update_item(**once(only_own(request, layout.name), nonce))
        except table.client.exceptions.ConditionalCheckFailedException as refusal:
            require_own(item_of(refusal), layout.name)
            now, done = met(refusal, nonce, item)
            if done:
                return item
            item = now
        else:
            return item
    raise CountersError(_BUSY)


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
    watch_for_lost_answers(table)
    return layout, group


def _by_measure(counter: Counter, amount: Amount) -> dict[str, Number]:
    measures = [*counter.measures]
    if not isinstance(amount, Mapping) and len(measures) == 1:
        amount = {measures[0]: amount}
    if not isinstance(amount, Mapping) or not amount or not set(amount) <= set(measures):
        allowed = f"a mapping of measures to numbers, of {counter.name!r}: {', '.join(measures)}"
        raise InvalidArgumentError("amount", amount, allowed)
    return {name: require_storable("amount", converted("amount", number)) for name, number in amount.items()}
