"""SigV4's five minutes: when a request that got no answer lands."""

from __future__ import annotations

import random
from typing import Final

LANDING_SECONDS: Final = 300.0  # By the clock that signed it, a request lands within so long, or never.

SKEW_SECONDS: Final = 50.0
"""A process's clock is off AWS's by at most so much: less than `CLOCKS`, and two processes' by more."""

LATEST: Final = LANDING_SECONDS + SKEW_SECONDS  # No request lands so long after it was sent, by AWS's clock.


def landing(rng: random.Random, moment: float, ahead: float, longest: float = LANDING_SECONDS) -> float:
    """Return when a request lands that a clock has signed which was `ahead` of AWS's."""
    return moment + rng.choice((rng.uniform(0, longest + ahead), longest + ahead))
