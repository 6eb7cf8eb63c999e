"""Counting without the stream or events: add to a group at once, or set it to 0."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import localcontext
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._control.control import Statuses
from dynamodb_counters._declarations import Aggregate, Count, Sum
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import Key, canonical_fields, group_key, group_of
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES, require_storable_group
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._items.conversions import EXACT, Number, converted, parse_number, require_storable
from dynamodb_counters._items.table_schema import LAST_RESET, SCORE, TALLY_PREFIX
from dynamodb_counters._pages import Place
from dynamodb_counters._table import Table
from dynamodb_counters._writes.update_conditions import (
    conditional,
    is_new,
    item_of,
    met,
    new_nonce,
    once,
    only_own,
    require_own,
    watch_for_lost_answers,
)
from dynamodb_counters.errors import CountersError, InvalidArgumentError, MalformedImageError

_BUSY: Final = f"nothing was written: {TRIES} times, other updates of the group came first"
Amount: TypeAlias = Mapping[str, Number | float] | Number | float
_ZERO: Final = {"N": "0"}


def increment(table: Table, aggregate: Aggregate, values: Mapping[str, object], amount: Amount) -> dict[str, Any]:
    """Add to a group at once and return its measures; not idempotent. A write-sharded group returns one item's."""
    require_declaration(aggregate, Aggregate)
    added = _by_measure(aggregate, amount)
    aggregate, layout, group = open_group(table, aggregate, values)
    # No source item shows what is added here, so the tally does.
    tallied = {TALLY_PREFIX + name: number for name, number in added.items()}
    nonce = new_nonce(table)
    for _ in table.tries():
        place, item, done = _sent(table, layout, group, {**added, **tallied}, nonce)
        if done:
            return dict(group_of(aggregate, values, [place.shown(item)]).measures)
        nonce = new_nonce(table, item)
    raise CountersError(_BUSY)


def _sent(
    table: Table, layout: ItemLayout, group: GroupKey, added: Mapping[str, Number], nonce: str
) -> tuple[Place, Mapping[str, Any], bool]:
    """Send an increment to wherever its group lies: the item, and whether it has it."""
    shard = str(table.jitter())
    while True:
        place = Place.of(table, layout, group)
        update = only_own(place.update(added, shard).request(table.name), layout.name)
        try:
            return place, table.client.update_item(**once(update, nonce), ReturnValues="ALL_NEW")["Attributes"], True
        except table.client.exceptions.ConditionalCheckFailedException as refusal:
            require_own(item_of(refusal), layout.name)
            if place.is_right(item_of(refusal)) or not is_new(item_of(refusal), nonce):
                return place, *met(refusal, nonce)


def reset(table: Table, aggregate: Aggregate, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0, keep its watermarks, and return what they were; nothing is lost or counted twice."""
    require_declaration(aggregate, Aggregate)
    aggregate, layout, group = open_group(table, aggregate, values)
    measures = [*aggregate._attributes, *([SCORE] if aggregate.ranking is not None else [])]
    taken = [_take(table, layout, group, key, measures) for key in layout.keys(group)]
    return dict(group_of(aggregate, values, taken).measures)


def _take(table: Table, layout: ItemLayout, group: GroupKey, key: Key, measures: list[str]) -> Mapping[str, Any]:
    """Subtract what an item has counted, and return the item as it was read: its answer cannot be lost."""
    place, item = read_place(table, layout, group, key)
    for _ in table.tries():
        shown = place.shown(item)
        counted = {each: parse_number(shown[each]["N"]) for each in measures if shown.get(each, _ZERO) != _ZERO}
        if not counted:
            return shown
        nonce = new_nonce(table, item)
        # A ranking's score follows its measure, whose tally is enough.
        tallies = {TALLY_PREFIX + each: number for each, number in counted.items() if each != SCORE}
        with localcontext(EXACT):
            update = place.update({name: -number for name, number in (counted | tallies).items()}, key=key)
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
                return shown
            item = now
            if not place.is_right(item):
                place, item = read_place(table, layout, group, key)
        else:
            return shown
    raise CountersError(_BUSY)


def read_place(
    table: Table, layout: ItemLayout, group: GroupKey, key: Key | None = None
) -> tuple[Place, Mapping[str, Any]]:
    """Where a group lies and what is there, strongly consistent; of a sharded group, the item with a `key`."""
    while True:
        place = Place.of(table, layout, group)
        item = table.read_item(place.key or key or layout.keys(group)[0])
        require_own(item, layout.name)
        if place.is_right(item):
            return place, item


def open_group(
    table: Table, declared: Aggregate, values: Mapping[str, object]
) -> tuple[Aggregate, ItemLayout, GroupKey]:
    """The group to change, of the generation that readers use."""
    aggregate = Statuses.of_table(table).counted(declared)
    values = canonical_fields(declared.name, [(one, one.fields) for one in (declared, aggregate)], values)
    layout, group = ItemLayout(aggregate), group_key(aggregate, values)
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
    return aggregate, layout, group


def _by_measure(aggregate: Aggregate, amount: Amount) -> dict[str, Number]:
    measures = [name for name, measure in aggregate.measures.items() if isinstance(measure, Count | Sum)]
    if not isinstance(amount, Mapping) and len(measures) == 1:
        amount = {measures[0]: amount}
    if not isinstance(amount, Mapping) or not amount or not set(amount) <= set(measures):
        allowed = f"a mapping of measures to numbers, of {aggregate.name!r}: {', '.join(measures)}"
        raise InvalidArgumentError("amount", amount, allowed)
    return {name: require_storable("amount", converted("amount", number)) for name, number in amount.items()}
