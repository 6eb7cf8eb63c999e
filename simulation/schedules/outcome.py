"""Outcome of a schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """Outcome of a schedule: counts that are not exact, invocations, records delivered, faults by kind.

    `accepts` counts the events of every call of writers of packed events, retractions too. `reached` counts what it
    came across by the names of `coverage`; `paused` is the longest that an invocation without a fault has waited
    between two tries.
    """

    seed: int
    wrong: list[str]
    deliveries: int
    records: int
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    paused: float = 0.0
    accepts: int = 0


class WrongCountError(AssertionError):
    """A schedule ended with wrong counts; the message says how to run it again."""

    def __init__(self, outcome: Outcome, engine: str) -> None:
        lines = "\n  ".join(outcome.wrong)
        again = f"python -m simulation.soak --engine {engine} --seed {outcome.seed} --schedules 1"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")
