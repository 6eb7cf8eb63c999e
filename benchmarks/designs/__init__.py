"""The known designs, and our own."""

from __future__ import annotations

from typing import Final

from benchmarks.designs import known
from benchmarks.designs.ours import Ours, PackedEvents

DESIGNS: Final = (
    known.Naive,
    known.TransactionalMarker,
    known.PutThenIncrement,
    known.Powertools,
    known.HourMinute,
    known.Coalescing,
    known.Checkpoint,
    Ours,
    PackedEvents,
)
