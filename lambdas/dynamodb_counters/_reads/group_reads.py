"""Read groups: one, many at once, all of a partition, in pages, leaderboards, distributions, and extreme values."""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import accumulate, chain, islice
from typing import Any, Final, TypeAlias, overload

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._declarations import WRITE_SHARD_FIELD, Aggregate, Declaration, Distinct, Extremes, Percentiles
from dynamodb_counters._declarations import groups as declared_groups
from dynamodb_counters._declarations.checks import require_bool, require_choice, require_count
from dynamodb_counters._declarations.composites import group_fields, require_declaration
from dynamodb_counters._declarations.groups import Given, Group, Key, given, group_of, identity, values_of
from dynamodb_counters._fold import layouts
from dynamodb_counters._fold.layouts import BITS, GroupKey, ItemLayout, Page, PageLayout
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, key_text, parse_number, read_number, whole
from dynamodb_counters._items.keys import LOG, log_bins, parts_of, value_of
from dynamodb_counters._items.schema import LEADERBOARD, PK, RANKING_INDEX, READ_UNIT_BYTES, SCORE, SK, TYPE
from dynamodb_counters._reads.question import MAX_LIMIT, ORDERS, Order
from dynamodb_counters._registry import NameStates, PageLevels
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import Interval, Span, utc
from dynamodb_counters.errors import InvalidArgumentError

Item: TypeAlias = Mapping[str, Any]
Values: TypeAlias = Mapping[str, object]
Lookup: TypeAlias = tuple[ItemLayout, GroupKey]
Identity: TypeAlias = tuple[str, str]
"""The key of a group's item; of a group in a page, its digest after an empty text."""

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_PER_CALL: Final = 100
_END: Final = 1 << BITS
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_AT_A_TIME: Final = 20  # Items of a Query, some of values that no item has any more: what fits into half a read unit.


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values lie where: each bin stands for values that differ from it by at most the declared error.

    Parameters
    ----------
    bins : mapping of Decimal to int
        Numbers of values by what stands for them, in ascending order.
    start, end : datetime, optional
        As of a `WindowCount`; None without a `time`.
    complete : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> sizes = Distribution({Decimal(10): 98, Decimal(500): 2})
    >>> sizes.count, sizes.p(0.98), sizes.p(0.99)
    (100, Decimal('10'), Decimal('500'))
    """

    bins: Mapping[Decimal, Number]
    start: datetime | None = None
    end: datetime | None = None
    complete: bool = True

    @property
    def count(self) -> Number:
        """The number of values."""
        return sum(self.bins.values())

    def p(self, share: float) -> Decimal | None:
        """Return the least value that so large a share of all values does not exceed; None if there are no values.

        Parameters
        ----------
        share : float
            From 0 to 1: ``p(0.99)`` is the 99th percentile, by the nearest rank.
        """
        if isinstance(share, bool) or not isinstance(share, float | int | Decimal) or not 0 <= share <= 1:
            raise InvalidArgumentError("share", share, "a number from 0 to 1, such as 0.99")
        rank = max(1, math.ceil(Decimal(str(share)) * self.count))
        totals = zip(self.bins, accumulate(self.bins.values()), strict=True)
        return next((value for value, total in totals if total >= rank), None)


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
    complete : bool, optional
        As of a `Group`.
    """

    value: Number | datetime
    items: Number
    shown: Mapping[str, str]
    complete: bool = True


