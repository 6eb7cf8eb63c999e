"""JSON integers of EventBridge: 64 bits, and no event with a larger one."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

from simulation.aws.rule import Rule

LARGEST: Final = 2**63 - 1

INTEGERS_HAVE_64_BITS: Final = Rule(
    "EventBridge takes JSON integers of 64 bits",
    "For the JSON number (integer) data type, the constraints are: a minimum value of -9,223,372,036,854,775,808 and a "
    "maximum value of 9,223,372,036,854,775,807.",
    "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html",
    switch="simulation.notices.Bus(largest)",
    guard="numbers beyond 64 bits are sent as numbers",
)


def is_malformed(detail: str, largest: int = LARGEST) -> bool:
    """Whether EventBridge refuses a detail for a number; those with a fraction are taken to be refused alike."""
    numbers: list[Decimal] = []

    def note(text: str) -> Any:
        numbers.append(Decimal(text))

    json.loads(detail, parse_int=note, parse_float=note)
    return not all(-largest - 1 <= number <= largest for number in numbers)
