"""What a schedule comes to, and the errors that tell of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """What a schedule came to.

    Parameters
    ----------
    seed : int
        Its seed.
    wrong : list of str
        Counts that are not exact, one line an item.
    deliveries, records : int
        Invocations asked for, and records handed over in them.
    faults : Counter
        Faults injected, by kind.
    """

    seed: int
    wrong: list[str]
    deliveries: int
    records: int
    faults: Counter[str] = field(default_factory=Counter)


class WrongCountError(AssertionError):
    """A schedule ended with counts that are not exact; the message says how to run it again.

    Parameters
    ----------
    outcome : Outcome
        The schedule's.
    engine : str
        What it ran on.
    """

    def __init__(self, outcome: Outcome, engine: str) -> None:
        lines = "\n  ".join(outcome.wrong)
        again = f"python -m tests.harness.soak --engine {engine} --seed {outcome.seed} --schedules 1"
        super().__init__(f"seed {outcome.seed}: {len(outcome.wrong)} wrong\n  {lines}\nrun it again: {again}")


class StuckError(AssertionError):
    """A schedule did not come to an end.

    Parameters
    ----------
    seed : int
        Its seed.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(f"seed {seed} does not end")
