"""Outcomes: what became of an event, and of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dynamodb_counters.errors import InvalidArgumentError, RejectedEventError, UnavailableError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an event.

    Parameters
    ----------
    status : {"accepted", "duplicate", "conflict", "rejected", "too_late", "failed"}
        ``"accepted"``: inserted now. ``"duplicate"``: inserted before, perhaps by an earlier attempt of this call.
        ``"conflict"``: not inserted, because its key has another payload, which is `stored`. ``"rejected"``: can never
        be accepted. ``"too_late"``: older than its event's retention, so that nobody can tell any more whether it is a
        repetition; packed events only. ``"failed"``: the table kept refusing; send it again.
    reason : str, optional
        Why it is neither accepted nor a duplicate.
    stored : mapping of str to object, optional
        What a conflict met: the stored event's attributes; numbers are int or Decimal.
    error : InvalidArgumentError, optional
        What was refused of a rejected event: attribute, value and what is expected; None where DynamoDB refused it.

    Examples
    --------
    >>> Outcome("accepted")
    Outcome(status='accepted', reason=None)
    """

    status: Literal["accepted", "duplicate", "conflict", "rejected", "too_late", "failed"]
    reason: str | None = None
    stored: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)
    error: InvalidArgumentError | None = field(default=None, repr=False, compare=False)

    @property
    def conflict(self) -> bool:
        """Whether the event's key has another payload."""
        return self.status == "conflict"

    @property
    def is_rejected(self) -> bool:
        """Whether the event can never be accepted: rejected, or too late."""
        return self.status in ("rejected", "too_late")


ACCEPTED: Final = Outcome("accepted")
DUPLICATE: Final = Outcome("duplicate")


def rejected(error: InvalidArgumentError) -> Outcome:
    return Outcome("rejected", str(error), error=error)


class Outcomes(list[Outcome]):
    """What became of many events, in their order; as text a line for a log.

    Examples
    --------
    >>> outcomes = Outcomes([Outcome("accepted"), Outcome("duplicate"), Outcome("rejected", "invalid url=None: …")])
    >>> print(outcomes)
    1 accepted, 1 duplicate, 1 rejected: event 2: invalid url=None: …
    >>> outcomes.accepted, outcomes.rejected
    (1, {2: Outcome(status='rejected', reason='invalid url=None: …')})
    """

    @property
    def accepted(self) -> int:
        """How many events were inserted now."""
        return sum(outcome.status == "accepted" for outcome in self)

    @property
    def duplicates(self) -> int:
        """How many events were inserted before."""
        return sum(outcome.status == "duplicate" for outcome in self)

    @property
    def conflicts(self) -> dict[int, Outcome]:
        """The events whose keys have other payloads, by their place among the events."""
        return {index: outcome for index, outcome in enumerate(self) if outcome.conflict}

    @property
    def rejected(self) -> dict[int, Outcome]:
        """The events that can never be accepted, those that came too late included, by their place."""
        return {index: outcome for index, outcome in enumerate(self) if outcome.is_rejected}

    @property
    def failed(self) -> dict[int, Outcome]:
        """The events that the table kept refusing, by their place: send them again."""
        return {index: outcome for index, outcome in enumerate(self) if outcome.status == "failed"}

    def raise_for_rejected(self) -> Outcomes:
        """Return the outcomes themselves, unless an event was not taken.

        Raises
        ------
        RejectedEventError
            Some events can never be accepted; it names the first one's attribute.
        UnavailableError
            No event was rejected, but the table kept refusing some: send those again.
        """
        for index, outcome in self.rejected.items():
            others = len(self.rejected) - 1
            more = f"; {others} more of {len(self)} events were rejected" if others else ""
            raise rejection(outcome, f"event {index}: ", more)
        for index, outcome in self.failed.items():
            raise UnavailableError(f"{len(self.failed)} of {len(self)} events; event {index}: {outcome.reason}")
        return self

    def __str__(self) -> str:
        told = [f"{self.accepted} accepted"]
        if self.duplicates:
            told.append(f"{self.duplicates} duplicate{'s' * (self.duplicates > 1)}")
        if self.conflicts:
            told.append(f"{len(self.conflicts)} conflict{'s' * (len(self.conflicts) > 1)}")
        told += [
            f"{len(those)} {name}" for name, those in (("rejected", self.rejected), ("failed", self.failed)) if those
        ]
        for index, outcome in (self.rejected or self.failed or self.conflicts).items():
            return f"{', '.join(told)}: event {index}: {outcome.reason}"
        return ", ".join(told)


def require_taken(outcome: Outcome, retry: str = "send the event again") -> Outcome:
    """The outcome of one event, unless it is rejected or the table kept refusing it."""
    if outcome.is_rejected:
        raise rejection(outcome)
    if outcome.status == "failed":
        raise UnavailableError(f"{outcome.reason}; {retry}")
    return outcome


def rejection(outcome: Outcome, before: str = "", after: str = "") -> RejectedEventError:
    error = outcome.error or InvalidArgumentError("values", None, str(outcome.reason))
    return RejectedEventError(
        error.argument, error.value, error.expected, f"{before}{outcome.error or outcome.reason}{after}"
    )
