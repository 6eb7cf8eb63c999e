"""Deliveries to the runtime: events, some more than once, some retracted, some of those sent again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_Event = TypeVar("_Event")


@dataclass(frozen=True)
class Deliveries(Generic[_Event]):
    """Events of one kind in this order: `sent` with repeats, some `retracted`, some of those `resent` as new events.

    Equal events are the same event. Each one's `as_event` has its attributes, named as declared.
    """

    sent: Sequence[_Event] = ()
    retracted: Sequence[_Event] = ()
    resent: Sequence[_Event] = ()

    def __len__(self) -> int:
        return len(self.sent) + len(self.retracted) + len(self.resent)

    def remaining(self) -> frozenset[_Event]:
        """The distinct events that exist in the end."""
        return (frozenset(self.sent) - frozenset(self.retracted)) | frozenset(self.resent)

    def responses(self) -> Counter[str]:
        """How many events the runtime must accept, reject as duplicates, and retract."""
        distinct = len(set(self.sent))
        return Counter(
            accepted=distinct + len(self.resent), duplicate=len(self.sent) - distinct, withdrawn=len(self.retracted)
        )


def with_duplicates(rng: random.Random, events: Sequence[_Event], share: float) -> list[_Event]:
    """Insert copies of `share` of the distinct events at random positions, also before the original.

    >>> sorted(with_duplicates(random.Random(1), "abcd", 0.25)) in [list("aabcd"), list("abbcd"), list("abccd"),
    ...     list("abcdd")]
    True
    """
    distinct = list(dict.fromkeys(events))
    copies = rng.sample(distinct, k=round(share * len(distinct)))
    total = len(events) + len(copies)
    positions = set(rng.sample(range(total), k=len(copies)))
    originals, repeats = iter(events), iter(copies)
    return [next(repeats) if position in positions else next(originals) for position in range(total)]
