"""Cost of one update of a counted item, by its size: its watermarks grow with the shards that feed it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dynamodb_counters._cost.batches import SHARD_LIFETIME, Batches, touched_by_rank
from dynamodb_counters._items.item_sizes import WRITE_UNIT_BYTES, write_units
from dynamodb_counters._timeline.tiers import Tier

GROUP_BYTES: Final = 90
"""A group without watermarks: keys, type, one measure."""

_PAGE_BYTES: Final = 55
"""A page without groups and watermarks."""

BUCKET_BYTES: Final = 100
SLOT_BYTES: Final = 6
WATERMARK_BYTES: Final = 25

GUARD_SECONDS: Final = 40 * 60.0
"""How long an item keeps a watermark that its shard does not move again: until the shard's checkpoint has moved and
settled, and a process has looked. As measured at 64 and 256 partitions (`benchmarks/partitions.py`)."""

INDEX_UNITS: Final = 2.0
"""A ranked group's new score deletes an entry of the index and puts another."""

_SPARE_BYTES: Final = 64
"""Items are pruned when they come so close to their next unit."""

_LEAST_PRUNED: Final = 8

_MANY: Final = 16
"""Groups of a page in an update, on average, from which on it splits at 4 units: one of 8 or fewer splits it at 1."""


@dataclass(frozen=True, slots=True)
class Counted:
    """An aggregate, or a window if it has `tiers`: groups, and how much more events the first have than the last.

    `scattered`: all shards feed each group. Otherwise one does, as where groups are the events' partition keys. Each of
    `write_shards` items of a group, or of a leaderboard's partition keys if it is ranked, has a part of them. In
    `pages`, where a group takes `group_bytes`, all shards feed each page.
    """

    groups: int
    skew: float = 0.0
    ranked: bool = False
    tiers: tuple[Tier, ...] = ()
    scattered: bool = True
    write_shards: int = 1
    pages: bool = False
    group_bytes: float = 30.0

    def feeding(self, shards: int) -> float:
        """Shards that feed an item, of so many: the item that has most, as a hash spreads them."""
        if not self.scattered and not self.pages:
            return 1
        spread = 1 if self.ranked or self.tiers else self.write_shards
        return min(shards, shards / spread + math.sqrt(2 * shards / spread * math.log(spread)))


@dataclass(frozen=True, slots=True)
class Updates:
    """Writes of a batch: updates, write units of these, of pruning, of the index; and if watermarks need reads."""

    number: float
    writes: float
    pruning: float
    index: float
    looks: bool


def watermarks_kept(feeding: float, touches: float, seconds: float = math.inf) -> float:
    """The watermarks of an item that so many shards feed, touched so often per second for at most `seconds`."""
    guard = min(GUARD_SECONDS, seconds)
    alive = feeding * (1 + guard / SHARD_LIFETIME)
    return alive * -math.expm1(-touches * guard / alive)


def updates_of(counted: Counted, batches: Batches, shards: int) -> Updates:
    """Writes of one batch of a shard, for one aggregate or window."""
    own = counted.groups if counted.scattered else math.ceil(counted.groups / shards)
    groups = touched_by_rank(own, counted.skew, batches.events)
    feeding = counted.feeding(shards)
    # Touches of one item, per second.
    of_group = groups * (shards if not counted.scattered else feeding) / counted.groups
    touches = of_group / batches.seconds if batches.seconds else math.inf
    number = writes = pruning = 0.0
    looks = False
    for tier in counted.tiers or (None,):
        updates = groups if tier is None else groups * _buckets(tier, batches, groups)
        seconds = math.inf if tier is None else tier.seconds
        base = GROUP_BYTES if tier is None else BUCKET_BYTES + SLOT_BYTES * len(tier.slots) / 2
        kept = watermarks_kept(feeding, touches, seconds)
        fullest = 0.0
        if counted.pages:
            updates, base, kept, touches, fullest = _in_pages(counted, groups, feeding, batches)
        size = base + WATERMARK_BYTES * kept
        # Sizes of pages lie on both sides of their mean.
        units = max(1.0, min(size / WRITE_UNIT_BYTES + 0.5, fullest)) if fullest else write_units(size)
        number += updates
        writes += updates * units
        pruning += updates * _prunes(base, kept, feeding, touches, seconds) * units
        looks |= kept >= _LEAST_PRUNED and write_units(size + _SPARE_BYTES) > write_units(base)
    return Updates(number, writes, pruning, INDEX_UNITS * groups if counted.ranked else 0.0, looks)


def _in_pages(counted: Counted, groups: float, feeding: float, batches: Batches) -> tuple[float, ...]:
    """Pages that a batch touches, and of each: bytes without watermarks, these, touches per second, units at most."""
    kept = watermarks_kept(feeding, math.inf)
    for most in (4, 1, 1):
        common = _PAGE_BYTES + WATERMARK_BYTES * kept
        room = max(WRITE_UNIT_BYTES * most - common, WRITE_UNIT_BYTES / 2)
        fit, pages = max(1.0, room // counted.group_bytes), 1.0
        for of in (2**level for level in range(counted.groups.bit_length())):
            # Each of so many has split if hashes give it more groups than fit.
            held = counted.groups / of
            pages += of / 2 * math.erfc((fit + 0.5 - held) / (math.sqrt(2 * held * (1 - 1 / of)) or 1e-9))
        held = counted.groups / pages
        number = pages * (1 - (1 - groups / counted.groups) ** held)
        touches = number * feeding / pages / batches.seconds if batches.seconds else math.inf
        kept = watermarks_kept(feeding, touches)
        if groups / number >= _MANY:
            break
    fullest = max(most, write_units(common + WRITE_UNIT_BYTES / 2))
    return number, _PAGE_BYTES + held * counted.group_bytes, kept, touches, fullest


def _buckets(tier: Tier, batches: Batches, groups: float) -> float:
    """Into how many buckets the events of a group fall: more than one if the batch lies across a boundary."""
    each = max(1.0, batches.events / groups)
    return 1 + batches.seconds * (each - 1) / (each + 1) / tier.seconds


def _prunes(base: float, kept: float, feeding: float, touches: float, seconds: float) -> float:
    """How often an update is followed by one that prunes: once per so many new watermarks as the item has room for."""
    if math.isinf(touches) or feeding * seconds / SHARD_LIFETIME < _LEAST_PRUNED:
        return 0.0
    per_life = touches * SHARD_LIFETIME / feeding
    new = -math.expm1(-per_life) / per_life
    # The room between what cannot be pruned and the next unit.
    used = base + WATERMARK_BYTES * kept + _SPARE_BYTES
    room = (WRITE_UNIT_BYTES - used % WRITE_UNIT_BYTES) / WATERMARK_BYTES
    return new / max(_LEAST_PRUNED, room)
