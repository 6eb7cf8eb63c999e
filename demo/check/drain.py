"""Waits until everything accepted has been counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from demo.terminal import Progress

_POLL_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 3.0

_SILENT_SECONDS: Final = 180.0
"""Three times as long as an aggregator's invocation may take: one that runs out of its time says nothing before, and
the emulator invokes one function at a time."""

_Found = TypeVar("_Found")


class Silence:
    """How long no count has changed and no function has finished a batch: `finished` returns how many they have."""

    def __init__(
        self,
        finished: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        seconds: float = _SILENT_SECONDS,
    ) -> None:
        self.seconds = seconds
        self._finished = finished
        self._clock = clock
        self._known = 0
        self._since = clock()

    def end(self) -> None:
        """Note that a count has changed."""
        self._since = self._clock()

    def is_long(self) -> bool:
        """Whether nothing is to be expected any more."""
        if self._clock() - self._since < self.seconds:
            return False
        before, self._known = self._known, self._finished()
        if self._known > before:
            self.end()
        return self._known <= before


def wait_until_drained(
    read: Callable[[], Mapping[str, int]],
    expected: Mapping[str, int],
    progress: Progress,
    silence: Silence,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Poll totals until they are as expected twice in a row; say what is wrong once nothing moves any more."""
    last: Mapping[str, int] | None = None
    while True:
        totals = dict(read())
        if totals == last == expected:
            return None
        if totals != last:
            last = totals
            silence.end()
        elif silence.is_long():
            counted = ", ".join(f"{name} {totals.get(name, 'unread')} of {want}" for name, want in expected.items())
            return f"nothing was counted for {silence.seconds:g} s: {counted}"
        progress.now_and_then("counted so far: " + ", ".join(f"{name} {n:,}" for name, n in totals.items()))
        sleep(_POLL_SECONDS)


def read_settled(
    read: Callable[[], _Found],
    is_right: Callable[[_Found], bool],
    silence: Silence,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> _Found:
    """Read until it is right, or nothing moves any more.

    Totals may be complete before everything else is: a batch that fails in part is delivered again.
    """
    found = read()
    while not is_right(found):
        sleep(_SETTLE_SECONDS)
        last, found = found, read()
        if found != last:
            silence.end()
        elif silence.is_long():
            break
    return found
