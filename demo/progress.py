"""Says what is going on, and since when."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

_PAUSE_SECONDS: Final = 2.0


class Progress:
    """Writes lines that start with the seconds passed.

    Parameters
    ----------
    output : TextIO, optional
        Default: standard error, so that the summary can be piped on its own.
    clock : callable, optional
        Gives seconds that never run backwards.

    Examples
    --------
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
        """How long it has been going on."""
        return self._clock() - self._begin

    def __call__(self, message: str) -> None:
        """Write a line.

        Parameters
        ----------
        message : str
            What has just begun or happened.
        """
        self._last = self.seconds
        print(f"{self._last:6.1f} s  {message}", file=self._output, flush=True)

    def now_and_then(self, message: str) -> None:
        """Write a line, unless one was written a moment ago.

        Parameters
        ----------
        message : str
            How far the work is.
        """
        if self.seconds - self._last >= _PAUSE_SECONDS:
            self(message)
