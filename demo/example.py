"""The shape that every example has: what it sends, what it reads back, and what that must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from demo.check.explained import Explained
from demo.check.intervals import Interval
from demo.cost import Costs
from demo.options import Setup
from demo.platform.deployment import Deployment
from demo.sending.send import Account, Feed
from demo.terminal import Progress, printable
from dynamodb_counters import Aggregate, Counters

Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
"""Counts, or other measures, by aggregate and group."""


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


class Example(ABC):
    """An example with its traffic and its truth: the class `Blog` belongs to the stack `CountersBlog`."""

    name: ClassVar[str]
    stack: ClassVar[str]
    noun: ClassVar[str] = "events"
    leading: ClassVar[bool] = False
    """Whether its section is at the report's top level, not in a member named after it."""
    priced: ClassVar[bool] = False
    """Whether its units are measured."""

    def __init_subclass__(cls) -> None:
        cls.name, cls.stack = cls.__name__.lower(), f"Counters{cls.__name__}"

    @classmethod
    @abstractmethod
    def prepare(cls, setup: Setup) -> Example:
        """Generate or read the traffic of a run."""

    @abstractmethod
    def feeds(self) -> Sequence[Feed]:
        """Return the deliveries that are sent, in this order."""

    @property
    def size(self) -> int:
        return sum(len(feed.deliveries) for feed in self.feeds())

    def responses(self) -> Counter[str]:
        """How many events the runtime must accept, reject as duplicates, and retract."""
        return sum((feed.deliveries.responses() for feed in self.feeds()), Counter[str]())

    def send(self, counters: Counters, deployment: Deployment, account: Account, progress: Progress) -> None:  # noqa: ARG002
        """Send everything; an example whose events are items of other code writes these."""
        for feed in self.feeds():
            account.send(counters, feed, progress)

    @abstractmethod
    def total(self, counters: Counters) -> int:
        """Read one number that shows, in one read, how far the counting is."""

    @abstractmethod
    def expected_total(self) -> int:
        """Return the value that this number must have in the end."""

    @abstractmethod
    def read(self, counters: Counters, progress: Progress) -> Reading:
        """Read everything back."""

    @abstractmethod
    def expected(self, reading: Reading) -> Numbers:
        """Return the numbers that must have been read, as of the interval and among the equal ranks that were read."""

    def questions(self, reading: Reading) -> Sequence[tuple[Aggregate, Mapping[str, str]]]:  # noqa: ARG002
        """Return groups that are explained."""
        return []

    @abstractmethod
    def lines(self, finding: Finding) -> Sequence[str]:
        """Its lines of the summary."""

    def section(self, finding: Finding) -> dict[str, Any]:
        return {
            "events_sent": finding.account.sent,
            "accepted": finding.account.statuses["accepted"],
            "duplicates_rejected": finding.account.statuses["duplicate"],
            "withdrawn": finding.account.withdrawn,
            **finding.found,
        }

    def commands(self) -> Sequence[str]:
        """Return arguments of `counters` to try on the table while it stays up."""
        return []


@dataclass(frozen=True)
class Finding:
    """The runtime's responses to an example and its counts, compared with what both must be."""

    example: Example
    account: Account
    reading: Reading
    costs: Costs | None = None
    explained: Sequence[Explained] = ()
    crashed: bool = False

    @property
    def found(self) -> Numbers:
        return self.reading.counts

    @property
    def expected(self) -> Numbers:
        return self.example.expected(self.reading)

    @property
    def measured(self) -> Costs:
        """The costs, of an example whose units are measured."""
        assert self.costs is not None
        return self.costs

    @property
    def checked(self) -> int:
        return sum(map(len, self.expected.values()))

    def differences(self) -> list[str]:
        """One line per wrong count, and per reason why events were not accepted; empty when all is exact."""
        responses = {**self.account.statuses, "withdrawn": self.account.withdrawn}
        lines = [f"{n:,} events {reason}" for reason, n in self.account.reasons.items()]
        lines += _differing("responses", responses, self.example.responses())
        found, expected = self.found, self.expected
        for what in sorted(expected.keys() | found.keys()):
            lines += _differing(what, found.get(what, {}), expected.get(what, {}))
        lines += [f"explained {explained}" for explained in self.explained if not explained.is_exact]
        return [f"{self.example.name}: {line}" for line in lines]


def _differing(what: str, found: Mapping[str, float], expected: Mapping[str, float]) -> list[str]:
    return [
        f"{what} of {printable(name)}: {found.get(name, 0):,}, must be {expected.get(name, 0):,}"
        for name in sorted(expected.keys() | found.keys())
        if found.get(name, 0) != expected.get(name, 0)
    ]


def highest(counts: Mapping[str, float], most: int) -> list[str]:
    """The names with the highest counts, by name where counts are equal."""
    return sorted(counts, key=lambda name: (-counts[name], name))[:most]
