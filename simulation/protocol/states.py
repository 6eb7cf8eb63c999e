"""States of the commit protocol, and how one becomes another."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, TypeVar

_T = TypeVar("_T")

Bounds: TypeAlias = tuple[int, int]
"""First and last record still to be written to an item."""

NOTHING: Final = (0, 0)
"""Nothing to write."""

ENOUGH: Final = 3
"""A record applied this often is wrong for good."""


class Invocation(NamedTuple):
    """An invocation under way."""

    shard: int
    end: int
    live: bool
    work: tuple[Bounds, ...]


class State(NamedTuple):
    """All there is at one moment. Records are counted from 1; 0 is before the first."""

    marks: tuple[tuple[int, ...], ...]
    applied: tuple[tuple[tuple[int, ...], ...], ...]
    reached: tuple[int, ...]
    running: tuple[Invocation, ...]

    def running_with(self, others: tuple[Invocation, ...], invocation: Invocation) -> State:
        """The state in which an invocation runs beside others, equal whatever order they came in."""
        return self._replace(running=tuple(sorted((*others, invocation))))

    def with_done(self, others: tuple[Invocation, ...], invocation: Invocation, item: int, rest: Bounds) -> State:
        """The state in which an invocation still has `rest` to write to an item."""
        work = (*invocation.work[:item], rest, *invocation.work[item + 1 :])
        return self.running_with(others, invocation._replace(work=work))

    def with_applied(self, item: int, shard: int, bounds: Bounds, mark: int) -> State:
        """The state in which a shard's records were added to an item, and the watermark moved to `mark`."""
        first, last = bounds
        times = list(self.applied[item][shard])
        for number in range(first, last + 1):
            times[number - 1] = min(ENOUGH, times[number - 1] + 1)
        return self._replace(
            applied=_set(self.applied, item, shard, tuple(times)), marks=_set(self.marks, item, shard, mark)
        )


def _set(table: tuple[tuple[_T, ...], ...], item: int, shard: int, value: _T) -> tuple[tuple[_T, ...], ...]:
    row = (*table[item][:shard], value, *table[item][shard + 1 :])
    return (*table[:item], row, *table[item + 1 :])
