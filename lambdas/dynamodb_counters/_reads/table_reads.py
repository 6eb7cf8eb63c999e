"""The parts that all reads share: whether they are complete, items by key and of a partition, and pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._declarations.groups import Key, canonical_fields, identity, typed_key, values_of
from dynamodb_counters._fold.layouts import BITS, GroupKey, ItemLayout, Page, PageLayout, digest_of, require_kept
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, key_text, read_number
from dynamodb_counters._items.schema import PK, READ_UNIT_BYTES, SK
from dynamodb_counters._registry import NameStates, PageLevels
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import Interval, Span
from dynamodb_counters.errors import InvalidArgumentError

Item: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Mapping[str, object]
Lookup: TypeAlias = tuple[ItemLayout, GroupKey]

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_PER_CALL: Final = 100
_END: Final = 1 << BITS


class TableReads:
    """Reads of one table: a part of `Counters`."""

    _table: Table


def resolve_group(
    table: Table, declared: Declaration, values: Values, fields: Iterable[str] | None = None, *, is_whole: bool = True
) -> tuple[dict[str, str], bool]:
    """Return the texts of a group, and whether it is complete; refuse what nothing counts, and what is no group."""
    is_complete = NameStates.of_table(table).complete(declared)
    fields = group_fields(declared) if fields is None else fields
    texts = canonical_fields(declared, fields, values, fields if is_whole else ())
    if isinstance(declared, Aggregate):
        require_kept(declared, texts, table.clock())
    return texts, is_complete


def require_scan(table: Table, instead: str = "", *, scan: bool) -> None:
    """Refuse a Scan that is not asked for, by its read units as far as DynamoDB knows the table's size."""
    if not scan:
        size = table.client.describe_table(TableName=table.name)["Table"].get("TableSizeBytes", 0)
        units = math.ceil(size / READ_UNIT_BYTES)
        raise InvalidArgumentError("scan", scan, f"True, for a Scan that takes {units:,} read units{instead}")


def get_items(table: Table, keys: Iterable[Key], *, consistent: bool) -> dict[tuple[str, str], Item]:
    """Return the items that exist, by key; TimeoutError if DynamoDB leaves some unread after several tries."""
    different = list({identity(key): key for key in keys}.values())
    if len(different) == 1:
        answer = table.client.get_item(TableName=table.name, Key=different[0], ConsistentRead=consistent)
        return {identity(different[0]): answer["Item"]} if "Item" in answer else {}

    def read(keys: list[Any]) -> list[Item]:
        items: list[Item] = []
        for _ in table.tries():
            requests: Any = {table.name: {"Keys": keys, "ConsistentRead": consistent}}
            answer = table.client.batch_get_item(RequestItems=requests)
            items += answer["Responses"].get(table.name, [])
            keys = answer.get("UnprocessedKeys", {}).get(table.name, {"Keys": []})["Keys"]
            if not keys:
                return items
        raise TimeoutError(f"{len(keys)} keys stayed unread after {TRIES} tries; DynamoDB throttles the reads")

    chunks = [different[start : start + _KEYS_PER_CALL] for start in range(0, len(different), _KEYS_PER_CALL)]
    return {identity(item): item for items in table.each(read, chunks) for item in items}


def query(table: Table, pk: str, sort_keys: tuple[str, str], *, consistent: bool, **options: Any) -> Iterator[Item]:
    """Yield items of a partition from a first sort key to a last one, page by page as they are asked for."""
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        KeyConditionExpression=f"{PK} = :pk AND {SK} BETWEEN :first AND :last",
        ExpressionAttributeValues={":pk": {"S": pk}, ":first": {"S": sort_keys[0]}, ":last": {"S": sort_keys[1]}},
        ConsistentRead=consistent,
        **options,
    )
    for page in pages:
        yield from page["Items"]


def read_items(table: Table, groups: Sequence[Lookup], *, consistent: bool) -> list[list[Image]]:
    """Return the items of groups that are there; of a group in a page that is there, what would be its item."""
    keys = [[] if layout.pages else layout.keys(group) for layout, group in groups]
    stored = get_items(table, chain.from_iterable(keys), consistent=consistent)
    places = [(layout.pages, *layout.address(group)) for layout, group in groups if layout.pages]
    pages = iter(_pages_at(table, places, consistent=consistent))
    items: list[list[Image]] = []
    for (layout, group), own_keys in zip(groups, keys, strict=True):
        own = [stored.get(identity(key), {}) for key in own_keys]
        if layout.pages and (item := next(pages)[1]):
            own = [layout.pages.group(item, group)]
        items.append([item for item in own if item])
    return items


