"""What an example has counted, compared with the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from demo.check.intervals import Interval
from demo.cost import Costs
from demo.sending.send import Account
from demo.terminal import printable

Numbers: TypeAlias = Mapping[str, Mapping[str, int]]
"""What was counted, of what, and how often."""


@dataclass(frozen=True)
class Reading:
    """Counts read through the runtime, and the interval covered by those of windows."""

    counts: Numbers
    interval: Interval | None = None

    @property
    def covered(self) -> Interval:
        """The interval, of an example that has windows."""
        assert self.interval is not None
        return self.interval


@dataclass(frozen=True)
class Finding:
    """The runtime's responses and counts of one example, and what both must be."""

    name: str
    account: Account
    responses: Mapping[str, int]
    reading: Reading
    expected: Numbers
    costs: Costs | None = None

    @property
    def found(self) -> Numbers:
        return self.reading.counts

    @property
    def measured(self) -> Costs:
        """The costs, of an example whose units are measured."""
        assert self.costs is not None
        return self.costs

    @property
    def checked(self) -> int:
        """How many counts are compared with the truth."""
        return sum(map(len, self.expected.values()))

    def differences(self) -> list[str]:
        """One line per wrong count, and per reason why events were not accepted; empty when all is exact."""
        responses = {**self.account.statuses, "withdrawn": self.account.withdrawn}
        lines = [
            *(f"{n:,} events {reason}" for reason, n in self.account.reasons.items()),
            *_differing("responses", responses, self.responses),
            *(
                line
                for what in sorted(self.expected.keys() | self.found.keys())
                for line in _differing(what, self.found.get(what, {}), self.expected.get(what, {}))
            ),
        ]
        return [f"{self.name}: {line}" for line in lines]


def _differing(what: str, found: Mapping[str, int], expected: Mapping[str, int]) -> list[str]:
    return [
        f"{what} of {printable(name)}: {found.get(name, 0):,}, must be {expected.get(name, 0):,}"
        for name in sorted(expected.keys() | found.keys())
        if found.get(name, 0) != expected.get(name, 0)
    ]


def highest(counts: Mapping[str, int], most: int) -> list[str]:
    """The names with the highest counts, by name where counts are equal."""
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]
