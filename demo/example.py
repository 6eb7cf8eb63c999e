"""The shape that every example has: what it sends, what it reads back, and what that must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from demo.check.finding import Finding, Numbers, Reading
from demo.options import Setup
from demo.sending.send import Feed
from demo.terminal import Progress
from dynamodb_counters import Counters


class Example(ABC):
    """One of the example stacks with its traffic and its truth: the class `Blog` belongs to the stack `CountersBlog`."""

    name: ClassVar[str]
    stack: ClassVar[str]
    top_level: ClassVar[bool] = False
    """Whether its section is the report's top level rather than a member named after it."""
    measured: ClassVar[bool] = False
    """Whether its units are measured."""

    def __init_subclass__(cls) -> None:
        cls.name, cls.stack = cls.__name__.lower(), f"Counters{cls.__name__}"

    @classmethod
    @abstractmethod
    def prepare(cls, setup: Setup) -> Example:
        """Generate or read the traffic of a run."""

    @abstractmethod
    def feeds(self) -> Sequence[Feed]:
        """What is sent, in this order."""

    @property
    def size(self) -> int:
        """How many deliveries it makes."""
        return sum(len(feed.deliveries) for feed in self.feeds())

    @abstractmethod
    def totals(self, counters: Counters) -> dict[str, int]:
        """Read the few numbers that show whether everything has been counted."""

    @abstractmethod
    def expected_totals(self) -> dict[str, int]:
        """What these numbers must be in the end."""

    @abstractmethod
    def read(self, counters: Counters, progress: Progress) -> Reading:
        """Read everything back."""

    @abstractmethod
    def expected(self, reading: Reading) -> Numbers:
        """What must have been read, as of the interval and among the equal ranks that were read."""

    @abstractmethod
    def lines(self, finding: Finding) -> Sequence[str]:
        """Its lines of the summary."""

    def section(self, finding: Finding) -> dict[str, Any]:
        """Its section of the report."""
        return {
            "events_sent": finding.account.sent,
            "accepted": finding.account.statuses["accepted"],
            "duplicates_rejected": finding.account.statuses["duplicate"],
            "withdrawn": finding.account.withdrawn,
            **finding.found,
        }

    def queries(self, table: str) -> Sequence[str]:  # noqa: ARG002
        """Lines of Python to try on the table while it stays up."""
        return []
