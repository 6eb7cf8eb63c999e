"""What an example has counted, held against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demo.comparison import differing
from demo.sending import Account

Numbers = Mapping[str, Mapping[str, int]]
"""What was counted, for what, and how often."""


@dataclass(frozen=True)
class Finding:
    """What an example has counted, held against the truth.

    Parameters
    ----------
    name : str
        The example's name in the report.
    account : Account
        What the runtime answered to its events.
    answers : mapping of str to int
        What it must have answered: how many times ``accepted``, ``duplicate`` and ``withdrawn``.
    found, expected : Numbers
        Read through the read library, and worked out from the events alone.
    lines : sequence of str
        For the summary.
    """

    name: str
    account: Account
    answers: Mapping[str, int]
    found: Numbers
    expected: Numbers
    lines: Sequence[str] = ()

    @property
    def checked(self) -> int:
        """How many counts are compared with the truth."""
        return sum(map(len, self.expected.values()))

    def differences(self) -> list[str]:
        """Compare every count with the truth.

        Returns
        -------
        list of str
            A line for each that is wrong, and for each event that was not taken. Empty when all is exact.
        """
        answered = {**self.account.statuses, "withdrawn": self.account.withdrawn}
        return [
            *(f"{self.name}: {n:,} events {reason}" for reason, n in self.account.reasons.items()),
            *differing(f"{self.name}: answers", answered, self.answers),
            *(
                line
                for what in sorted(self.expected.keys() | self.found.keys())
                for line in differing(f"{self.name}: {what}", self.found.get(what, {}), self.expected.get(what, {}))
            ),
        ]

    def section(self) -> dict[str, Any]:
        """Make the example's section of the report.

        Returns
        -------
        dict
            To be written as JSON.
        """
        return {
            "events_sent": self.account.sent,
            "accepted": self.account.statuses["accepted"],
            "duplicates_rejected": self.account.statuses["duplicate"],
            "withdrawn": self.account.withdrawn,
            **self.found,
        }