class GroupReads:
    """Reads of groups; with reads of windows and events, which add to it, a part of `Counters`."""

    _table: Table

    @overload
    def get(
        self, declaration: Aggregate | Distinct, values: Given = None, /, *, consistent: bool = False, **fields: object
    ) -> Group: ...
    @overload
    def get(
        self, declaration: Percentiles, values: Given = None, /, *, consistent: bool = False, **fields: object
    ) -> Distribution: ...
    def get(
        self,
        declaration: Aggregate | Distinct | Percentiles,
        values: Given = None,
        /,
        *,
        consistent: bool = False,
        **fields: object,
    ) -> Group | Distribution:
        """Read one `Group`, whose measures are 0 if nothing was counted; of `Percentiles` the values' `Distribution`.

        Parameters
        ----------
        declaration : Aggregate, Distinct or Percentiles
            The measure of a `Distinct` is ``distinct``, the number of different members. Percentiles without a `time`.
        """
        group = given(values, fields)
        if isinstance(declaration, Percentiles) and declaration.time is None:
            return read_distribution(self._table, declaration._parts[-1], group, consistent=consistent)
        return self.get_many([(declaration, group)], consistent=consistent)[0]  # type: ignore[list-item]

    def get_many(
        self, wanted: Iterable[tuple[Aggregate | Distinct, Mapping[str, object]]], *, consistent: bool = False
    ) -> list[Group]:
        """Read many groups, in their order: 100 per call and many calls at once.

        Parameters
        ----------
        wanted : iterable of (Aggregate or Distinct, mapping)
            Declarations with the values of their groups.

        Raises
        ------
        TimeoutError
            DynamoDB left some unread after several tries.
        """
        groups = []
        for declared, values in wanted:
            aggregate = require_declaration(declared.total if isinstance(declared, Distinct) else declared, Aggregate)
            texts, complete = resolve_group(self._table, aggregate, values, aggregate.fields, is_whole=False)
            groups.append((aggregate, texts, complete))
        keys = [(ItemLayout(aggregate), declared_groups.group_key(aggregate, texts)) for aggregate, texts, _ in groups]
        rows = zip(groups, read_items(self._table, keys, consistent=consistent), strict=True)
        return [group_of(aggregate, texts, items, complete) for (aggregate, texts, complete), items in rows]

    def groups(
        self,
        aggregate: Aggregate | Distinct,
        values: Given = None,
        /,
        *,
        scan: bool = False,
        consistent: bool = False,
        **fields: object,
    ) -> Iterator[Group]:
        """List the groups of an aggregate as they are asked for, page by page.

        A Query reads those that share a partition key, in the order of their sort keys; those in pages come in the
        order of their digests. Groups with keys of their own, as by default, take a Scan of the table.

        Parameters
        ----------
        aggregate : Aggregate or Distinct
            One with ``write_shards=1``.
        scan : bool, optional
            Whether the whole table may be read: it takes ``dynamodb:Scan``. Default False: that is refused with its
            price, which takes ``dynamodb:DescribeTable``. ``grant_read`` allows neither.
        values, **fields
            A value per field of its ``pk`` template; with `scan`, of any fields.
        """
        declared = require_declaration(aggregate.total if isinstance(aggregate, Distinct) else aggregate, Aggregate)
        require_bool("scan", scan)
        groups = list_groups(self._table, declared, given(values, fields), scan=scan, consistent=consistent)
        return (group for _, group in groups)

    def top(self, aggregate: Aggregate, values: Given = None, /, *, count: int = 10, **fields: object) -> list[Group]:
        """Read the first groups of a leaderboard, highest score first; equal scores come in no stated order.

        The measures of each are the one that it is ranked by: the index has no other. `get_many` reads all.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        count : int, optional
            Most groups to return. Default 10.
        values, **fields
            A value per field of the leaderboard's key.
        """
        require_count("count", count, MAX_LIMIT)
        table, ranking = self._table, require_declaration(aggregate, Aggregate).ranking
        if ranking is None:
            raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with a ranking")
        texts, complete = resolve_group(table, aggregate, given(values, fields), ranking._template.fields[:-1])
        template = ranking._template
        boards = [template.render({**texts, WRITE_SHARD_FIELD: shard}) for shard in range(ranking.write_shards)]
        shards = table.each(lambda board: _board(table, board, count), boards)
        items = [*islice(heapq.merge(*shards, key=_score, reverse=True), count)]
        # The index holds only keys; a hashed key's values are in the item.
        unknown = [{PK: item[PK], SK: item[SK]} for item in items if values_of(aggregate, item) is None]
        whole_items = get_items(table, unknown, consistent=False)
        groups = (values_of(aggregate, whole_items.get(identity(item), item)) or {} for item in items)
        scores = ({ranking.measure: whole(_score(item))} for item in items)
        return [Group(*group, complete) for group in zip(groups, scores, strict=True)]

    def extremes(
        self,
        extremes: Extremes,
        values: Given = None,
        /,
        *,
        order: Order = "largest",
        count: int = 1,
        consistent: bool = False,
        **fields: object,
    ) -> list[Extreme]:
        """Read the first values of a group from one end: one Query.

        Parameters
        ----------
        extremes : Extremes
        order : {"largest", "smallest"}, optional
            Which value comes first. Default the largest.
        count : int, optional
            Most values to return. Default 1.
        """
        require_declaration(extremes, Extremes)
        require_choice("order", order, ORDERS)
        require_count("count", count, MAX_LIMIT)
        group = given(values, fields)
        return read_extremes(self._table, extremes._parts[-1], group, order, count, consistent=consistent)


