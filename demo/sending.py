"""Sends events through the runtime and keeps account of its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from demo.events import Course
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


class Retract(Protocol):
    """The runtime's deletion, bound to one kind of event."""

    def __call__(self, values: Mapping[str, Any], /) -> bool:
        """Delete an event that is there."""


class Sendable(Protocol):
    """An event of the demonstration."""

    def as_event(self) -> Mapping[str, Any]:
        """Give its fields as declared."""


_Event = TypeVar("_Event", bound=Sendable)


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
    withdrawn : int
        Events that were there and are deleted.
    """

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0

    def __add__(self, other: Account) -> Account:
        """Put two accounts together."""
        return Account(
            self.sent + other.sent,
            self.statuses + other.statuses,
            self.reasons + other.reasons,
            self.withdrawn + other.withdrawn,
        )


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


def send_course(
    accept_many: AcceptMany, retract: Retract, course: Course[_Event], name: str, progress: Progress
) -> Account:
    """Send events, delete some of them and send some of those again.

    Parameters
    ----------
    accept_many : callable
        The runtime's bulk write.
    retract : callable
        The runtime's deletion.
    course : Course
        What to do.
    name : str
        What the events are called in progress messages.
    progress : Progress
        Told how far it is.

    Returns
    -------
    Account
        What became of all of it.
    """
    account = send(accept_many, course.sent, name, progress)
    withdrawn = sum(retract(event.as_event()) for event in course.withdrawn)
    return account + Account(withdrawn=withdrawn) + send(accept_many, course.again, name, progress)
