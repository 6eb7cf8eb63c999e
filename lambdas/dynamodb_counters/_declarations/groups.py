"""A group as it reads: its values and its measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import localcontext
from typing import Any, TypeAlias

from dynamodb_counters._declarations import SPREAD_FIELD, Aggregate
from dynamodb_counters._items.decimals import EXACT, Number, parse_number, whole
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import PK, SK

Key: TypeAlias = dict[str, dict[str, str]]
"""A typed key."""


@dataclass(frozen=True, slots=True)
class Group:
    """One group of an aggregate, as it is now.

    Parameters
    ----------
    values : mapping of str to str
        What makes the group.
    measures : mapping of str to int, Decimal, mapping or None
        All measures of the aggregate. 0 for what was never counted, None for the average of nothing; a histogram is a
        mapping of bins to numbers.

    Examples
    --------
    >>> Group({"url": "/"}, {"views": 3}).measures["views"]
    3
    """

    values: Mapping[str, str]
    measures: Mapping[str, Any]


def group_of(aggregate: Aggregate, values: Mapping[str, object], items: Iterable[Mapping[str, Any]]) -> Group:
    """Make a group of the items that hold it.

    Parameters
    ----------
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        What makes the group.
    items : iterable of mapping
        Typed items: one, or several of a spread aggregate; empty ones count 0.

    Returns
    -------
    Group
        With every measure of the aggregate.
    """
    held = list(items)
    with localcontext(EXACT):
        numbers: dict[str, Number] = {
            name: whole(sum(parse_number(item[name]["N"]) for item in held if name in item))
            for name in aggregate.attributes
        }
    return Group(
        {name: key_text(name, values[name]) for name in aggregate.fields},
        {name: measure.read(name, numbers) for name, measure in aggregate.measures.items()},
    )


def values_of(aggregate: Aggregate, item: Mapping[str, Any]) -> dict[str, str] | None:
    """Tell what makes the group that an item holds.

    Parameters
    ----------
    aggregate : Aggregate
        The aggregate the item belongs to.
    item : mapping
        Typed item, or at least its key.

    Returns
    -------
    dict of str to str or None
        Field to text; None when the key is hashed and the item lacks the values.
    """
    values: dict[str, str] = {}
    for name, template in ((PK, aggregate.pk_template), (SK, aggregate.sk_template)):
        key = item[name]["S"]
        if not is_hashed(key):
            values |= template.parse(key)
    values |= {name: item[name]["S"] for name in aggregate.fields if name not in values and name in item}
    return {name: values[name] for name in aggregate.fields} if values.keys() >= set(aggregate.fields) else None


def group_keys(aggregate: Aggregate, values: Mapping[str, object]) -> list[Key]:
    """Give the keys of a group's items.

    Parameters
    ----------
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.

    Returns
    -------
    list of dict
        Typed keys: one, or several for a spread aggregate.
    """
    return [
        {
            PK: {"S": aggregate.pk_template.render({**values, SPREAD_FIELD: part})},
            SK: {"S": aggregate.sk_template.render(values)},
        }
        for part in range(aggregate.spread)
    ]


def identity(item: Mapping[str, Any]) -> tuple[str, str]:
    """Give an item's key as plain text.

    Parameters
    ----------
    item : mapping
        Typed item or key.

    Returns
    -------
    tuple of str
        Partition and sort key.
    """
    return item[PK]["S"], item[SK]["S"]