def list_groups(
    table: Table, aggregate: Aggregate, values: Values, after: Identity | None = None, *, scan: bool, consistent: bool
) -> Iterator[tuple[Identity, Group]]:
    """List groups, each after its key; by a Scan where the values are not all of a partition key's."""
    missing = [] if aggregate.pages else [name for name in aggregate._listed_by if name not in values]
    fields = aggregate.fields if missing else aggregate._listed_by
    texts, complete = resolve_group(table, aggregate, values, fields, is_whole=not missing)
    if aggregate.write_shards > 1:
        raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with write_shards=1")
    start, (first, last) = "" if after is None else after[1], sort_key_range(aggregate)
    if after and not missing and not (_DIGEST.fullmatch(start) if aggregate.pages else first <= start <= last):
        raise InvalidArgumentError("next", start, f"the key of a group of {aggregate.name!r}")
    rows: Iterable[tuple[Identity, Item]]
    if aggregate.pages:
        pages = walk(table, aggregate, texts, after=start, consistent=consistent)
        rows = ((("", digest), item) for digest, item in pages)
    elif missing:
        require_scan(table, f", or values of {', '.join(missing)} for a Query", scan=scan)
        begin = {} if after is None else {"ExclusiveStartKey": {PK: {"S": after[0]}, SK: {"S": after[1]}}}
        rows = ((identity(item), item) for item in table.of_types(aggregate.name, ConsistentRead=consistent, **begin))
    else:
        pk = aggregate._pk_template.render(texts)
        items = query(table, pk, (max(start, first), last), consistent=consistent)
        own = (item for item in items if item.get(TYPE) == {"S": aggregate.name})
        rows = ((identity(item), item) for item in own if item[SK]["S"] > start)

    def groups() -> Iterator[tuple[Identity, Group]]:
        for key_pair, item in rows:
            key = layouts.group_of_item(aggregate, item)
            # Other code may have written an item that names the aggregate and has no key of a group.
            group = {} if key is None else dict(zip(aggregate.fields, key, strict=True))
            if key is not None and group.items() >= texts.items():
                yield key_pair, group_of(aggregate, group, [item], complete)

    return groups()


def sort_key_range(aggregate: Aggregate) -> tuple[str, str]:
    template = aggregate._sk_template
    # A template without fields has one item; keys that continue it, such as a Distinct's members, stay unread.
    # Keys escape all characters before the blank.
    return template.prefix or " ", template.prefix + (LAST_CHARACTER if template.fields else "")


def _board(table: Table, board: str, count: int) -> list[Item]:
    pages = table.client.get_paginator("query").paginate(
        TableName=table.name,
        IndexName=RANKING_INDEX,
        KeyConditionExpression="#leaderboard = :leaderboard",
        ExpressionAttributeNames={"#leaderboard": LEADERBOARD},
        ExpressionAttributeValues={":leaderboard": {"S": board}},
        ScanIndexForward=False,
        PaginationConfig={"MaxItems": count, "PageSize": count},
    )
    return [item for page in pages for item in page["Items"]]


def _score(item: Item) -> Number:
    return parse_number(item[SCORE]["N"])


def read_extremes(
    table: Table, counted: Aggregate, values: Values, order: str, count: int, *, consistent: bool
) -> list[Extreme]:
    """Return the first values of a group from either end, by the aggregate that counts the items of each value."""
    values, complete = resolve_group(table, counted, values)
    value, *companions = counted._sk_template.fields
    pk = counted._pk_template.render(values)
    options = {"ScanIndexForward": order == "smallest", "Limit": _AT_A_TIME}
    items = query(table, pk, sort_key_range(counted), consistent=consistent, **options)
    # An item stays at 0 when its value is gone.
    present = (item for item in items if read_number(item, "items") > 0 and item[TYPE]["S"] == counted.name)
    groups = ((values_of(counted, item) or {}, read_number(item, "items")) for item in islice(present, count))
    return [
        Extreme(value_of(texts[value]), number, {name: texts[name] for name in companions}, complete)
        for texts, number in groups
    ]


def read_distribution(table: Table, counted: Aggregate, values: Values, *, consistent: bool) -> Distribution:
    values, complete = resolve_group(table, counted, values)
    groups = [group for _, group in walk(table, counted, values, consistent=consistent)]
    return distribution(counted, [numbers_of(counted, groups)], complete)


