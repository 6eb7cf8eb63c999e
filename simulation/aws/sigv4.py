"""SigV4's five minutes: when a request that got no answer lands."""

from __future__ import annotations

import random
from typing import Final

from simulation.aws.rule import Rule

LANDING_SECONDS: Final = 300.0
"""By the clock that signed it, a request lands within so long, or never."""

SKEW_SECONDS: Final = 50.0
"""A process's clock is off AWS's by at most so much: less than `CLOCKS`, and two processes' by more."""

LATEST: Final = LANDING_SECONDS + SKEW_SECONDS
"""No request lands so long after it was sent, by AWS's clock."""

SIGNATURES_EXPIRE: Final = Rule(
    "a signature expires after five minutes",
    "In most cases, a request must reach AWS within five minutes of the time stamp in the request.",
    "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_aws-signing.html",
    switch="simulation.faults.process.Process(landing)",
    guard="requests are taken to land within two minutes",
)


def landing(rng: random.Random, sent: float, ahead: float, longest: float = LANDING_SECONDS) -> float:
    """When a request lands that a clock has signed which was `ahead` of AWS's."""
    return sent + rng.choice((rng.uniform(0, longest + ahead), longest + ahead))
