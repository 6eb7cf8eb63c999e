"""States of the commit protocol, and how one becomes another."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, TypeVar

_T = TypeVar("_T")

Bounds: TypeAlias = tuple[int, int]
"""First and last record still to be written to an item."""

NOTHING: Final = (0, 0)
"""There is nothing to write."""

ENOUGH: Final = 3
"""A record applied so often is wrong for good; more of it is of no interest."""


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
        """Give the state in which an invocation runs beside some others.

        Parameters
        ----------
        others : tuple of Invocation
            Those.
        invocation : Invocation
            And this.

        Returns
        -------
        State
            Equal whatever order they came in.
        """
        return self._replace(running=tuple(sorted((*others, invocation))))

    def with_done(self, others: tuple[Invocation, ...], invocation: Invocation, item: int, rest: Bounds) -> State:
        """Give the state in which an invocation has done what it could for an item.

        Parameters
        ----------
        others : tuple of Invocation
            What else runs.
        invocation : Invocation
            As it was before.
        item : int
            Which item.
        rest : Bounds
            What it still has to write to it.

        Returns
        -------
        State
            The next one.
        """
        work = (*invocation.work[:item], rest, *invocation.work[item + 1 :])
        return self.running_with(others, invocation._replace(work=work))

    def with_applied(self, item: int, shard: int, bounds: Bounds, mark: int) -> State:
        """Give the state in which records were added to an item.

        Parameters
        ----------
        item, shard : int
            Which item, and where the records come from.
        bounds : Bounds
            Which records.
        mark : int
            The watermark then.

        Returns
        -------
        State
            The next one.
        """
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
