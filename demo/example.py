"""What the leaderboard and the pages have in common: they are sent, read back and held against the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

from demo.aggregates_truth import answers
from demo.drain import read_settled
from demo.events import Course
from demo.findings import Finding, Numbers
from demo.progress import Progress
from demo.sending import Account, send_course
from dynamodb_counters import Counters, Event

Sent: TypeAlias = tuple[Event, Course[Any], str]
"""A kind of event, what happens to those of it, and what they are called in progress messages."""


@dataclass(frozen=True)
class Example(ABC):
    """An example whose events are also withdrawn.

    Parameters
    ----------
    counters : Counters
        The runtime, bound to the example's table.
    """

    name: ClassVar[str]
    """The example's name in the report."""

    counters: Counters

    def send(self, progress: Progress) -> Account:
        """Send all events, kind by kind.

        Parameters
        ----------
        progress : Progress
            Told how far it is.

        Returns
        -------
        Account
            What became of the events.
        """
        account = Account()
        for event, course, what in self._sent():
            accept_many, retract = partial(self.counters.accept_many, event), partial(self.counters.retract, event)
            account += send_course(accept_many, retract, course, what, progress)
        return account

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """Read what tells whether everything has been counted."""

    @abstractmethod
    def expected_totals(self) -> dict[str, int]:
        """Work out what the totals must come to."""

    def finding(self, account: Account) -> Finding:
        """Read everything back and hold it against the truth.

        Parameters
        ----------
        account : Account
            What became of the events.

        Returns
        -------
        Finding
            What was found.
        """
        found = read_settled(self._read, lambda numbers: numbers == self._expected(numbers))
        of_all = answers(*(course for _, course, _ in self._sent()))
        return Finding(self.name, account, of_all, found, self._expected(found), self._lines(found))

    @abstractmethod
    def _sent(self) -> Sequence[Sent]:
        """Tell what is sent."""

    @abstractmethod
    def _read(self) -> Numbers:
        """Read everything back."""

    @abstractmethod
    def _expected(self, found: Numbers) -> Numbers:
        """Work out what must be found; where that is open, what goes with what was found."""

    @abstractmethod
    def _lines(self, found: Numbers) -> Sequence[str]:
        """Say it for the summary."""
