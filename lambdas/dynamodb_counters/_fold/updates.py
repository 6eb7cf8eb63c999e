"""UpdateItem requests: what to add to a group's item, the same for the stream, transactions and increments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._items.decimals import Number, typed_number
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, SCORE, SK, TTL, TYPE


class Update:
    """Adds measures to the item of a group; `source_shard` decides which item of a write-sharded group it is."""

    def __init__(self, layout: ItemLayout, group: GroupKey, measures: Mapping[str, Number], source_shard: str) -> None:
        self.key = layout.key(group, source_shard)
        self._added = {name: typed_number(number) for name, number in measures.items() if number}
        self._set: dict[str, Mapping[str, Any]] = {TYPE: {"S": layout.name}}
        self._below: dict[str, Mapping[str, Any]] = {}
        ranked = layout.leaderboard(group, self.key)
        if ranked is not None:
            leaderboard, measure = ranked
            self._set[LEADERBOARD] = {"S": leaderboard}
            # Only a repair tells it from its measure.
            self._added[SCORE] = typed_number(measures.get(SCORE, measures.get(measure, 0)))
        for name, text in layout.stored_values(group, self.key).items():
            self._set[name] = {"S": text}
        expires_at = layout.expires_at(group)
        if expires_at is not None:
            self._set[TTL] = {"N": str(expires_at)}

    def set(self, name: str, value: Mapping[str, Any]) -> None:
        self._set[name] = value

    def require_unset_or_below(self, name: str, value: Mapping[str, Any]) -> None:
        """Add the condition that an attribute is missing or less than a value."""
        self._below[name] = value

    def request(self, table_name: str) -> dict[str, Any]:
        """Arguments of UpdateItem, or of ``Update`` in a transaction."""
        arguments, placeholders = _expressions(tuple(self._set), tuple(self._added), tuple(self._below))
        values = (*self._set.values(), *self._added.values(), *self._below.values())
        request = arguments.copy()
        request["TableName"] = table_name
        request["Key"] = {PK: {"S": self.key[PK]}, SK: {"S": self.key[SK]}}
        request["ExpressionAttributeValues"] = dict(zip(placeholders, values, strict=True))
        return request


@lru_cache(maxsize=1024)
def _expressions(
    to_set: tuple[str, ...], to_add: tuple[str, ...], below: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Expressions and the placeholders of their values; all items of an aggregate share a few."""
    names: dict[str, str] = {name: f"#n{index}" for index, name in enumerate(dict.fromkeys(to_set + to_add + below))}
    values = tuple(f":v{index}" for index in range(len(to_set) + len(to_add) + len(below)))
    placeholders = iter(values)
    update = "SET " + ", ".join([f"{names[name]} = {next(placeholders)}" for name in to_set])
    if to_add:
        update += " ADD " + ", ".join([f"{names[name]} {next(placeholders)}" for name in to_add])
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
