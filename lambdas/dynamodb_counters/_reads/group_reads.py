"""Read groups: one, many at once, all of a partition, leaderboards, and the first values of an `Extremes`."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, TypeAlias, overload

from dynamodb_counters._declarations import WRITE_SHARD_FIELD, Aggregate, Distinct, Extremes, Percentiles
from dynamodb_counters._declarations.checks import require_bool, require_choice, require_count
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import Given, Group, given, group_key, group_of, identity, values_of
from dynamodb_counters._fold.layouts import ItemLayout, group_of_item
from dynamodb_counters._items.conversions import LAST_CHARACTER, Number, parse_number, read_number, whole
from dynamodb_counters._items.keys import value_of
from dynamodb_counters._items.schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK, TYPE
from dynamodb_counters._reads import table_reads
from dynamodb_counters._reads.question import MAX_LIMIT, ORDERS, Order
from dynamodb_counters._reads.span_reads import Distribution, read_distribution
from dynamodb_counters._reads.table_reads import Item, TableReads, query, resolve_group
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_AT_A_TIME: Final = 20
"""Items that a Query reads: as much as fits into half a read unit. Values that no item has any more are passed over."""

Place: TypeAlias = tuple[str, str]
"""The key of a group's item; of a group in a page, its digest after an empty text."""


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


class GroupReads(TableReads):
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
        """Read one group; its measures are 0 if nothing was counted.

        Parameters
        ----------
        declaration : Aggregate, Distinct or Percentiles
            The measure of a `Distinct` is ``distinct``, the number of different members. Percentiles without a `time`.

        Returns
        -------
        Group
            Of `Percentiles`, the `Distribution` of the group's values.
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
            aggregate = declared.total if isinstance(declared, Distinct) else declared
            require_declaration(aggregate, Aggregate)
            group = resolve_group(self._table, aggregate, values, aggregate.fields, is_whole=False)
            groups.append((aggregate, *group))
        keys = [(ItemLayout(aggregate), group_key(aggregate, texts)) for aggregate, texts, _ in groups]
        stored = table_reads.read_items(self._table, keys, consistent=consistent)
        return [
            group_of(aggregate, texts, items, complete)
            for (aggregate, texts, complete), items in zip(groups, stored, strict=True)
        ]

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
        declared = aggregate.total if isinstance(aggregate, Distinct) else aggregate
        require_declaration(declared, Aggregate)
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
        whole_items = table_reads.get_items(table, unknown, consistent=False)
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
    table: Table,
    aggregate: Aggregate,
    values: Mapping[str, object],
    after: Place | None = None,
    *,
    scan: bool,
    consistent: bool,
) -> Iterator[tuple[Place, Group]]:
    """List groups with their places; by a Scan where the values are not all of a partition key's."""
    missing = [] if aggregate.pages else [name for name in aggregate._listed_by if name not in values]
    fields = aggregate.fields if missing else aggregate._listed_by
    texts, complete = resolve_group(table, aggregate, values, fields, is_whole=not missing)
    if aggregate.write_shards > 1:
        raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with write_shards=1")
    start, (first, last) = "" if after is None else after[1], sort_key_range(aggregate)
    if after and not missing and not (_DIGEST.fullmatch(start) if aggregate.pages else first <= start <= last):
        raise InvalidArgumentError("next", start, f"the key of a group of {aggregate.name!r}")
    rows: Iterable[tuple[Place, Item]]
    if aggregate.pages:
        pages = table_reads.walk(table, aggregate, texts, after=start, consistent=consistent)
        rows = ((("", digest), item) for digest, item in pages)
    elif missing:
        table_reads.require_scan(table, f", or values of {', '.join(missing)} for a Query", scan=scan)
        begin = {} if after is None else {"ExclusiveStartKey": {PK: {"S": after[0]}, SK: {"S": after[1]}}}
        rows = ((identity(item), item) for item in table.of_types(aggregate.name, ConsistentRead=consistent, **begin))
    else:
        pk = aggregate._pk_template.render(texts)
        items = query(table, pk, (max(start, first), last), consistent=consistent)
        own = (item for item in items if item.get(TYPE) == {"S": aggregate.name})
        rows = ((identity(item), item) for item in own if item[SK]["S"] > start)

    def groups() -> Iterator[tuple[Place, Group]]:
        for place, item in rows:
            key = group_of_item(aggregate, item)
            # Other code may have written an item that names the aggregate and has no key of a group.
            group = {} if key is None else dict(zip(aggregate.fields, key, strict=True))
            if key is not None and group.items() >= texts.items():
                yield place, group_of(aggregate, group, [item], complete)

    return groups()


def sort_key_range(aggregate: Aggregate) -> tuple[str, str]:
    template = aggregate._sk_template
    # A template without fields has one item; keys that continue it, such as a Distinct's members, stay unread.
    # Keys escape all characters before the blank.
    return template.prefix or " ", template.prefix + (LAST_CHARACTER if template.fields else "")


def _board(table: Table, board: str, count: int) -> list[Item]:
    """Return the keys of a shard of a leaderboard, the highest score first."""
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
    table: Table, counted: Aggregate, values: Mapping[str, object], order: str, count: int, *, consistent: bool
) -> list[Extreme]:
    """Return the first values of a group from either end, by the aggregate that counts the items of each value."""
    values, complete = resolve_group(table, counted, values)
    value, *companions = counted._sk_template.fields
    pk = counted._pk_template.render(values)
    options = {"ScanIndexForward": order == "smallest", "PaginationConfig": {"PageSize": _AT_A_TIME}}
    items = query(table, pk, sort_key_range(counted), consistent=consistent, **options)
    # An item stays at 0 when its value is gone.
    present = (item for item in items if read_number(item, "items") > 0 and item[TYPE]["S"] == counted.name)
    groups = ((values_of(counted, item) or {}, read_number(item, "items")) for item in islice(present, count))
    return [
        Extreme(value_of(texts[value]), number, {name: texts[name] for name in companions}, complete)
        for texts, number in groups
    ]
