"""Reads counts back through the runtime, as any user of it would."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final

from demo.check.intervals import Interval
from demo.terminal import Progress
from dynamodb_counters import Aggregate, Counters, Window, WindowCount

_DAY: Final = timedelta(hours=24)
_THREADS: Final = 8


def read_groups(counters: Counters, aggregate: Aggregate, field: str, values: Iterable[str]) -> dict[str, int]:
    """Read an aggregate's only measure for many groups."""
    asked = list(values)
    (measure,) = aggregate.measures
    groups = counters.get_many([(aggregate, {field: value}) for value in asked])
    return {value: int(group.measures[measure]) for value, group in zip(asked, groups, strict=True)}


def read_rolling(
    counters: Counters, window: Window, field: str, values: Iterable[str], *, as_of: datetime, progress: Progress
) -> tuple[dict[str, int], Interval]:
    """Read the last 24 hours of many groups, and the interval that all of them cover."""
    asked = list(values)
    found: dict[str, WindowCount] = {}

    def ask(value: str) -> WindowCount:
        return counters.window(window, {field: value}).last(_DAY, as_of=as_of)

    # An interrupt does not wait for the queries still queued: `map` cancels them.
    with ThreadPoolExecutor(_THREADS) as pool:
        for value, count in zip(asked, pool.map(ask, asked), strict=True):
            found[value] = count
            if len(found) % _THREADS == 0:
                progress.now_and_then(f"reading windows: {len(found):,} of {len(asked):,}")
    # Without groups, one that cannot exist still shows which interval is covered.
    (interval,) = {Interval(count.start, count.end) for count in found.values() or [ask("nothing")]}
    return {value: int(count.count) for value, count in found.items()}, interval
