"""Read ranks: of a member or a score, which score has a rank, how many members lie between two scores.

A score is a path from the page of its first digit to that of its last one. Those above it are the groups to the right
of the path, in the pages on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from operator import gt, lt
from typing import Any, cast

from dynamodb_counters._declarations import Aggregate, Ranks
from dynamodb_counters._declarations.checks import require, require_choice, require_count
from dynamodb_counters._declarations.composites import group_fields, level_keys, require_declaration
from dynamodb_counters._declarations.groups import Given, canonical_fields, given, group_key
from dynamodb_counters._fold.layouts import ItemLayout
from dynamodb_counters._fold.plan import as_source, compile_aggregate
from dynamodb_counters._items.conversions import Number
from dynamodb_counters._items.keys import RADIX, parts_of, scale_of
from dynamodb_counters._reads.group_reads import GroupReads, Values, numbers_of, read_items, resolve_group, walk
from dynamodb_counters._reads.question import MAX_RANK, ORDERS, Order, Question, fields_of
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import utc
from dynamodb_counters.errors import MalformedImageError


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a score stands among all members of a board.

    Parameters
    ----------
    rank : int or None
        One more than the number of members before it; None if there is no such member or rank, or its score waits.
    of : int
        The number of members.
    score : int, Decimal or None
        The score that has the rank; None as `rank`.
    ties : int
        How many members have this very score, and so this rank; 0 of a score that nobody has.
    as_of : datetime
        When it was read: from pages one by one, each as current as the aggregator; some seconds.
    complete : bool, optional
        As of a `Group`.
    """

    rank: int | None
    of: int
    score: Number | None
    ties: int
    as_of: datetime
    complete: bool = True


@dataclass(frozen=True, slots=True)
class RangeCount:
    """How many members have a score of a range.

    Parameters
    ----------
    count : int
    of, as_of, complete
        As of a `Rank`.
    """

    count: int
    of: int
    as_of: datetime
    complete: bool = True


