"""Day and night: a seeded loop takes few seeds by day and many by night, with `NIGHT=1` in the environment."""

from __future__ import annotations

import os
from typing import Final

NIGHT: Final = bool(os.environ.get("NIGHT"))
_SCALE: Final = 20 if NIGHT else 1


def scaled(by_day: int) -> int:
    """Return how many seeds, rounds or examples a loop takes now."""
    return by_day * _SCALE
