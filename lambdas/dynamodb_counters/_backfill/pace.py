"""How many units a second a run may consume."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """Holds a run back so that it consumes no more than some units a second, on average."""

    def __init__(
        self, units_per_second: float | None, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = units_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()
        self.consumed = 0.0

    def spend(self, units: float) -> None:
        """Note consumed units, and wait until that many may have been consumed."""
        self.consumed += units
        if self._rate is None:
            return
        now = self._clock()
        self._free_at = max(self._free_at, now) + units / self._rate
        if self._free_at > now:
            self._sleep(self._free_at - now)
