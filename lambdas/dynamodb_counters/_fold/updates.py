"""UpdateItem requests: what to add to a group's item, the same for the stream, transactions and increments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.layouts import GroupKey, ItemLayout, Page
from dynamodb_counters._items.conversions import Number, typed_number
from dynamodb_counters._items.schema import LEVEL, PK, SCORE, SK, VERSION, WRITE_UNIT_BYTES, conditional
from dynamodb_counters.exactly_once import Bound, update_request

_MOST_ADDED: Final = 200
"""Most attributes of a page that one request changes: its expression has at most 4 KB."""

_MOST_CHARACTERS: Final = 3 * WRITE_UNIT_BYTES
"""Longest names of these together: to split their page after the update costs more than before it."""


@lru_cache(maxsize=1024)
def _clauses(to_set: tuple[str, ...], to_add: tuple[str, ...], guard: str) -> str:
    sets = [f"SET {_quoted(name)} = ?" for name in to_set]
    adds = [f"SET {_quoted(name)} = {_quoted(name)} + ?" for name in to_add]
    guarded = f"({_quoted(guard)} IS MISSING OR {_quoted(guard)} < ?)"
    return " ".join([*sets, *adds, f'WHERE "{PK}" = ? AND "{SK}" = ? AND {guarded}'])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Update:
    """Adds measures to the item of a group; `source_shard` decides which item of a write-sharded group it is."""

    def __init__(self, layout: ItemLayout, group: GroupKey, measures: Mapping[str, Number], source_shard: str) -> None:
        self.key = layout.key(group, source_shard)
        self._added = {name: typed_number(number) for name, number in measures.items() if number}
        self.attributes: dict[str, Mapping[str, Any]] = layout.attributes(group, self.key)
        self.requests = 1.0
        if layout.ranking is not None:
            # Only a repair treats it apart from its measure.
            score = measures.get(SCORE, measures.get(layout.ranking.measure, 0))
            self._added[SCORE] = typed_number(score)

    def request(self, table_name: str, bound: Bound | None = None) -> dict[str, Any]:
        """Return arguments of UpdateItem, or of ``Update`` in a transaction; with a bound, if a watermark is below."""
        key, is_common = typed_key(self.key), not isinstance(self, PageUpdate)
        return update_request(table_name, key, self.attributes, self._added, bound, is_common=is_common)

    def statement(self, table_name: str, bound: Bound) -> dict[str, Any]:
        """Return the same update in PartiQL, which refuses an item that lacks one of the numbers, or is not there."""
        watermark, below = bound
        clauses = _clauses(tuple(self.attributes), tuple(self._added), watermark)
        key = typed_key(self.key)
        return {
            "Statement": f"UPDATE {_quoted(table_name)} {clauses}",
            "Parameters": [*self.attributes.values(), *self._added.values(), *key.values(), below],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


class PageUpdate(Update):
    """Adds measures to groups in their page, on condition that it is at the level that is known of it."""

    def __init__(self, layout: ItemLayout, page: Page, groups: Mapping[GroupKey, Mapping[str, Number] | None]) -> None:
        assert layout.pages is not None
        self.key = layout.pages.key(page)
        self._page = page
        added: dict[str, Number] = {VERSION: 1}
        for group, measures in groups.items():
            # Not even 0 is added to a group that can take nothing.
            if measures is not None:
                added |= layout.pages.added(group, measures)
        # A group's first number is there even if it is 0: its name is the group's text.
        self._added = {name: typed_number(number) for name, number in added.items()}
        self.added: Mapping[str, Number] = added
        # All that a page has that never splits fits into one.
        requests = max(len(added) / _MOST_ADDED, sum(map(len, added)) / _MOST_CHARACTERS)
        self.requests = 1.0 if layout.pages.is_whole else requests
        # All groups of a page agree in these.
        self.attributes = layout.attributes(next(iter(groups)), {**self.key, PK: page.pk})
        if page.is_lost:
            self.attributes[LEVEL] = {"N": str(page.level)}

    def request(self, table_name: str, bound: Bound | None = None) -> dict[str, Any]:
        missing, same, level = "attribute_not_exists(#level)", "#level = :level", self._page.level
        own = f"({missing} OR {same})" if self._page.is_lost else same if level else missing
        values = {":level": {"N": str(level)}} if level else {}
        return conditional(super().request(table_name, bound), own, {"#level": LEVEL}, values)
