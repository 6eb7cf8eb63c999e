"""Sends events through the runtime and keeps account of its responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from demo.sending.deliveries import Deliveries, Sendable
from demo.terminal import Progress

_CHUNK: Final = 1_000
_ROUNDS: Final = 5


class Outcome(Protocol):
    """The runtime's response to one event: `accepted`, `duplicate`, `rejected` or `failed`, and why."""

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str | None: ...


class AcceptMany(Protocol):
    """The runtime's bulk write, bound to one kind of event: one outcome per event."""

    def __call__(self, events: Sequence[Mapping[str, Any]], /) -> Sequence[Outcome]: ...


class Retract(Protocol):
    """The runtime's deletion, bound to one kind of event: whether the event existed."""

    def __call__(self, values: Mapping[str, Any], /) -> bool: ...


_Event = TypeVar("_Event", bound=Sendable)


@dataclass
class Account:
    """What became of the events sent, duplicates included: each one's last outcome, and why those that failed did."""

    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0

    def __add__(self, other: Account) -> Account:
        return Account(
            self.sent + other.sent,
            self.statuses + other.statuses,
            self.reasons + other.reasons,
            self.withdrawn + other.withdrawn,
        )


def send(
    accept_many: AcceptMany, retract: Retract, deliveries: Deliveries[_Event], name: str, progress: Progress
) -> Account:
    """Send the events, retract some of them and send some of those again."""
    account = _accept(accept_many, deliveries.sent, name, progress)
    withdrawn = sum(retract(event.as_event()) for event in deliveries.retracted)
    return account + Account(withdrawn=withdrawn) + _accept(accept_many, deliveries.resent, name, progress)


def _accept(accept_many: AcceptMany, events: Sequence[Sendable], name: str, progress: Progress) -> Account:
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
