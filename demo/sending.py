"""Sends events through the runtime and keeps account of its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from demo.progress import Progress

_CHUNK: Final = 1_000
_ROUNDS: Final = 5


class Outcome(Protocol):
    """The runtime's answer for one event."""

    @property
    def status(self) -> str:
        """``accepted``, ``duplicate``, ``rejected`` or ``failed``."""

    @property
    def reason(self) -> str | None:
        """Why it was not accepted."""


class AcceptMany(Protocol):
    """The runtime's bulk write, bound to one kind of event."""

    def __call__(self, events: Sequence[Mapping[str, Any]], /) -> Sequence[Outcome]:
        """Accept events, one outcome each."""


class Sendable(Protocol):
    """An event of the demonstration."""

    def as_event(self) -> Mapping[str, Any]:
        """Give its fields as declared."""


@dataclass
class Account:
    """What became of a stream of events.

    Parameters
    ----------
    sent : int
        Events delivered, duplicates included.
    statuses : Counter of str
        Last outcome of each, by status.
    reasons : Counter of str
        Why events were rejected or failed.
    """

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


def send(accept_many: AcceptMany, events: Sequence[Sendable], name: str, progress: Progress) -> Account:
    """Send a stream of events in order.

    Parameters
    ----------
    accept_many : callable
        The runtime's bulk write.
    events : sequence
        What to send. Events that fail for a passing reason are sent again.
    name : str
        What they are called in progress messages.
    progress : Progress
        Told how far it is.

    Returns
    -------
    Account
        What became of them.
    """
    account = Account(sent=len(events))
    for start in range(0, len(events), _CHUNK):
        pending = [event.as_event() for event in events[start : start + _CHUNK]]
        for attempt in range(1, _ROUNDS + 1):
            outcomes = accept_many(pending)
            final = [outcome for outcome in outcomes if outcome.status != "failed" or attempt == _ROUNDS]
            account.statuses.update(outcome.status for outcome in final)
            account.reasons.update(str(outcome.reason) for outcome in final if outcome.status in ("rejected", "failed"))
            pending = [event for event, outcome in zip(pending, outcomes, strict=True) if outcome.status == "failed"]
            if not pending:
                break
        progress.now_and_then(f"sending {name}: {min(start + _CHUNK, len(events)):,} of {len(events):,}")
    return account
