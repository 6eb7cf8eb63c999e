"""Waits until everything accepted has been counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from demo.progress import Progress

_POLL_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 3.0
STALL_SECONDS: Final = 60.0
"""Default patience: how long no total may change before the wait is given up."""

Totals = Mapping[str, int]
_Reading = TypeVar("_Reading")


class StalledError(Exception):
    """The counts stopped short of what was accepted, or went beyond. The message says where."""


def wait_until_drained(
    read: Callable[[], Totals],
    expected: Totals,
    progress: Progress,
    *,
    stall_seconds: float = STALL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Poll totals until they are as expected twice in a row.

    Parameters
    ----------
    read : callable
        Reads the totals by name.
    expected : mapping of str to int
        What they must come to.
    progress : Progress
        Told how far the counts are.
    stall_seconds : float, optional
        How long nothing may change.
    clock, sleep : callable, optional
        Time, and waiting for it.

    Raises
    ------
    StalledError
        Nothing has changed for `stall_seconds`, and the totals are not the expected ones.
    """
    last: Totals | None = None
    changed = clock()
    while True:
        totals = dict(read())
        if totals == last == expected:
            return
        if totals != last:
            last, changed = totals, clock()
        elif clock() - changed >= stall_seconds:
            raise StalledError(
                f"the counts have not changed for {stall_seconds:g} s: "
                + ", ".join(f"{name} {totals.get(name, 'unread')} of {want}" for name, want in expected.items())
            )
        progress.now_and_then("counted so far: " + ", ".join(f"{name} {n:,}" for name, n in totals.items()))
        sleep(_POLL_SECONDS)


def read_settled(
    read: Callable[[], _Reading],
    is_right: Callable[[_Reading], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> _Reading:
    """Read something until it is right, or wrong in the same way twice.

    Totals may be complete a moment before everything else is: a part that fails is delivered again.

    Parameters
    ----------
    read : callable
        Reads it.
    is_right : callable
        Tells whether it is as it must be.
    sleep : callable, optional
        Waits some seconds.

    Returns
    -------
    object
        What was read last.
    """
    found = read()
    while not is_right(found):
        sleep(_SETTLE_SECONDS)
        last, found = found, read()
        if found == last:
            break
    return found
