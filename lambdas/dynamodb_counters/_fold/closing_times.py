"""When a group with a retention closes: read from its key and judged by a record's creation time alone. Pure.

The fold drops what was created later, so every delivery of a record is judged alike. The group's item is deleted when
no delivery can count in it any more: one that came after would count a member a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from dynamodb_counters._declarations import Declaration, Window
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._timeline.tiers import BY_LETTER, TOTAL, Tier


def closing_times(fields: Sequence[str], retention: timedelta) -> Callable[[Sequence[Any]], float]:
    """A function that returns the epoch second from which on nothing counts in a group any more.

    >>> closing_times(("url", "at:day"), timedelta(days=1))(("/", "1970-01-01")) / 86_400
    2.0
    """
    [(index, tier)] = [(index, tier) for index, field in enumerate(fields) if (tier := tier_of(field)) is not None]
    seconds = retention.total_seconds()
    return lambda group: _end(tier, group[index]) + seconds


def late_parts(declaration: Declaration, group: Sequence[Any], created: float) -> frozenset[str]:
    """Events counted in a bucket of a window that would be late by now: its finest buckets decide."""
    if not isinstance(declaration, Window) or declaration.retention is None:
        return frozenset()
    finest, keep = declaration._kept_tiers[0], declaration.retention.total_seconds()
    tier = BY_LETTER[group[-2]]
    start = tier.start(group[-1])
    moments = {slot: start + index * tier.slot_seconds for index, slot in enumerate(tier.slots)}
    late = frozenset(slot for slot, moment in moments.items() if finest.end(finest.locate(moment)[0]) + keep <= created)
    return late | {TOTAL} if late else late


@lru_cache(maxsize=4096)
def _end(tier: Tier, text: str) -> int:
    return tier.end(tier.parse(text))
