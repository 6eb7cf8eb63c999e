"""Extremes as they are read: the first values of a group, from either end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from dynamodb_counters._declarations import Aggregate, Extremes
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.groups import Given, given, values_of
from dynamodb_counters._declarations.kinds import group_fields, require_declaration
from dynamodb_counters._items.decimals import Number, read_number
from dynamodb_counters._items.ordered_texts import value_of
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._reads.group_reads import sort_key_range
from dynamodb_counters._reads.table_reads import TableReads, current, query
from dynamodb_counters._table import Table

_AT_A_TIME: Final = 20
"""Items that a Query reads: as much as fits into half a read unit. Values that no item has any more are passed over."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """A value that is among the largest or smallest of its group.

    Parameters
    ----------
    value : int, Decimal or datetime
    items : int
        How many items have the value, and what is shown with it.
    shown : mapping of str to str
        The fields that are shown with it.
    complete, as_declared : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> Extreme(812, 1, {"route": "/search"}).shown["route"]
    '/search'
    """

    value: Number | datetime
    items: Number
    shown: Mapping[str, str]
    complete: bool = True
    as_declared: bool = True


class ExtremeReads(TableReads):
    def largest(
        self, extremes: Extremes, values: Given = None, /, *, count: int = 1, consistent: bool = False, **fields: object
    ) -> list[Extreme]:
        """Read the largest values of a group, the largest first: one Query.

        Parameters
        ----------
        extremes : Extremes
        count : int, optional
            Most values to return. Default 1.
        values, consistent, **fields
            As in `get`.

        Examples
        --------
        >>> counters.largest(SLOWEST, route="/", count=3)[0].value  # doctest: +SKIP
        812
        """
        return self._first(extremes, given(values, fields), count, consistent=consistent, forward=False)

    def smallest(
        self, extremes: Extremes, values: Given = None, /, *, count: int = 1, consistent: bool = False, **fields: object
    ) -> list[Extreme]:
        """Read the smallest values of a group, the smallest first: one Query.

        Parameters
        ----------
        extremes, count, values, consistent, **fields
            As in `largest`.

        Examples
        --------
        >>> counters.smallest(SEEN, client="c1")[0].value  # doctest: +SKIP
        datetime.datetime(2026, 11, 20, 10, 30, tzinfo=datetime.timezone.utc)
        """
        return self._first(extremes, given(values, fields), count, consistent=consistent, forward=True)

    def _first(
        self, extremes: Extremes, values: Mapping[str, object], count: int, *, consistent: bool, forward: bool
    ) -> list[Extreme]:
        require_declaration(extremes, Extremes)
        require_count("count", count)
        return read_extremes(self._table, extremes._counted, values, count, consistent=consistent, forward=forward)


def read_extremes(
    table: Table, counted: Aggregate, values: Mapping[str, object], count: int, *, consistent: bool, forward: bool
) -> list[Extreme]:
    """The first values of a group from either end, by the aggregate that counts the items of each value."""
    kept, values, standing = current(table, counted, values, group_fields)
    value, *shown = kept._sk_template.fields
    pk, found = kept._pk_template.render(values), []
    options = {"ScanIndexForward": forward, "PaginationConfig": {"PageSize": _AT_A_TIME}}
    items = query(table, pk, sort_key_range([kept]), consistent=consistent, **options)
    # An item stays at 0 when its value is gone.
    present = (item for item in items if read_number(item, "items") > 0 and item[TYPE]["S"] == kept.name)
    for item in islice(present, count):
        texts = values_of(kept, item) or {}
        held = read_number(item, "items")
        found.append(Extreme(value_of(texts[value]), held, {name: texts[name] for name in shown}, *standing))
    return found
