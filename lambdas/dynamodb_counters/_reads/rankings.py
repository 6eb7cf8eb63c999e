"""The leaderboards that `Counters` reads: the first groups, and those around one."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from dynamodb_counters._control.statuses import Standing
from dynamodb_counters._declarations import WRITE_SHARD_FIELD, Aggregate, Ranking
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.groups import Given, given, group_key, identity, values_of
from dynamodb_counters._declarations.kinds import require_declaration
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._items.decimals import Number, parse_number, whole
from dynamodb_counters._items.table_schema import LEADERBOARD, PK, RANKING_INDEX, SCORE, SK
from dynamodb_counters._reads.table_reads import Item, TableReads, current, get_items
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Ranked:
    """A group on a leaderboard.

    Parameters
    ----------
    values : mapping of str to str
        The group: field to text.
    score : int or Decimal
        The measure it is ranked by.
    complete, as_declared : bool, optional
        As of a `Group`.

    Examples
    --------
    >>> Ranked({"player": "ann"}, 12).score
    12
    """

    values: Mapping[str, str]
    score: Number
    complete: bool = True
    as_declared: bool = True


class RankingReads(TableReads):
    def top(self, aggregate: Aggregate, values: Given = None, /, *, count: int = 10, **fields: object) -> list[Ranked]:
        """Read the first groups of a leaderboard, highest score first; equal scores come in no stated order.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        count : int, optional
            Most groups to return. Default 10.
        values
            As in `get`.
        **fields : str or number
            A value per field of the leaderboard's key.

        Examples
        --------
        >>> counters.top(PLAYERS, count=1)  # doctest: +SKIP
        [Ranked(values={'player': 'ann'}, score=12)]
        """
        require_count("count", count)
        require_declaration(aggregate, Aggregate)
        kept, texts, standing = current(
            self._table, aggregate, given(values, fields), lambda one: _ranking(one)._template.fields[:-1]
        )
        found = _scores(self._table, _ranking(kept), texts, count)
        return _ranked(self._table, kept, standing, found)

    def around(
        self, aggregate: Aggregate, values: Given = None, /, *, count: int = 5, **fields: object
    ) -> list[Ranked]:
        """Read a group with its neighbors on the leaderboard, highest score first; none if it was never counted.

        Parameters
        ----------
        aggregate : Aggregate
            A ranked aggregate.
        count : int, optional
            Most groups to return above it, and below it. Default 5.
        values, **fields
            The group, as in `get`.

        Examples
        --------
        >>> counters.around(PLAYERS, player="ann", count=2)  # doctest: +SKIP
        """
        require_count("count", count)
        require_declaration(aggregate, Aggregate)
        table = self._table
        kept, texts, standing = current(table, aggregate, given(values, fields))
        ranking = _ranking(kept)
        [key] = ItemLayout(kept).keys(group_key(kept, texts))
        item = table.client.get_item(TableName=table.name, Key=key).get("Item")
        if item is None or SCORE not in item:
            return []
        own, score = identity(key), item[SCORE]["N"]
        above = _scores(table, ranking, texts, count, (">", score))
        # The order among equal scores is arbitrary, so the group itself is taken out and put first.
        below = _scores(table, ranking, texts, count + 1, ("<=", score))
        others = [found for found in below if identity(found) != own][:count]
        return _ranked(table, kept, standing, [*reversed(above), item, *others])


def _scores(
    table: Table, ranking: Ranking, values: Mapping[str, object], count: int, beyond: tuple[str, str] | None = None
) -> list[Item]:
    """Keys in the order of their scores: the highest first, but of those above a score the lowest."""
    keys = [ranking._template.render({**values, WRITE_SHARD_FIELD: shard}) for shard in range(ranking.write_shards)]
    condition, names, compared = "#leaderboard = :leaderboard", {"#leaderboard": LEADERBOARD}, {}
    if beyond is not None:
        condition += f" AND #score {beyond[0]} :score"
        names, compared = {**names, "#score": SCORE}, {":score": {"N": beyond[1]}}
    descending = beyond is None or beyond[0] == "<="

    def read(key: str) -> list[Item]:
        pages = table.client.get_paginator("query").paginate(
            TableName=table.name,
            IndexName=RANKING_INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":leaderboard": {"S": key}, **compared},
            ScanIndexForward=not descending,
            PaginationConfig={"MaxItems": count, "PageSize": count},
        )
        return [item for page in pages for item in page["Items"]]

    merged = heapq.merge(*table.each(read, keys), key=_score, reverse=descending)
    return list(islice(merged, count))


def _ranked(table: Table, aggregate: Aggregate, standing: Standing, found: Sequence[Item]) -> list[Ranked]:
    values = [values_of(aggregate, item) for item in found]
    # The index holds only keys; a hashed key's values are in the item.
    unknown = [{PK: item[PK], SK: item[SK]} for item, known in zip(found, values, strict=True) if known is None]
    read = get_items(table, unknown, consistent=False)
    return [
        Ranked(known or values_of(aggregate, read.get(identity(item), item)) or {}, whole(_score(item)), *standing)
        for item, known in zip(found, values, strict=True)
    ]


def _score(item: Item) -> Number:
    return parse_number(item[SCORE]["N"])


def _ranking(aggregate: Aggregate) -> Ranking:
    if aggregate.ranking is None:
        raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with a ranking")
    return aggregate.ranking
