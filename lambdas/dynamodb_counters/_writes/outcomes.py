"""Outcomes of an event, and of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._table import may_pass
from dynamodb_counters.errors import InvalidArgumentError, RejectedEventError, UnavailableError


class OutcomeStatus(StrEnum):
    """Status of an event after a call; equal to its text, such as ``"too_late"``."""

    ACCEPTED = "accepted"
    """Inserted now."""
    DUPLICATE = "duplicate"
    """Inserted before, perhaps by an earlier attempt of this call."""
    CONFLICT = "conflict"
    """Not inserted, because its key has another payload, which is `Outcome.stored`."""
    REJECTED = "rejected"
    """Can never be accepted."""
    TOO_LATE = "too_late"
    """Older than its event's retention, so that a repetition is no longer recognized; packed events only."""
    FAILED = "failed"
    """The table kept refusing it; send it again."""

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one event.

    Parameters
    ----------
    status : OutcomeStatus
        Its text is ``"accepted"``, ``"duplicate"``, ``"conflict"``, ``"rejected"``, ``"too_late"`` or ``"failed"``.
    reason : str, optional
        Why it is neither accepted nor a duplicate.
    stored : mapping of str to object, optional
        The attributes of the stored event that a conflict met; numbers are int or Decimal.
    error : InvalidArgumentError, optional
        The refusal of a rejected event: attribute, value and what is expected; None where DynamoDB refused it.

    Examples
    --------
    >>> Outcome(OutcomeStatus.ACCEPTED)
    Outcome(status='accepted', reason=None)
    """

    status: OutcomeStatus
    reason: str | None = None
    stored: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)
    error: InvalidArgumentError | None = field(default=None, repr=False, compare=False)


ACCEPTED: Final = Outcome(OutcomeStatus.ACCEPTED)
DUPLICATE: Final = Outcome(OutcomeStatus.DUPLICATE)
_REFUSED: Final = (OutcomeStatus.REJECTED, OutcomeStatus.TOO_LATE)


def rejected(error: InvalidArgumentError, status: OutcomeStatus = OutcomeStatus.REJECTED) -> Outcome:
    return Outcome(status, str(error), error=error)


def failed(error: Exception) -> Outcome:
    """Return the outcome of an event for whose request there is no answer now; raise other errors."""
    # No credentials, no permission: a fault of the deployment, not of the event.
    if not may_pass(error):
        raise error
    return Outcome(OutcomeStatus.FAILED, str(error))


class Outcomes(list[Outcome]):
    """Outcomes of many events, in their order; as text a line for a log.

    Examples
    --------
    >>> rejected = Outcome(OutcomeStatus.REJECTED, "invalid url=None: …")
    >>> outcomes = Outcomes([Outcome(OutcomeStatus.ACCEPTED), Outcome(OutcomeStatus.DUPLICATE), rejected])
    >>> print(outcomes)
    1 accepted, 1 duplicate, 1 rejected: event 2: invalid url=None: …
    """

    def indexes(self, *statuses: OutcomeStatus | str) -> list[int]:
        """Return which events have one of the statuses: ``outcomes[i]`` is the outcome of event ``i``.

        Examples
        --------
        >>> Outcomes([Outcome(OutcomeStatus.ACCEPTED), Outcome(OutcomeStatus.FAILED)]).indexes("failed")
        [1]
        """
        for status in statuses:
            require_choice("statuses", status, tuple(OutcomeStatus))
        return [index for index, outcome in enumerate(self) if outcome.status in statuses]

    def raise_for_rejected(self) -> Outcomes:
        """Return the outcomes themselves, unless an event was not taken.

        Raises
        ------
        RejectedEventError
            Some events can never be accepted, or came too late; it names the first one's attribute.
        UnavailableError
            No event was rejected, but the table kept refusing some: send those again.
        """
        refused, failed = self.indexes(*_REFUSED), self.indexes(OutcomeStatus.FAILED)
        if refused:
            outcome = self[refused[0]]
            error = outcome.error or InvalidArgumentError("values", None, str(outcome.reason))
            before = f"event {refused[0]}: " if len(self) > 1 else ""
            after = f"; {len(refused) - 1} more of {len(self)} events were rejected" if len(refused) > 1 else ""
            text = f"{before}{outcome.error or outcome.reason}{after}"
            raise RejectedEventError(error.argument, error.value, error.expected, text)
        if failed:
            text = f"{len(failed)} of {len(self)} events, to be sent again: event {failed[0]}: {self[failed[0]].reason}"
            raise UnavailableError(text)
        return self

    def __str__(self) -> str:
        numbers = {status: len(self.indexes(status)) for status in OutcomeStatus}
        statuses = [status for status, number in numbers.items() if number or status == OutcomeStatus.ACCEPTED]
        summary = ", ".join(f"{numbers[status]} {status}" for status in statuses)
        reasons = self.indexes(*_REFUSED) or self.indexes(OutcomeStatus.FAILED) or self.indexes(OutcomeStatus.CONFLICT)
        return f"{summary}: event {reasons[0]}: {self[reasons[0]].reason}" if reasons else summary
