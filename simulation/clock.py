"""Virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EPOCH: Final = 1_795_168_800.0
"""Where virtual time begins: 2026-11-20T10:00Z."""


@dataclass(eq=False)
class VirtualClock:
    """A clock that moves only when told to; seconds since 1970."""

    now: float = EPOCH

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
