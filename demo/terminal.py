"""Lines that the demo prints while it runs, and text made safe to print."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from counters_cli.output import visible

_PAUSE_SECONDS: Final = 2.0
_SHOWN_CHARACTERS: Final = 60


class Progress:
    """Writes lines prefixed with the seconds elapsed, to standard error: the summary can be piped on its own.

    >>> Progress(sys.stdout, clock=lambda: 0.0)("starting")
       0.0 s  starting
    """

    def __init__(self, output: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output or sys.stderr
        self._clock = clock
        self._begin = clock()
        self._last = -_PAUSE_SECONDS

    @property
    def seconds(self) -> float:
        return self._clock() - self._begin

    def __call__(self, message: str) -> None:
        self._last = self.seconds
        print(f"{self._last:6.1f} s  {message}", file=self._output, flush=True)

    def now_and_then(self, message: str) -> None:
        """Write a line, unless one was written in the last two seconds."""
        if self.seconds - self._last >= _PAUSE_SECONDS:
            self(message)


def printable(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    """Shorten and escape text for the terminal: what a client sent must not reach it as control sequences."""
    result = visible(text)
    return result if len(result) <= most else f"{result[: most - 1]}…"
