"""The known designs, one per file, each rewritten faithfully after its source."""

from __future__ import annotations

from typing import Final

from benchmarks.designs.checkpoint import Checkpoint
from benchmarks.designs.coalescing import Coalescing
from benchmarks.designs.hour_minute import HourMinute
from benchmarks.designs.naive import Naive
from benchmarks.designs.ours import Ours
from benchmarks.designs.packed import PackedEvents
from benchmarks.designs.powertools import Powertools
from benchmarks.designs.put_then_increment import PutThenIncrement
from benchmarks.designs.transaction import TransactionalMarker

DESIGNS: Final = (
    Naive,
    TransactionalMarker,
    PutThenIncrement,
    Powertools,
    HourMinute,
    Coalescing,
    Checkpoint,
    Ours,
    PackedEvents,
)
