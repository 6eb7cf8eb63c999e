"""The consumer: accepts the events of messages, once, and leaves no message to its fate.

A message that can never be accepted becomes a dead letter; one that the table refused for now is sent again,
later. Both are sent by the consumer itself, so that only messages that crash it use up receives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._clients import may_pass
from dynamodb_counters._declarations import Event
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.event_requests import envelope_problem
from dynamodb_counters._queue.messages import Message, Sending, dead_letter, read_message, sent_again
from dynamodb_counters._queue.sending import Queues
from dynamodb_counters._table import Table, ending_at, time_left
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.accept import Conflicts, accept_many
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus
from dynamodb_counters.errors import CountersError

_LONGEST_RESERVE: Final = 20.0
_SHARE_OF_A_REQUEST: Final = 0.4

_MOST_EVENTS: Final = 1000
_MOST_PACKED_EVENTS: Final = 20_000
_MOST_CHARACTERS: Final = 1_000_000
"""Characters of a slice, which is not interrupted. Packed events cost less the more of them come together."""

_GROUP: Final = 1000
_SHRINKS: Final = 3
"""Messages that came back stand in smaller groups, an eighth each time: one of them may have crashed the function."""

_SUSPICIOUS: Final = 3
"""After so many receives, a message keeps its count, so that one that crashes ends as a dead letter."""

_Part: TypeAlias = tuple[Message, int]


def _reserve(seconds: float) -> float:
    """Nothing new starts with less time left: a request may just have started, and what is left must be sent on."""
    return min(_LONGEST_RESERVE, seconds / 3)


def longest_request(timeout: float) -> float:
    """How long a request of a function with such a timeout may take: twice that fits into the reserve."""
    return _SHARE_OF_A_REQUEST * _reserve(timeout)


@dataclass(slots=True)
class Consumed:
    statuses: Counter[str] = field(default_factory=Counter)
    """How many events had which outcome."""
    unfinished: list[str] = field(default_factory=list)
    """The ids of messages to be delivered again."""
    again: int = 0
    """Messages sent to the queue again."""
    oldest: float = 0.0
    """Seconds for which the oldest event has been waiting that still does."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a message became a dead letter, or could not be handled at all, by its id."""
    faults: set[str] = field(default_factory=set)
    """Errors that no event is to blame for and no retry cures: no table, no permission."""


class Consumer:
    def __init__(self, table: Table, event: Event, queues: Queues, admission: Plan | None = None) -> None:
        self._table, self._event, self._queues = table, event, queues
        self._admission = admission
        self._most_events = _MOST_EVENTS if event.packed is None else _MOST_PACKED_EVENTS
        # Conflicts as `accept` finds them: for a packed event, none with what was there before.
        self._conflicts: Conflicts = "read" if event.packed is None else "free"

    def consume(self, records: Sequence[Mapping[str, Any]], seconds_left: Callable[[], float]) -> Consumed:
        """Handle a batch of records in the time left."""
        now, seconds, consumed = self._table.clock(), seconds_left(), Consumed()
        with ending_at(now + seconds - _reserve(seconds)):
            groups = list(self._groups([read_message(record, now) for record in records]))
            for group in groups:
                for parts in self._slices(group):
                    self._accept(parts, consumed)
                done = self._finish(group, consumed)
                if group is not groups[-1]:
                    # The next slice may crash: nothing of what is done is to come back with it.
                    self._queues.delete(done)
        return consumed

    def _groups(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """Messages to handle together, the least suspicious first."""
        # In another order each time they come: a message that crashes the function hides those behind it.
        order = {message.id: self._table.jitter() if message.receives > 1 else 0.0 for message in messages}
        ordered = sorted(messages, key=lambda message: (message.receives, order[message.id]))
        for receives, alike in groupby(ordered, key=lambda message: message.receives):
            size, those = max(1, _GROUP >> _SHRINKS * (receives - 1)), list(alike)
            yield from (those[start : start + size] for start in range(0, len(those), size))

    def _is_late(self) -> bool:
        return time_left(self._table.clock()) <= 0

    def _slices(self, group: Sequence[Message]) -> Iterator[list[_Part]]:
        """Events to accept together, message by message, until time is up."""
        parts: list[_Part] = []
        characters = 0
        for message in group:
            if self._is_late():
                break
            message.parse()
            if self._is_forgotten(message):
                continue
            characters += len(message.body)
            for index in range(len(message.events)):
                parts.append((message, index))
                if len(parts) == self._most_events:
                    yield parts
                    parts = []
                    if self._is_late():
                        return
            if characters >= _MOST_CHARACTERS:
                yield parts
                parts, characters = [], 0
        yield parts

    def _is_forgotten(self, message: Message) -> bool:
        """Refuse events so old that the table may not remember any more whether it had them."""
        retention = self._event.retention
        if retention is None or self._table.clock() - message.taken < retention.total_seconds():
            return False
        reason = f"taken at {utc(int(message.taken)).isoformat()}, which is as long ago as events are remembered"
        message.outcomes = dict.fromkeys(range(len(message.events)), Outcome(OutcomeStatus.TOO_LATE, reason))
        return True

    def _accept(self, parts: Sequence[_Part], consumed: Consumed) -> None:
        events = [message.events[index] for message, index in parts]
        try:
            outcomes = accept_many(self._table, self._event, events, self._refusal, self._conflicts) if events else []
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}"
            alone = [list(those) for _, those in groupby(parts, key=lambda part: part[0])]
            is_tables = isinstance(error, ClientError | BotoCoreError | TimeoutError)
            if not is_tables and len(alone) > 1:
                # A stranger's event must not take the messages around it along.
                for those in alone:
                    self._accept(those, consumed)
                return
            if not is_tables and not isinstance(error, CountersError):
                parts[0][0].crash = reason
                return
            # Which of them were accepted is not known: those will be duplicates.
            outcomes = [Outcome(OutcomeStatus.FAILED, reason)] * len(parts)
            if not may_pass(error):
                consumed.faults.add(reason)
        for (message, index), outcome in zip(parts, outcomes, strict=True):
            message.outcomes[index] = outcome

    def _refusal(self, item: Mapping[str, Any]) -> str | None:
        problem = envelope_problem(self._event, item.keys())
        if problem is not None or self._admission is None:
            return problem
        return self._admission.refusal(dict(item), self._table.clock())

    def _finish(self, group: Sequence[Message], consumed: Consumed) -> list[Message]:
        """Send on what is not accepted; return the messages that are done."""
        sendings: list[Sending] = []
        unfinished: set[str] = set()
        for message in group:
            consumed.statuses.update(outcome.status for outcome in message.outcomes.values())
            consumed.statuses["rejected"] += message.unreadable is not None
            if message.crash is not None or (not message.is_begun and message.receives > _SUSPICIOUS):
                unfinished.add(message.id)
                if message.crash is not None:
                    consumed.refused[message.id] = message.crash
                continue
            if (dead := dead_letter(message)) is not None:
                consumed.refused[message.id] = dead.attributes["reason"]["StringValue"]
                sendings.append(dead)
            if (again := sent_again(message, self._table.jitter())) is not None:
                sendings.append(again)
                consumed.again += 1
                consumed.oldest = max(consumed.oldest, self._table.clock() - message.taken)
        unfinished |= self._queues.send(sendings)
        consumed.unfinished += sorted(unfinished)
        return [message for message in group if message.id not in unfinished]
