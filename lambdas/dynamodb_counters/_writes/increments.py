"""Counting without the stream or events: add to a group at once, or set it to 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamodb_counters._declarations import Aggregate, Count, Sum
from dynamodb_counters._declarations.groups import group_keys, group_of
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters._items.table_schema import PK, SCORE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


def increment(
    table: Table, aggregate: Aggregate, values: Mapping[str, object], by: Mapping[str, Number] | Number
) -> dict[str, Any]:
    """Add to a group at once and return its measures; not idempotent. Of a write-sharded group, one item's measures."""
    added = _by_measure(aggregate, by)
    missing = [name for name in aggregate.fields if name not in values]
    if missing:
        raise InvalidArgumentError("values", dict(values), f"values for {', '.join(aggregate.fields)}")
    group = tuple(key_text(name, values[name]) for name in aggregate.fields)
    answer = table.client.update_item(
        **Update(ItemLayout(aggregate), group, added, str(table.jitter())).request(table.name), ReturnValues="ALL_NEW"
    )
    return dict(group_of(aggregate, values, [answer["Attributes"]]).measures)


def reset(table: Table, aggregate: Aggregate, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0, keep its watermarks, and return what they were; nothing is lost or counted twice."""
    zeroed = [*aggregate.attributes, *([SCORE] if aggregate.ranking is not None else [])]
    names = {f"#m{index}": name for index, name in enumerate(zeroed)}
    before: list[Mapping[str, Any]] = []
    for key in group_keys(aggregate, values):
        try:
            answer = table.client.update_item(
                TableName=table.name,
                Key=key,
                UpdateExpression="SET " + ", ".join(f"{name} = :zero" for name in names),
                ConditionExpression=f"attribute_exists({PK})",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":zero": {"N": "0"}},
                ReturnValues="ALL_OLD",
            )
        except table.client.exceptions.ConditionalCheckFailedException:
            continue  # Never counted.
        before.append(answer["Attributes"])
    return dict(group_of(aggregate, values, before).measures)


def _by_measure(aggregate: Aggregate, by: Mapping[str, Number] | Number) -> dict[str, Number]:
    measures = [name for name, measure in aggregate.measures.items() if isinstance(measure, Count | Sum)]
    if not isinstance(by, Mapping):
        if len(measures) != 1:
            raise InvalidArgumentError("by", by, f"a mapping with some of {aggregate.name!r}'s measures {measures}")
        by = {measures[0]: by}
    if not by or not set(by) <= set(measures):
        raise InvalidArgumentError("by", dict(by), f"numbers for measures among {measures}")
    return {name: require_storable("by", number) for name, number in by.items()}
