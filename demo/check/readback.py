"""Reads counts back through the runtime, as any user of it would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from demo.check.intervals import Interval
from demo.terminal import Progress
from dynamodb_counters import Aggregate, Counters, Window, WindowCount

_DAY: Final = timedelta(hours=24)
_THREADS: Final = 8


class Rolling(NamedTuple):
    """The last 24 hours of many groups."""

    interval: Interval
    counts: Mapping[str, int]


class UnevenWindowsError(Exception):
    """Windows as of one time cover different intervals."""


def read_groups(counters: Counters, aggregate: Aggregate, field: str, values: Iterable[str]) -> dict[str, int]:
    """Read an aggregate's only measure for many groups."""
    asked = list(values)
    (measure,) = aggregate.measures
    groups = counters.get_many([(aggregate, {field: value}) for value in asked])
    return {value: int(group.measures[measure]) for value, group in zip(asked, groups, strict=True)}


def read_rolling(
    counters: Counters, window: Window, field: str, values: Iterable[str], *, as_of: datetime, progress: Progress
) -> Rolling:
    """Read the last 24 hours of many groups."""
    asked = list(values)

    def ask(value: str) -> WindowCount:
        return counters.window(window, {field: value}, last=_DAY, as_of=as_of)

    # Without groups, one that cannot exist still shows which interval is covered.
    found = _concurrently(ask, asked, progress) if asked else [ask("nothing")]
    intervals = {Interval(count.start, count.end) for count in found}
    if len(intervals) != 1:
        raise UnevenWindowsError(f"windows as of {as_of.isoformat()} cover {len(intervals)} different intervals")
    (interval,) = intervals
    return Rolling(interval, {value: int(count.count) for value, count in zip(asked, found, strict=False)})


def _concurrently(ask: Callable[[str], WindowCount], values: list[str], progress: Progress) -> list[WindowCount]:
    pool = ThreadPoolExecutor(_THREADS)
    try:
        found = []
        for count in pool.map(ask, values):
            found.append(count)
            if len(found) % _THREADS == 0:
                progress.now_and_then(f"reading windows: {len(found):,} of {len(values):,}")
        return found
    finally:
        # An interrupt must not wait for the queries still queued.
        pool.shutdown(cancel_futures=True)
