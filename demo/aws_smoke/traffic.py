"""The events that are sent, and what must be counted: computed from the events alone."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from demo.blog.traffic import View
from demo.sending.deliveries import Attributes, Deliveries, with_duplicates

_PAGES = 40
_SHARE = 0.2


@dataclass(frozen=True)
class Traffic:
    """Views in the order they are sent, some more than once."""

    sent: tuple[Attributes, ...]

    @classmethod
    def generate(cls, seed: int, count: int, end: datetime) -> Traffic:
        """Make `count` views of the hour before `end`, duplicates included."""
        rng = random.Random(seed)
        distinct = round(count / (1 + _SHARE))
        views = [
            View(
                f"/smoke/{rng.randrange(_PAGES)}",
                (end - timedelta(seconds=rng.randrange(60, 3600))).astimezone(UTC).isoformat(timespec="seconds"),
                f"client-{number}",
            ).as_event()
            for number in range(distinct)
        ]
        return cls(tuple(with_duplicates(rng, views, (count - distinct) / distinct)))

    @property
    def by_url(self) -> Counter[str]:
        return Counter(view["url"] for view in Deliveries(self.sent).remaining())
