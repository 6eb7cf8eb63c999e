"""Waits until everything accepted has been counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from demo.terminal import Progress

_POLL_SECONDS: Final = 0.2
_SETTLE_SECONDS: Final = 1.0

_SILENT_SECONDS: Final = 180.0
"""Three times as long as an aggregator's invocation may take: one that runs out of its time says nothing before, and
the emulator invokes one function at a time."""

_Result = TypeVar("_Result")


class Silence:
    """How long no count has changed and no function has finished a batch: `finished` returns how many they have."""

    def __init__(
        self, finished: Callable[[], int], clock: Callable[[], float] = time.monotonic, seconds: float = _SILENT_SECONDS
    ) -> None:
        self.seconds = seconds
        self._finished = finished
        self._clock = clock
        self._total = 0
        self._since = clock()

    def end(self) -> None:
        """Note that a count has changed."""
        self._since = self._clock()

    def is_long(self) -> bool:
        """Return whether nothing is to be expected any more."""
        if self._clock() - self._since < self.seconds:
            return False
        before, self._total = self._total, self._finished()
        if self._total > before:
            self.end()
        return self._total <= before


def wait_until_drained(
    totals: Mapping[str, Callable[[], float]],
    expected: Mapping[str, float],
    is_delivered: Callable[[], bool],
    progress: Progress,
    silence: Silence,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Read each total until it is as expected; say what is wrong once nothing moves any more.

    A batch may have counted all before its function was killed: what counts twice shows when it `is_delivered` again.
    """
    counted: dict[str, float] = {}
    while (lacking := [name for name, n in expected.items() if counted.get(name) != n]) or not is_delivered():
        last, counted = counted, {**counted, **{name: totals[name]() for name in lacking}}
        if counted != last:
            silence.end()
        elif silence.is_long():
            state = ", ".join(f"{name} {counted[name]:g} of {number:g}" for name, number in expected.items())
            return f"nothing was counted for {silence.seconds:g} s: {state}"
        progress.now_and_then("counted so far: " + ", ".join(f"{name} {n:,.0f}" for name, n in counted.items()))
        sleep(_POLL_SECONDS)
    return None


def read_settled(
    read: Callable[[], _Result],
    is_right: Callable[[_Result], bool],
    silence: Silence,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> _Result:
    """Read until it is right, or nothing moves any more.

    Totals may be complete before everything else is: a batch that fails in part is delivered again.
    """
    result = read()
    while not is_right(result):
        sleep(_SETTLE_SECONDS)
        last, result = result, read()
        if result != last:
            silence.end()
        elif silence.is_long():
            break
    return result
