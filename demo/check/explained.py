"""An explanation: the events that make one of the numbers, as `counters explain` finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demo.terminal import printable
from dynamodb_counters import Aggregate, Counters


@dataclass(frozen=True)
class Explained:
    """Why a group of an aggregate counts what it counts."""

    name: str
    group: Mapping[str, str]
    numbers: Mapping[str, Any]
    lines: int
    difference: Mapping[str, Any]

    @property
    def is_exact(self) -> bool:
        return not self.difference and bool(self.numbers)

    @property
    def number(self) -> str:
        return " ".join(f"{number:,}" for number in self.numbers.values()) or "nothing"

    def __str__(self) -> str:
        """`Why 7?`, and the command that lists the lines.

        >>> print(Explained("views", {"url": "/"}, {"views": 7}, 7, {}))
        Why 7?  7 lines add up to it: counters explain views url=/
        """
        fields = " ".join(f"{field}={printable(value)}" for field, value in self.group.items())
        if self.is_exact:
            return (
                f"Why {self.number}?  {self.lines:,} lines add up to it: counters explain {self.name} {fields}".strip()
            )
        return f"{self.name} {fields}: {dict(self.numbers)}, which differs from its lines by {dict(self.difference)}"


def explain(counters: Counters, aggregate: Aggregate, group: Mapping[str, str]) -> Explained:
    """Have a group explained; all has been counted before."""
    explanation = counters.explain(aggregate, group, scan=True)
    return Explained(aggregate.name, group, explanation.numbers, explanation.count, explanation.difference)