def distribution(
    declared: Aggregate, parts: Sequence[Mapping[str, Number]], complete: bool, span: Interval | None = None
) -> Distribution:
    bins = log_bins(Decimal(parts_of(declared.fields[-1])[1].removeprefix(LOG)))
    sums = defaultdict[Decimal, Number](int)
    for name, count in chain.from_iterable(part.items() for part in parts):
        sums[bins.value_of(name)] += count
    start, end = (None, None) if span is None else (utc(span.start), utc(span.end))
    return Distribution({value: sums[value] for value in sorted(sums)}, start, end, complete)


def resolve_group(
    table: Table, declared: Declaration, values: Values, fields: Iterable[str] | None = None, *, is_whole: bool = True
) -> tuple[dict[str, str], bool]:
    """Return the texts of a group, and whether it is complete; refuse what nothing counts, and what is no group."""
    is_complete = NameStates.of_table(table).complete(declared)
    fields = group_fields(declared) if fields is None else fields
    texts = declared_groups.canonical_fields(declared, fields, values, fields if is_whole else ())
    if isinstance(declared, Aggregate):
        layouts.require_kept(declared, texts, table.clock())
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
    first, last = sort_keys
    options["KeyConditionExpression"] = f"{PK} = :pk AND {SK} BETWEEN :first AND :last"
    options["ExpressionAttributeValues"] = {":pk": {"S": pk}, ":first": {"S": first}, ":last": {"S": last}}
    return table.partition(pk, ConsistentRead=consistent, **options)


def read_items(table: Table, groups: Sequence[Lookup], *, consistent: bool) -> list[list[Image]]:
    """Return the items of groups that are there; of a group in a page that is there, what would be its item."""
    keys = [[] if layout.pages else layout.keys(group) for layout, group in groups]
    stored = get_items(table, chain.from_iterable(keys), consistent=consistent)
    addresses = [(layout.pages, *layout.address(group)) for layout, group in groups if layout.pages]
    pages = iter(_pages_at(table, addresses, consistent=consistent))
    items: list[list[Image]] = []
    for (layout, group), own_keys in zip(groups, keys, strict=True):
        own = [stored.get(identity(key), {}) for key in own_keys]
        if layout.pages and (item := next(pages)[1]):
            own = [layout.pages.group(item, group)]
        items.append([item for item in own if item])
    return items


def _pages_at(
    table: Table, addresses: Sequence[tuple[PageLayout, str, int]], *, consistent: bool
) -> list[tuple[Page, Image]]:
    """Return the pages of shelves in which hashes lie, with their items; empty ones if there are none."""
    answers, levels = dict[int, tuple[Page, Image]](), PageLevels.of_table(table)
    while pending := [index for index in range(len(addresses)) if index not in answers]:
        pages = {index: levels.locate(addresses[index][0].name, *addresses[index][1:]) for index in pending}
        keys = {index: declared_groups.typed_key(addresses[index][0].key(page)) for index, page in pages.items()}
        items = get_items(table, keys.values(), consistent=consistent)
        for index, page in pages.items():
            item = items.get(identity(keys[index]), {})
            consistent |= not item
            if levels.learn(addresses[index][0].name, page, item):
                answers[index] = page, item
    return [answers[index] for index in range(len(addresses))]


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
    start = int(after[: BITS // 4], 16) if after else 0
    for page in _pages(table, layout, shelf, start, consistent=consistent):
        groups = {layouts.digest_of(item[SK]["S"]): item for item in layout.groups(page)}
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


def _pages(table: Table, layout: PageLayout, shelf: str, start: int, *, consistent: bool) -> Iterator[Image]:
    is_fresh = consistent
    while start < _END:
        [(page, item)] = _pages_at(table, [(layout, shelf, start)], consistent=is_fresh)
        if item:
            yield item
        elif not page.is_lost:
            return
        start = page.end
        key, last = layout.key(Page(shelf, start % _END)), layout.key(Page(shelf))[SK][:-1] + LAST_CHARACTER
        for item in query(table, key[PK], (key[SK], last), consistent=consistent) if start < _END else ():
            following = layout.page_of(item)
            if following is None or following.first > start:
                break
            if following.first == start:
                yield item
                start = following.end
        # Another partition follows, or a page is missing that is there: its reads were stale.
        is_fresh = True
