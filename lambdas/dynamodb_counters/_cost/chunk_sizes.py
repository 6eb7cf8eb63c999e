"""How large chunks of packed events are: what events take once compressed, by how many lie together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Final

from dynamodb_counters._items.chunks import Row, encode_chunk
from dynamodb_counters._items.item_sizes import WRITE_UNIT_BYTES, write_units

CHUNK_BYTES: Final = 100
"""A chunk without its events: keys, type, TTL."""

# Events of a real access log (docs/cost.md): bytes per chunk of n events, in bytes of one event as an item.
_RATIO: Final = 0.49
_EXPONENT: Final = 0.76
_SPREAD: Final = 0.1

_BATCH_ID: Final = "x3Fq_9aZ"
_MOST_MEASURED: Final = 50
"""Chunks of each size."""


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Bytes that so many events take together: `points` of (events, bytes, relative deviation), fewest first."""

    points: tuple[tuple[float, float, float], ...]

    @classmethod
    def assumed(cls, event_bytes: float) -> ChunkSizes:
        """Events that compress like those of an access log."""
        sizes = ((events, min(1.0, _RATIO * events ** (_EXPONENT - 1)) * events * event_bytes) for events in (1, 4096))
        return cls(tuple((float(events), size, _SPREAD) for events, size in sizes))

    @classmethod
    def measured(cls, rows: Sequence[Row]) -> ChunkSizes:
        """Encode chunks of 1, 2, 4 … of these events, in their order; the first attribute is that of the key."""
        found = []
        for power in range(len(rows).bit_length()):
            events = 2**power
            starts = range(0, len(rows) - events + 1, events)
            # From all parts of the sample.
            starts = starts[:: max(1, len(starts) // _MOST_MEASURED)]
            # Writers lay events of one key side by side.
            alike = [
                sorted(rows[start : start + events], key=lambda row: str(next(iter(row.values.values()), "")))
                for start in starts
            ]
            sizes = [len(encode_chunk(part, _BATCH_ID)) for part in alike]
            found.append((float(events), fmean(sizes), pstdev(sizes) / fmean(sizes)))
        return cls(tuple(found))

    def content(self, events: float) -> float:
        """Bytes of so many events: between two points by the power law through them."""
        (few, least, _), (many, most, _) = self._around(events)
        if few == many:
            return least * events / few
        exponent = math.log(most / least) / math.log(many / few)
        return least * math.pow(events / few, exponent)

    def deviation(self, events: float) -> float:
        (few, _, low), (many, _, high) = self._around(events)
        return low if events - few < many - events else high

    def units(self, events: float) -> float:
        """Expected write units of a chunk: sizes vary, and a unit begins with every KB.

        >>> ChunkSizes(((1, 9.24, 0.1),)).units(100), ChunkSizes(((1, 4.0, 0.1),)).units(100)
        (1.5, 1.0)
        """
        size = CHUNK_BYTES + self.content(events)
        width = max(1.0, math.sqrt(3) * self.deviation(events) * size)
        low, high = size - width, size + width
        boundaries = range(max(1, math.ceil(low / WRITE_UNIT_BYTES)), math.floor(high / WRITE_UNIT_BYTES) + 1)
        return write_units(low) + sum((high - each * WRITE_UNIT_BYTES) / (high - low) for each in boundaries)

    def events_within(self, size: float) -> float:
        """How many events fill a chunk of that size."""
        low, high = 1.0, 1e6
        while high - low > 0.5:  # noqa: PLR2004 - half an event
            middle = (low + high) / 2
            low, high = (middle, high) if CHUNK_BYTES + self.content(middle) <= size else (low, middle)
        return low

    def _around(self, events: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        place = min(max(1, bisect_left(self.points, (events,))), len(self.points) - 1)
        return self.points[place - 1], self.points[place]
