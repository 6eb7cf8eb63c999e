"""The parts that all reads share: the generation that they read, items by key, and items of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._control.statuses import Declared, Standing, Statuses
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.groups import Key, canonical_fields, identity
from dynamodb_counters._fold.item_layout import require_kept
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._table import Table

Item: TypeAlias = Mapping[str, Any]

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_PER_CALL: Final = 100


class TableReads:
    """Reads of one table: a part of `Counters`."""

    _table: Table


def current(
    table: Table,
    declared: Declared,
    values: Mapping[str, object],
    fields: Callable[[Declared], Iterable[str]] = attrgetter("fields"),
) -> tuple[Declared, dict[str, str], Standing]:
    """The generation that readers use, and the texts of the group; what nothing counts, and no group, are refused."""
    statuses = Statuses.of_table(table)
    found = statuses.current(declared)
    texts = canonical_fields(declared.name, [(one, fields(one)) for one in (declared, found)], values)
    if isinstance(found, Aggregate):
        require_kept(found, texts, table.clock())
    return found, texts, statuses.standing(declared)


def get_items(table: Table, keys: Iterable[Key], *, consistent: bool) -> dict[tuple[str, str], Item]:
    """The items that exist, by key; TimeoutError if DynamoDB leaves some unread after several tries."""
    different = list({identity(key): key for key in keys}.values())
    if len(different) == 1:
        answer = table.client.get_item(TableName=table.name, Key=different[0], ConsistentRead=consistent)
        return {identity(different[0]): answer["Item"]} if "Item" in answer else {}
    chunks = [different[start : start + _KEYS_PER_CALL] for start in range(0, len(different), _KEYS_PER_CALL)]
    found = table.each(lambda chunk: _get_chunk(table, chunk, consistent=consistent), chunks)
    return {identity(item): item for items in found for item in items}


def _get_chunk(table: Table, keys: list[Any], *, consistent: bool) -> list[Item]:
    items: list[Item] = []
    for _ in table.tries():
        answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": consistent}})
        items += answer["Responses"].get(table.name, [])
        keys = answer.get("UnprocessedKeys", {}).get(table.name, {"Keys": []})["Keys"]
        if not keys:
            return items
    raise TimeoutError(f"{len(keys)} keys stayed unread after {TRIES} tries; DynamoDB throttles the reads")


def query(table: Table, pk: str, sort_keys: tuple[str, str], *, consistent: bool, **options: Any) -> Iterator[Item]:
    """Items of a partition from a first sort key to a last one, page by page as they are asked for."""
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
        ExpressionAttributeValues={":pk": {"S": pk}, ":first": {"S": sort_keys[0]}, ":last": {"S": sort_keys[1]}},
        ConsistentRead=consistent,
        **options,
    )
    for page in pages:
        yield from page["Items"]
