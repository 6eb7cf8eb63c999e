"""Waits until everything accepted has been counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from demo.terminal import Progress

_POLL_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 3.0
_STALL_SECONDS: Final = 60.0

_Found = TypeVar("_Found")


def wait_until_drained(
    read: Callable[[], Mapping[str, int]],
    expected: Mapping[str, int],
    progress: Progress,
    *,
    stall_seconds: float = _STALL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Poll totals until they are as expected twice in a row; say what is wrong if none changes for `stall_seconds`."""
    last: Mapping[str, int] | None = None
    changed = progress.seconds
    while True:
        totals = dict(read())
        if totals == last == expected:
            return None
        if totals != last:
            last, changed = totals, progress.seconds
        elif progress.seconds - changed >= stall_seconds:
            counted = ", ".join(f"{name} {totals.get(name, 'unread')} of {want}" for name, want in expected.items())
            return f"the counts have not changed for {stall_seconds:g} s: {counted}"
        progress.now_and_then("counted so far: " + ", ".join(f"{name} {n:,}" for name, n in totals.items()))
        sleep(_POLL_SECONDS)


def read_settled(
    read: Callable[[], _Found],
    is_right: Callable[[_Found], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> _Found:
    """Read until it is right, or wrong in the same way twice.

    Totals may be complete a moment before everything else is: a batch that fails in part is delivered again.
    """
    found = read()
    while not is_right(found):
        sleep(_SETTLE_SECONDS)
        last, found = found, read()
        if found == last:
            break
    return found