class Board:
    """The pages of one board, each read once."""

    def __init__(self, table: Table, counted: Aggregate, values: Values, *, consistent: bool) -> None:
        scaled, by = scale_of(counted.fields[-1]), counted._pk_template.fields
        assert scaled is not None
        self.scale, score = scaled[0], parts_of(counted.fields[-1])[0]
        self.digits = range(self.scale.levels)
        self._levels = [replace(counted, **level_keys(counted.name, by, self.scale, score, n)) for n in self.digits]
        resolved = [resolve_group(table, level, values, by) for level in self._levels]
        self._values, self.complete = resolved[0][0], all(complete for _, complete in resolved)
        self._table, self.consistent = table, consistent
        self.pages: dict[tuple[int, int], dict[int, int]] = {}  # By level, 0 of last digits, and the digits above.

    def read(self, keys: Iterable[tuple[int, int]]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self.pages]
        self.pages |= zip(missing, self._table.each(self._digits, missing), strict=True)

    def _digits(self, key: tuple[int, int]) -> dict[int, int]:
        """Return how many members have each digit that some have; below 0 are removals whose insertion still waits."""
        level, values = self._levels[key[0]], self._values
        if level._shelved:
            values = {**values, level._sk_template.fields[0]: str(key[1])}
        groups = [group for _, group in walk(self._table, level, values, consistent=self.consistent)]
        return {int(digit): int(count) for digit, count in numbers_of(level, groups).items() if count > 0}

    @property
    def members(self) -> int:
        self.read([root := (self.digits[-1], 0)])
        return sum(self.pages[root].values())

    def sides(self, units: int) -> tuple[int, int, int]:
        """Return how many members have more units, as many, and less: right of the path, at its end, left of it."""
        # All three are of the same pages: one that is ahead of another makes no rank below 1, or above the last one.
        path = {(level, units // RADIX ** (level + 1)): units // RADIX**level % RADIX for level in self.digits}
        self.read(path)
        digits = [(digit, own, count) for key, own in path.items() for digit, count in self.pages[key].items()]
        more, less = (sum(n for digit, own, n in digits if beyond(digit, own)) for beyond in (gt, lt))
        return more, self.pages[0, units // RADIX].get(units % RADIX, 0), less

    def units_at(self, rank: int, order: str) -> int | None:
        """Return the units of the member that has a rank; None if there are fewer."""
        before, above = rank - 1 if order == "largest" else self.members - rank, 0
        if rank > self.members:
            return None
        for level in reversed(self.digits):
            self.read([(level, above)])
            counts = self.pages[level, above]
            for digit in sorted(counts, reverse=True):
                if before < counts[digit]:
                    break
                before -= counts[digit]
            else:
                # The page has not got yet what the one above has.
                digit = min(counts, default=0)
                before = counts.get(digit, 1) - 1
            above = above * RADIX + digit
        return above


def _units_of(board: Board, counted: Aggregate, values: Values) -> int | None:
    """Return the units of a member, a group of the aggregate that is ranked; None if it is not there, or not ranked."""
    source, digits = counted.source, len(counted._sk_template.fields)
    assert isinstance(source, Aggregate)  # Items have no fields by which a question names one.
    texts, is_complete = resolve_group(board._table, source, values, source.fields)
    board.complete &= is_complete
    [items] = read_items(board._table, [(ItemLayout(source), group_key(source, texts))], consistent=board.consistent)
    image = as_source(source)(items[0]) if items else None
    with suppress(MalformedImageError):  # A score that is out of range is in quarantine, and so in no page.
        contributions = None if image is None else compile_aggregate(ItemLayout(counted), counted)(image, None)
        return int("".join(contributions[0][1][-digits:])) if contributions else None
    return None


def read_ranks(table: Table, question: Question) -> Rank | RangeCount:
    """Answer a question about a member, a score or a rank; or how many members there are between two scores."""
    declared, values, order = question.declared, question.values, question.order or ORDERS[0]
    fields, low, high = group_fields(declared), question.low, question.high
    choices = [values.keys() > {*fields}, question.score is not None, question.rank is not None, low is not None]
    is_one = sum(choices) == 1 and (low is None) == (high is None) and (low is None or question.order is None)
    require(is_one, "ranks", declared.name, "one of: fields of a member, score, rank, or low and high without order")
    board = Board(table, declared, {name: values[name] for name in fields}, consistent=question.consistent)
    if low is not None and high is not None:
        first, last = board.scale.given("low", low), board.scale.given("high", high)
        require(first <= last, "high", high, f"{low}, which is low, or more")
        (*_, below), (above, *others) = board.sides(first), board.sides(last)
        return RangeCount(max(0, sum(others) - below), above + sum(others), utc(table.clock()), board.complete)
    if question.rank is not None:
        units = board.units_at(question.rank, order)
    elif question.score is not None:
        units = board.scale.given("score", question.score)
    else:
        units = _units_of(board, declared, values)
    if units is None:
        return Rank(None, board.members, None, 0, utc(table.clock()), board.complete)
    above, ties, below = board.sides(units)
    rank, score = 1 + (above if order == "largest" else below), board.scale.number_of(units)
    return Rank(rank, above + ties + below, score, ties, utc(table.clock()), board.complete)


class RankReads(GroupReads):
    def rank(
        self,
        ranks: Ranks,
        values: Given = None,
        /,
        *,
        score: Number | None = None,
        order: Order = "largest",
        consistent: bool = False,
        **fields: object,
    ) -> Rank:
        """Read the `Rank` of a member or a score: half a read unit per two digits, and half of one for the member.

        Parameters
        ----------
        ranks : Ranks
        score : int or Decimal, optional
            A score instead of a member; nobody need have it.
        order : {"largest", "smallest"}, optional
            Which score comes first. Default the largest.
        values, **fields
            The member, a group of the aggregate that is ranked; with a `score` the board, as of the `by` of `ranks`.
        """
        return cast("Rank", self._answer(ranks, given(values, fields), score=score, order=order, consistent=consistent))

    def at(
        self,
        ranks: Ranks,
        values: Given = None,
        /,
        *,
        rank: int,
        order: Order = "largest",
        consistent: bool = False,
        **fields: object,
    ) -> Rank:
        """Read which score a rank has; where several share it, `rank` of the result is that of the first of them.

        Parameters
        ----------
        rank : int, 1 to 999,999,999
        ranks, order, values, **fields
            As in `rank`, of a score.
        """
        require_count("rank", rank, MAX_RANK)
        return cast("Rank", self._answer(ranks, given(values, fields), rank=rank, order=order, consistent=consistent))

    def between(
        self,
        ranks: Ranks,
        values: Given = None,
        /,
        *,
        low: Number,
        high: Number,
        consistent: bool = False,
        **fields: object,
    ) -> RangeCount:
        """Read how many members have a score from `low` to `high`, both included: at most the units of two ranks.

        Parameters
        ----------
        low, high : int or Decimal
        ranks, values, **fields
            As in `rank`, of a score.
        """
        return cast("RangeCount", self._answer(ranks, given(values, fields), low=low, high=high, consistent=consistent))

    def _answer(self, ranks: Ranks, values: Values, **options: Any) -> Any:
        declared = require_declaration(ranks, Ranks)._parts[-1]
        require_choice("order", options.get("order", ORDERS[0]), ORDERS)
        required, fields = fields_of(declared, "get")
        texts = canonical_fields(declared, fields or (), values, required)
        return read_ranks(self._table, Question(now=self._table.clock(), declared=declared, values=texts, **options))
