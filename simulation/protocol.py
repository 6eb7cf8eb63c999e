"""The commit protocol alone, small enough to try every interleaving of it.

A state holds, for each item and shard, the watermark and how often each record was applied; for each shard how far the
mapping has got; and the invocations under way, each with the bounds of what it still has to write. A step is one
atomic write, a lost acknowledgement, a delivery of any length from any position up to the checkpoint (which covers
retry, bisect and redelivery), a time-out after which the invocation runs on, a crash, or an end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

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
    """All there is at one moment; `marks` and `applied` by item and shard. Record 0 is before the first."""

    marks: tuple[int, ...]
    applied: tuple[tuple[int, ...], ...]
    reached: tuple[int, ...]
    running: tuple[Invocation, ...]

    def running_with(self, others: tuple[Invocation, ...], invocation: Invocation) -> State:
        """The state in which an invocation runs beside others, equal whatever order they came in."""
        return self._replace(running=tuple(sorted((*others, invocation))))

    def with_done(self, others: tuple[Invocation, ...], invocation: Invocation, item: int, rest: Bounds) -> State:
        """The state in which an invocation still has `rest` to write to an item."""
        return self.running_with(others, invocation._replace(work=_put(invocation.work, item, rest)))

    def with_applied(self, cell: int, bounds: Bounds, mark: int) -> State:
        """The state in which a shard's records were added to an item, and the watermark moved to `mark`."""
        first, last = bounds
        times = tuple(
            min(ENOUGH, before + 1) if first <= number <= last else before
            for number, before in enumerate(self.applied[cell], start=1)
        )
        return self._replace(applied=_put(self.applied, cell, times), marks=_put(self.marks, cell, mark))


def _put(row: tuple[_T, ...], index: int, value: _T) -> tuple[_T, ...]:
    return (*row[:index], value, *row[index + 1 :])


Mechanism: TypeAlias = Literal["condition", "first", "last", "refold", "filtered", "net_zero"]
"""What makes the protocol safe; a test goes without one.

`condition`: a write is refused unless the watermark lies before its first record. `first`: the condition looks at
the first record, not the last. `last`: the watermark moves to the last record, not the first. `refold`: what
remains after a refusal is written. `filtered`: without what was applied. `net_zero`: a sum of 0 is written.
"""


class Model:
    """A configuration: for each shard its records, for each record what it adds to each item (0: not concerned)."""

    def __init__(
        self, shards: tuple[tuple[tuple[int, ...], ...], ...], concurrency: int, without: Mechanism | None = None
    ) -> None:
        self._shards = shards
        self._items = range(len(shards[0][0]))
        self._concurrency = concurrency
        self._without = without

    def start(self) -> State:
        applied = tuple((0,) * len(records) for _ in self._items for records in self._shards)
        return State((0,) * len(applied), applied, (0,) * len(self._shards), ())

    def explore(self) -> tuple[int, State | None]:
        """Visit every reachable state; return how many, and the first one with a wrong count."""
        seen = {self.start()}
        fresh = [self.start()]
        while fresh:
            state = fresh.pop()
            if self.is_wrong(state):
                return len(seen), state
            for successor in self.successors(state):
                if successor not in seen:
                    seen.add(successor)
                    fresh.append(successor)
        return len(seen), None

    def walk(self, rng: random.Random, steps: int) -> State | None:
        """Take random steps, let everything end, and return a state with a wrong count if one came up."""
        state = self.start()
        for _ in range(steps):
            state = rng.choice(list(self.successors(state)))
            if self.is_wrong(state):
                return state
        while state.running or self._unfinished(state):
            if state.running:
                state = rng.choice(list(self._onward(state, rng.randrange(len(state.running)))))
            else:
                shard = rng.choice([n for n, records in enumerate(self._shards) if state.reached[n] < len(records)])
                state = self._delivered(state, shard, state.reached[shard], len(self._shards[shard]))
        return state if self.is_wrong(state) else None

    def is_wrong(self, state: State) -> bool:
        """Whether all was delivered, nothing runs, and a count is not exact."""
        if state.running or self._unfinished(state):
            return False
        return any(
            sum(record[item] * (times - 1) for record, times in zip(records, applied, strict=True))
            for (item, records), applied in zip(product(self._items, self._shards), state.applied, strict=True)
        )

    def successors(self, state: State) -> Iterator[State]:
        """Every state one step away, some more than once."""
        if len(state.running) < self._concurrency:
            yield from self._deliveries(state)
        for place, invocation in enumerate(state.running):
            others = state.running[:place] + state.running[place + 1 :]
            yield state._replace(running=others)
            if invocation.live:
                yield state.running_with(others, invocation._replace(live=False))
            yield from self._onward(state, place)

    def _onward(self, state: State, place: int) -> Iterator[State]:
        invocation = state.running[place]
        others = state.running[:place] + state.running[place + 1 :]
        if not any(map(any, invocation.work)):
            reached = max(state.reached[invocation.shard], invocation.end if invocation.live else 0)
            yield state._replace(running=others, reached=_put(state.reached, invocation.shard, reached))
        for item, bounds in enumerate(invocation.work):
            if bounds != NOTHING:
                yield from self._write(state, others, invocation, item, bounds)

    def _deliveries(self, state: State) -> Iterator[State]:
        for shard, records in enumerate(self._shards):
            if any(other.live and other.shard == shard for other in state.running):
                continue
            for begin in range(state.reached[shard] + 1):
                for end in range(begin + 1, len(records) + 1):
                    yield self._delivered(state, shard, begin, end)

    def _delivered(self, state: State, shard: int, begin: int, end: int) -> State:
        work = tuple(self._bounds(shard, item, begin, end) for item in self._items)
        return state.running_with(state.running, Invocation(shard, end, True, work))

    def _write(
        self, state: State, others: tuple[Invocation, ...], invocation: Invocation, item: int, bounds: Bounds
    ) -> Iterator[State]:
        (first, last), shard, without = bounds, invocation.shard, self._without
        mark = state.marks[self._cell(item, shard)]
        if without != "condition" and mark >= (last if without == "first" else first):
            rest = NOTHING
            if without != "refold" and mark < last:
                rest = self._bounds(shard, item, first - 1 if without == "filtered" else mark, invocation.end)
                if without == "filtered" and rest != NOTHING:
                    # Written without the bound that would refuse it again.
                    yield self._applied(state, item, shard, rest).with_done(others, invocation, item, NOTHING)
                    return
            yield state.with_done(others, invocation, item, rest)
            return
        if without == "net_zero" and not sum(self._shards[shard][n - 1][item] for n in range(first, last + 1)):
            yield state.with_done(others, invocation, item, NOTHING)
            return
        after = self._applied(state, item, shard, bounds)
        yield after.with_done(others, invocation, item, NOTHING)
        # The acknowledgement is lost; the client sends the request again.
        yield after.running_with(others, invocation)

    def _applied(self, state: State, item: int, shard: int, bounds: Bounds) -> State:
        mark = bounds[0] if self._without == "last" else bounds[1]
        return state.with_applied(self._cell(item, shard), bounds, mark)

    def _cell(self, item: int, shard: int) -> int:
        return item * len(self._shards) + shard

    def _bounds(self, shard: int, item: int, begin: int, end: int) -> Bounds:
        numbers = [number for number in range(begin + 1, end + 1) if self._shards[shard][number - 1][item]]
        return (numbers[0], numbers[-1]) if numbers else NOTHING

    def _unfinished(self, state: State) -> bool:
        return any(reached < len(records) for reached, records in zip(state.reached, self._shards, strict=True))
