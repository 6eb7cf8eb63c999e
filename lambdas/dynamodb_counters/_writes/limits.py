"""Limits of groups, of which thresholds are shares: an attribute of the group's own item, so no read looks one up."""

from __future__ import annotations

from collections.abc import Mapping

from dynamodb_counters._declarations import Aggregate, Distinct
from dynamodb_counters._declarations.thresholds import watched
from dynamodb_counters._items import attributes
from dynamodb_counters._items.conversions import converted
from dynamodb_counters._items.decimals import Number, require_storable, typed_number
from dynamodb_counters._items.table_schema import LIMIT
from dynamodb_counters._table import Table
from dynamodb_counters._writes.increments import open_group, read_place
from dynamodb_counters._writes.update_conditions import only_own
from dynamodb_counters.errors import InvalidArgumentError, UnavailableError


def set_limit(
    table: Table, aggregate: Aggregate | Distinct, values: Mapping[str, object], limit: Number | float | None
) -> None:
    """Store a limit, or none; that alone may cross a threshold. To send it again changes nothing."""
    number = 0 if limit is None else require_storable("limit", converted("limit", limit))
    if number < 0 or (number == 0 and limit is not None):
        raise InvalidArgumentError("limit", limit, "a number above 0, or None for no limit")
    _, layout, group = open_group(table, watched(aggregate), values)
    for _ in table.tries():
        place, item = read_place(table, layout, group)
        if place.shown(item).get(LIMIT) == typed_number(number):
            return
        update = place.update({})
        update.set(place.name_of(LIMIT), typed_number(number))
        if table.write("update_item", **only_own(update.request(table.name), layout.name)):
            return
    raise UnavailableError("the page of the group splits all the time: set the limit again")


def limit_of(table: Table, aggregate: Aggregate | Distinct, values: Mapping[str, object]) -> Number | None:
    """The limit of a group, strongly consistent; None if it has none."""
    _, layout, group = open_group(table, watched(aggregate), values)
    place, item = read_place(table, layout, group)
    return attributes.limit_of(place.shown(item))