def _pages_at(
    table: Table, places: Sequence[tuple[PageLayout, str, int]], *, consistent: bool
) -> list[tuple[Page, Image]]:
    """Return the pages of shelves in which hashes lie, with their items; empty ones if there are none."""
    answers, levels = dict[int, tuple[Page, Image]](), PageLevels.of_table(table)
    while pending := [index for index in range(len(places)) if index not in answers]:
        pages = {index: levels.locate(places[index][0].name, *places[index][1:]) for index in pending}
        keys = {index: typed_key(places[index][0].key(page)) for index, page in pages.items()}
        items = get_items(table, keys.values(), consistent=consistent)
        for index, page in pages.items():
            item = items.get(identity(keys[index]), {})
            consistent |= not item
            if levels.learn(places[index][0].name, page, item):
                answers[index] = page, item
    return [answers[index] for index in range(len(places))]


def walk(
    table: Table, aggregate: Aggregate, values: Values, *, after: str = "", consistent: bool
) -> Iterator[tuple[str, Image]]:
    """Yield all groups of the shelf of some values in the order of their digests, which another walk can go on `after`.

    Pages follow each other without a gap. One that splits meanwhile is read whole before, or in two parts.
    """
    layout = ItemLayout(aggregate).pages
    assert layout is not None
    shared = [key_text(name, values[name]) for name in aggregate._listed_by if name in aggregate._sk_template.fields]
    shelf = layout.shelf(aggregate._pk_template.render(values), shared)
    place = int(after[: BITS // 4], 16) if after else 0
    for page in _pages(table, layout, shelf, place, consistent=consistent):
        groups = {digest_of(item[SK]["S"]): item for item in layout.groups(page)}
        yield from sorted((digest, item) for digest, item in groups.items() if digest > after)


def numbers_by_unit(
    table: Table, aggregate: Aggregate, values: Values, span: Interval, *, consistent: bool
) -> Iterator[tuple[int, dict[str, Number]]]:
    """Yield each unit of a span that is there, with what its groups count by the text of their last field."""
    layout, field, tier = ItemLayout(aggregate).pages, aggregate._listed_by[-1], aggregate._tier
    assert layout is not None
    pk = aggregate._pk_template.render(values)
    first, last = (layout.key(Page(layout.shelf(pk, [tier.text(bucket)]))) for bucket in Span(tier, span).buckets)
    for item in query(table, first[PK], (first[SK], last[SK]), consistent=consistent):
        page, groups = layout.page_of(item), layout.groups(item)
        if page is None or page.first:
            continue
        if page.level:
            shelf = {**values, field: page.shared}
            groups = [group for _, group in walk(table, aggregate, shelf, consistent=consistent)]
        yield tier.parse(page.shared), numbers_of(aggregate, groups)


def numbers_of(aggregate: Aggregate, groups: list[Image]) -> dict[str, Number]:
    """Return the counts of groups by the text of their last field, without groups that count nothing."""
    [measure], field = aggregate.measures, aggregate.fields[-1]
    numbers = {(values_of(aggregate, group) or {})[field]: read_number(group, measure) for group in groups}
    return {text: number for text, number in numbers.items() if number}


def _pages(table: Table, layout: PageLayout, shelf: str, place: int, *, consistent: bool) -> Iterator[Image]:
    is_fresh = consistent
    while place < _END:
        [(page, item)] = _pages_at(table, [(layout, shelf, place)], consistent=is_fresh)
        if item:
            yield item
        elif not page.is_lost:
            return
        place = page.end
        key, last = layout.key(Page(shelf, place % _END)), layout.key(Page(shelf))[SK][:-1] + LAST_CHARACTER
        for item in query(table, key[PK], (key[SK], last), consistent=consistent) if place < _END else ():
            following = layout.page_of(item)
            if following is None or following.first > place:
                break
            if following.first == place:
                yield item
                place = following.end
        # Another partition follows, or a page is missing that is there: its reads were stale.
        is_fresh = True
