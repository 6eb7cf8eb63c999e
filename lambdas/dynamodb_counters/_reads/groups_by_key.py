"""Reading groups: by key, many at once, or all that share a partition key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import Group, Key, group_keys, group_of, identity, values_of
from dynamodb_counters._items.table_schema import PK, SK, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_A_CALL: Final = 100
_TRIES: Final = 8

_FIRST_CHARACTER: Final = " "  # a key escapes what comes before it
_LAST_CHARACTER: Final = "\U0010ffff"


def get(table: Table, aggregate: Aggregate, values: Mapping[str, object], *, consistent: bool) -> Group:
    """Read one group.

    Parameters
    ----------
    table : Table
        Where from.
    aggregate : Aggregate
        Which aggregate.
    values : mapping of str to str or number
        Its group.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    Group
        With measures of 0 where there is no item.
    """
    if aggregate.spread > 1:
        return get_many(table, [(aggregate, values)], consistent=consistent)[0]
    [key] = group_keys(aggregate, values)
    answer = table.client.get_item(TableName=table.name, Key=key, ConsistentRead=consistent)
    return group_of(aggregate, values, [answer.get("Item", {})])


def get_many(
    table: Table, groups: Iterable[tuple[Aggregate, Mapping[str, object]]], *, consistent: bool
) -> list[Group]:
    """Read many groups, of one or several aggregates.

    Parameters
    ----------
    table : Table
        Where from.
    groups : iterable of (Aggregate, mapping)
        Aggregate and group, any number.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    list of Group
        In the order asked.
    """
    asked = [(aggregate, values, group_keys(aggregate, values)) for aggregate, values in groups]
    found = get_items(table, [key for _, _, keys in asked for key in keys], consistent=consistent)
    return [
        group_of(aggregate, values, [found.get(identity(key), {}) for key in keys]) for aggregate, values, keys in asked
    ]


def group(
    table: Table, aggregates: Sequence[Aggregate], values: Mapping[str, object], *, consistent: bool
) -> dict[str, list[Group]]:
    """Read all groups of some aggregates that share a partition key, by one Query.

    Parameters
    ----------
    table : Table
        Where from.
    aggregates : sequence of Aggregate
        Aggregates with one ``pk`` template, none spread.
    values : mapping of str to str or number
        The fields of that template.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    dict of str to list of Group
        Groups by the aggregate's name.

    Raises
    ------
    InvalidArgumentError
        The aggregates do not share a partition key.
    """
    if len({aggregate.pk for aggregate in aggregates}) != 1 or any(aggregate.spread > 1 for aggregate in aggregates):
        names = [aggregate.name for aggregate in aggregates]
        raise InvalidArgumentError("aggregates", names, "aggregates with one pk template, none of them spread")
    first, last = _sort_key_range(aggregates)
    by_name = {aggregate.name: aggregate for aggregate in aggregates}
    found: dict[str, list[Group]] = {name: [] for name in by_name}
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        # From the first aggregate's items to the last one's: events beside them are mostly not read.
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
        ExpressionAttributeValues={
            ":pk": {"S": aggregates[0].pk_template.render(values)},
            ":first": {"S": first},
            ":last": {"S": last},
        },
        ConsistentRead=consistent,
    )
    for page in pages:
        for item in page["Items"]:
            aggregate = by_name.get(item.get(TYPE, {}).get("S", ""))
            if aggregate is not None:
                found[aggregate.name].append(
                    group_of(aggregate, {**values, **(values_of(aggregate, item) or {})}, [item])
                )
    return found


def get_items(table: Table, keys: Iterable[Key], *, consistent: bool) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Read items by key, 100 a call and many calls at once.

    Parameters
    ----------
    table : Table
        Where from.
    keys : iterable of dict
        Typed keys; repeated ones are read once.
    consistent : bool
        Whether to see all writes that are done.

    Returns
    -------
    dict of (str, str) to mapping
        The items that exist, by their keys.

    Raises
    ------
    TimeoutError
        DynamoDB left some unread after several tries.
    """
    different = list({identity(key): key for key in keys}.values())
    chunks = [different[start : start + _KEYS_A_CALL] for start in range(0, len(different), _KEYS_A_CALL)]
    return {
        identity(item): item
        for items in table.pool.map(lambda chunk: _get_chunk(table, chunk, consistent=consistent), chunks)
        for item in items
    }


def _sort_key_range(aggregates: Sequence[Aggregate]) -> tuple[str, str]:
    templates = [aggregate.sk_template for aggregate in aggregates]
    first = min(template.prefix for template in templates)
    # What has no field is one item: not even those whose keys continue its own, such as a Distinct's members, are read.
    last = max(template.prefix + (_LAST_CHARACTER if template.fields else "") for template in templates)
    return first or _FIRST_CHARACTER, last


def _get_chunk(table: Table, keys: list[Any], *, consistent: bool) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    for _ in table.tries(_TRIES):
        answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": consistent}})
        items += answer["Responses"].get(table.name, [])
        keys = answer.get("UnprocessedKeys", {}).get(table.name, {"Keys": []})["Keys"]
        if not keys:
            return items
    raise TimeoutError(f"{len(keys)} keys stayed unread after {_TRIES} tries; DynamoDB throttles the reads")
