"""Deliveries to the runtime, some events more than once, some retracted; and an account of its responses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from demo.terminal import Progress
from dynamodb_counters import Counters, Event

Attributes: TypeAlias = Mapping[str, Any]

_CHUNK: Final = 1_000
_ROUNDS: Final = 5
"""Rounds of a chunk, in a row, in which no event arrives."""


@dataclass(frozen=True)
class Deliveries:
    """Events of one kind in this order: `events` with repeats, some `retracted`, some of those `resent` as new events.

    Equal events are the same event.
    """

    events: Sequence[Attributes] = ()
    retracted: Sequence[Attributes] = ()
    resent: Sequence[Attributes] = ()

    def __len__(self) -> int:
        return len(self.events) + len(self.retracted) + len(self.resent)

    def remaining(self) -> list[Attributes]:
        """Return the distinct events that exist in the end."""
        retracted = _distinct(self.retracted)
        remains = {key: event for key, event in _distinct(self.events).items() if key not in retracted}
        return list((remains | _distinct(self.resent)).values())

    def responses(self) -> Counter[str]:
        """Return how many events the runtime must accept, reject as duplicates, and retract."""
        distinct = len(_distinct(self.events))
        return Counter(
            accepted=distinct + len(self.resent), duplicate=len(self.events) - distinct, withdrawn=len(self.retracted)
        )


def with_duplicates(rng: random.Random, events: Sequence[Attributes], share: float) -> list[Attributes]:
    """Insert copies of `share` of the distinct events at random positions, also before the original."""
    distinct = list(_distinct(events).values())
    copies = rng.sample(distinct, k=round(share * len(distinct)))
    total = len(events) + len(copies)
    positions = set(rng.sample(range(total), k=len(copies)))
    originals, repeats = iter(events), iter(copies)
    return [next(repeats) if position in positions else next(originals) for position in range(total)]


class Feed(NamedTuple):
    """A kind of event, its deliveries, and what progress messages call them."""

    event: Event
    deliveries: Deliveries
    name: str


@dataclass
class Account:
    """Outcomes of the events sent, duplicates included: each one's last, and why those that failed did."""

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0

    @property
    def total(self) -> int:
        return self.statuses.total()

    def send(self, counters: Counters, feed: Feed, progress: Progress) -> None:
        """Send the events, retract some of them and send some of those again."""
        self._accept(counters, feed, feed.deliveries.events, progress)
        self.withdrawn += sum(counters.retract(feed.event, event) for event in feed.deliveries.retracted)
        self._accept(counters, feed, feed.deliveries.resent, progress)

    def _accept(self, counters: Counters, feed: Feed, events: Sequence[Attributes], progress: Progress) -> None:
        for start in range(0, len(events), _CHUNK):
            pending = list(events[start : start + _CHUNK])
            rounds = _ROUNDS
            while pending:
                outcomes = counters.accept_many(feed.event, pending)
                arrived = [outcome for outcome in outcomes if outcome.status != "failed"]
                rounds = _ROUNDS if arrived else rounds - 1
                final = arrived if rounds else outcomes
                self.statuses.update(outcome.status for outcome in final)
                self.reasons.update(
                    str(outcome.reason) for outcome in final if outcome.status in ("rejected", "failed")
                )
                pending = [
                    event
                    for event, outcome in zip(pending, outcomes, strict=True)
                    if outcome.status == "failed" and rounds
                ]
            progress.now_and_then(f"sending {feed.name}: {min(start + _CHUNK, len(events)):,} of {len(events):,}")


class Repeated:
    """Requests that a client has sent more than once: an insert that had arrived is then called a duplicate."""

    def __init__(self) -> None:
        self._times = 0

    def watch(self, client: Any) -> None:
        client.meta.events.register("after-call.dynamodb", self._after)

    def note(self) -> str:
        """Return the summary's words on them; "" if there were none."""
        if not self._times:
            return ""
        return f"{self._times:,} requests had no answer and were sent again: events may be called their own duplicates"

    def _after(self, parsed: Mapping[str, Any], **_: Any) -> None:
        self._times += bool(parsed.get("ResponseMetadata", {}).get("RetryAttempts"))


def _distinct(events: Sequence[Attributes]) -> dict[Hashable, Attributes]:
    return {tuple(sorted(event.items())): event for event in events}
