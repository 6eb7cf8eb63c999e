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


@dataclass(frozen=True, slots=True)
class Counted:
    """An aggregate, or a window if it has `tiers`: groups, and how much more events the first have than the last.

    `scattered`: all shards feed each group. Otherwise one does, as where groups are the events' partition keys. Each of
    `write_shards` items of a group, or of a leaderboard's partition keys if it is ranked, has a part of them.
    """

    groups: int
    skew: float = 0.0
    ranked: bool = False
    tiers: tuple[Tier, ...] = ()
    scattered: bool = True
    write_shards: int = 1

    def feeding(self, shards: int) -> float:
        """Shards that feed an item, of so many: the item that has most, as a hash spreads them."""
        if not self.scattered:
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
        size = base + WATERMARK_BYTES * kept
        number += updates
        writes += updates * write_units(size)
        pruning += updates * _prunes(base, kept, feeding, touches, seconds) * write_units(size)
        looks |= kept >= _LEAST_PRUNED and write_units(size + _SPARE_BYTES) > write_units(base)
    return Updates(number, writes, pruning, INDEX_UNITS * groups if counted.ranked else 0.0, looks)


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
