"""Deliveries to the runtime: events, some more than once, some retracted, some of those sent again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Attributes: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Deliveries:
    """Events of one kind in this order: `sent` with repeats, some `retracted`, some of those `resent` as new events.

    Equal events are the same event.
    """

    sent: Sequence[Attributes] = ()
    retracted: Sequence[Attributes] = ()
    resent: Sequence[Attributes] = ()

    def __len__(self) -> int:
        return len(self.sent) + len(self.retracted) + len(self.resent)

    def remaining(self) -> list[Attributes]:
        """The distinct events that exist in the end."""
        retracted = _distinct(self.retracted)
        left = {key: event for key, event in _distinct(self.sent).items() if key not in retracted}
        return list((left | _distinct(self.resent)).values())

    def responses(self) -> Counter[str]:
        """How many events the runtime must accept, reject as duplicates, and retract."""
        distinct = len(_distinct(self.sent))
        return Counter(
            accepted=distinct + len(self.resent), duplicate=len(self.sent) - distinct, withdrawn=len(self.retracted)
        )


def with_duplicates(rng: random.Random, events: Sequence[Attributes], share: float) -> list[Attributes]:
    """Insert copies of `share` of the distinct events at random positions, also before the original."""
    distinct = list(_distinct(events).values())
    copies = rng.sample(distinct, k=round(share * len(distinct)))
    total = len(events) + len(copies)
    positions = set(rng.sample(range(total), k=len(copies)))
    originals, repeats = iter(events), iter(copies)
    return [next(repeats) if position in positions else next(originals) for position in range(total)]


def _distinct(events: Sequence[Attributes]) -> dict[Hashable, Attributes]:
    return {tuple(sorted(event.items())): event for event in events}
