"""Virtual time, and what is due at some time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

EPOCH: Final = 1_795_168_800.0  # Where virtual time begins: 2026-11-20T10:00Z.


@dataclass(eq=False)
class VirtualClock:
    """A clock that only its owner moves; seconds since 1970."""

    now: float = EPOCH
    _due: list[tuple[float, int, Callable[[], Any]]] = field(default_factory=list)
    _calls: int = 0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass, and do on the way what is due."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            due, _, action = heappop(self._due)
            self.now = max(self.now, due)
            action()
        self.now = until

    def call_at(self, due: float, action: Callable[[], Any]) -> None:
        self._calls += 1
        heappush(self._due, (due, self._calls, action))

    def hurry(self, rng: random.Random) -> bool:
        """Do one of the things that are due later now; False if there are none."""
        if not self._due:
            return False
        index = rng.randrange(len(self._due))
        _, _, action = self._due.pop(index)
        heapify(self._due)
        action()
        return True
