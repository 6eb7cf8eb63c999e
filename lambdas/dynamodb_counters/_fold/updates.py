"""UpdateItem requests: what to add to a group's item, the same for the stream, transactions and increments."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._fold.page_layout import Page
from dynamodb_counters._items.bookkeeping import WRITE_UNIT_BYTES
from dynamodb_counters._items.conversions import Number, typed_number
from dynamodb_counters._items.table_schema import LEVEL, PK, SCORE, SK, VERSION

_Names: TypeAlias = tuple[str, ...]

_MOST_ADDED: Final = 200
"""Most attributes of a page that one request changes: its expression has at most 4 KB."""

_DIGITS: Final = string.digits + string.ascii_letters

_MOST_CHARACTERS: Final = 3 * WRITE_UNIT_BYTES
"""Longest names of these together: to split their page after the update costs more than before it."""


def _expressions(to_set: _Names, to_add: _Names, below: _Names) -> tuple[dict[str, Any], _Names]:
    """Expressions and the placeholders of their values."""
    names: dict[str, str] = {name: f"#n{_short(i)}" for i, name in enumerate(dict.fromkeys(to_set + to_add + below))}
    values = tuple(f":v{_short(index)}" for index in range(len(to_set) + len(to_add) + len(below)))
    placeholders = iter(values)
    update = "SET " + ", ".join([f"{names[name]} = {next(placeholders)}" for name in to_set])
    if to_add:
        update += " ADD " + ",".join([f"{names[name]} {next(placeholders)}" for name in to_add])
    arguments: dict[str, Any] = {
        "UpdateExpression": update,
        "ExpressionAttributeNames": {placeholder: name for name, placeholder in names.items()},
    }
    if below:
        conditions = [
            f"(attribute_not_exists({names[name]}) OR {names[name]} < {next(placeholders)})" for name in below
        ]
        arguments["ConditionExpression"] = " AND ".join(conditions)
    return arguments, values


def _short(index: int) -> str:
    """A number as placeholders have it, short enough for those of a page that never splits."""
    digits = ""
    while index >= len(_DIGITS):
        index, rest = divmod(index, len(_DIGITS))
        digits = _DIGITS[rest] + digits
    return _DIGITS[index] + digits


_shared_expressions: Final = lru_cache(maxsize=1024)(_expressions)
"""All items of an aggregate share a few; each page has its own."""


class Update:
    """Adds measures to the item of a group; `source_shard` decides which item of a write-sharded group it is."""

    _shares_expressions = True

    def __init__(self, layout: ItemLayout, group: GroupKey, measures: Mapping[str, Number], source_shard: str) -> None:
        self.key = layout.key(group, source_shard)
        self._added = {name: typed_number(number) for name, number in measures.items() if number}
        self._set: dict[str, Mapping[str, Any]] = layout.attributes(group, self.key)
        self._below: dict[str, Mapping[str, Any]] = {}
        self.requests = 1.0
        if layout.ranking is not None:
            # Only a repair treats it apart from its measure.
            score = measures.get(SCORE, measures.get(layout.ranking.measure, 0))
            self._added[SCORE] = typed_number(score)

    def set(self, name: str, value: Mapping[str, Any]) -> None:
        self._set[name] = value

    def guarded_request(
        self, table_name: str, watermarks: Sequence[str], first: Mapping[str, Any], last: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The request if all watermarks are missing or less than `first`; it sets the first one to `last`."""
        self.set(watermarks[0], last)
        self._require_below(watermarks, first)
        return {**self.request(table_name), "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}

    def _require_below(self, names: Sequence[str], value: Mapping[str, Any]) -> None:
        self._below.update(dict.fromkeys(names, value))

    def request(self, table_name: str) -> dict[str, Any]:
        """Arguments of UpdateItem, or of ``Update`` in a transaction."""
        expressions = _shared_expressions if self._shares_expressions else _expressions
        arguments, placeholders = expressions(tuple(self._set), tuple(self._added), tuple(self._below))
        values = (*self._set.values(), *self._added.values(), *self._below.values())
        request = arguments.copy()
        request["TableName"] = table_name
        request["Key"] = {PK: {"S": self.key[PK]}, SK: {"S": self.key[SK]}}
        request["ExpressionAttributeValues"] = dict(zip(placeholders, values, strict=True))
        return request


class PageUpdate(Update):
    """Adds measures to groups in their page, on condition that it is at the level that is known of it."""

    _shares_expressions = False

    def __init__(self, layout: ItemLayout, page: Page, groups: Mapping[GroupKey, Mapping[str, Number] | None]) -> None:
        assert layout.pages is not None
        self.key = layout.pages.key(page)
        self._page = page
        added: dict[str, Number] = {VERSION: 1}
        for group, measures in groups.items():
            # Not even 0 is added to a group that can take nothing.
            if measures is not None:
                added |= layout.pages.added(layout.page_texts(group), measures)
        # A group's first number is there even if it is 0: its name is the group's text.
        self._added = {name: typed_number(number) for name, number in added.items()}
        self.added: Mapping[str, Number] = added
        # All that a page has that never splits fits into one.
        self.requests = (
            1 if layout.pages.is_whole else max(len(added) / _MOST_ADDED, sum(map(len, added)) / _MOST_CHARACTERS)
        )
        # All groups of a page agree in these.
        self._set = layout.attributes(next(iter(groups)), {**self.key, PK: page.pk})
        if page.is_lost:
            self._set[LEVEL] = {"N": str(page.level)}
        self._below = {}

    def request(self, table_name: str) -> dict[str, Any]:
        request = super().request(table_name)
        conditions = [request["ConditionExpression"]] if self._below else []
        request["ExpressionAttributeNames"] = {**request["ExpressionAttributeNames"], "#level": LEVEL}
        missing, same = "attribute_not_exists(#level)", "#level = :level"
        if self._page.level:
            request["ExpressionAttributeValues"][":level"] = {"N": str(self._page.level)}
        own = f"({missing} OR {same})" if self._page.is_lost else same if self._page.level else missing
        return {**request, "ConditionExpression": " AND ".join([own, *conditions])}
