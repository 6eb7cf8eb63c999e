"""Virtual time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

EPOCH: Final = 1_795_168_800.0
"""Where virtual time begins: 2026-11-20T10:00Z."""


class VirtualClock:
    """A clock that stands until it is told to go on.

    Parameters
    ----------
    now : float, optional
        Seconds since 1970.
    """

    def __init__(self, now: float = EPOCH) -> None:
        self.now = now

    def __call__(self) -> float:
        """Give the seconds since 1970."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Go on.

        Parameters
        ----------
        seconds : float
            How far.
        """
        self.now += seconds


def iso(seconds: float) -> str:
    """Write a time as Lambda does.

    Parameters
    ----------
    seconds : float
        Seconds since 1970.

    Returns
    -------
    str
        ISO 8601 in UTC.
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
