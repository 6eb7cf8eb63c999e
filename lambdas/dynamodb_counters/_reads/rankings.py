"""Reading boards: the first groups, and those around one."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dynamodb_counters._declarations import SPREAD_FIELD, Aggregate, Ranking
from dynamodb_counters._declarations.groups import group_keys, identity, values_of
from dynamodb_counters._items.decimals import Number, parse_number, whole
from dynamodb_counters._items.table_schema import BOARD, PK, RANKING_INDEX, SCORE, SK
from dynamodb_counters._reads.groups_by_key import get_items
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Ranked:
    """A group on a board.

    Parameters
    ----------
    values : mapping of str to str
        What makes the group.
    score : int or Decimal
        The measure it is ranked by.
    """

    values: Mapping[str, str]
    score: Number


def top(table: Table, aggregate: Aggregate, values: Mapping[str, object], count: int) -> list[Ranked]:
    """Read the first groups of a board.

    Parameters
    ----------
    table : Table
        Where from.
    aggregate : Aggregate
        A ranked aggregate.
    values : mapping of str to str or number
        The fields of the board.
    count : int
        How many at most.

    Returns
    -------
    list of Ranked
        Highest score first; equal scores in no stated order.

    Raises
    ------
    InvalidArgumentError
        The aggregate is not ranked, or `count` is not positive.
    """
    _require_positive("count", count)
    return _ranked(table, aggregate, _scores(table, _ranking(aggregate), values, count, descending=True))


def around(table: Table, aggregate: Aggregate, values: Mapping[str, object], count: int) -> list[Ranked]:
    """Read a group with its neighbours on the board.

    Parameters
    ----------
    table : Table
        Where from.
    aggregate : Aggregate
        A ranked aggregate.
    values : mapping of str to str or number
        The group.
    count : int
        How many above it and how many below it at most.

    Returns
    -------
    list of Ranked
        Highest score first, the group among them; empty if it was never counted.

    Raises
    ------
    InvalidArgumentError
        The aggregate is not ranked, or `count` is not positive.
    """
    _require_positive("count", count)
    ranking = _ranking(aggregate)
    [key] = group_keys(aggregate, values)
    item = table.client.get_item(TableName=table.name, Key=key).get("Item")
    if item is None or SCORE not in item:
        return []
    own, score = identity(key), item[SCORE]["N"]
    above = _scores(table, ranking, values, count, descending=False, beyond=(">", score))
    # Groups of the same score are read whole pages at a time, so the group itself is set apart and put in between.
    below = _scores(table, ranking, values, count + 1, descending=True, beyond=("<=", score))
    others = [found for found in below if identity(found) != own][:count]
    return _ranked(table, aggregate, [*reversed(above), item, *others])


def _scores(
    table: Table,
    ranking: Ranking,
    values: Mapping[str, object],
    count: int,
    *,
    descending: bool,
    beyond: tuple[str, str] | None = None,
) -> list[Mapping[str, Any]]:
    boards = [ranking.template.render({**values, SPREAD_FIELD: part}) for part in range(ranking.spread)]
    condition, comparison = "#board = :board", {}
    if beyond is not None:
        operator, score = beyond
        condition, comparison = f"{condition} AND #score {operator} :score", {":score": {"N": score}}

    def read(board: str) -> list[Mapping[str, Any]]:
        pages = table.client.get_paginator("query").paginate(
            TableName=table.name,
            IndexName=RANKING_INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeNames={"#board": BOARD, **({"#score": SCORE} if beyond is not None else {})},
            ExpressionAttributeValues={":board": {"S": board}, **comparison},
            ScanIndexForward=not descending,
            PaginationConfig={"MaxItems": count, "PageSize": count},
        )
        return [item for page in pages for item in page["Items"]]

    merged = heapq.merge(*table.pool.map(read, boards), key=_score, reverse=descending)
    return list(islice(merged, count))


def _ranked(table: Table, aggregate: Aggregate, items: Iterable[Mapping[str, Any]]) -> list[Ranked]:
    found = list(items)
    values = [values_of(aggregate, item) for item in found]
    # The index holds keys only; a hashed key's values are in the item.
    unknown = [{PK: item[PK], SK: item[SK]} for item, known in zip(found, values, strict=True) if known is None]
    read = get_items(table, unknown, consistent=False)
    return [
        Ranked(known or values_of(aggregate, read.get(identity(item), item)) or {}, whole(_score(item)))
        for item, known in zip(found, values, strict=True)
    ]


def _score(item: Mapping[str, Any]) -> Number:
    return parse_number(item[SCORE]["N"])


def _ranking(aggregate: Aggregate) -> Ranking:
    if aggregate.ranking is None:
        raise InvalidArgumentError("aggregate", aggregate.name, "an aggregate with a ranking")
    return aggregate.ranking


def _require_positive(argument: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError(argument, value, "an int of 1 or more")
