"""Functions: CPU time as measured, waiting as assumed, and how often they run.

CPU times are those of `benchmarks/function_cpu.py`, measured on 2026-11-26 with botocore but without network. The run
of docs/benchmarks.md took 0.6 to 0.9 times as long; how long Lambda's take was not measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

PARALLEL_REQUESTS: Final = 16
ROUND_TRIP: Final = 0.006
"""Seconds of a request to DynamoDB."""

INVOCATION: Final = 0.02
"""Seconds of an invocation apart from its work."""

CPU_PER_RECORD: Final = 6e-6
CPU_PER_UPDATE: Final = 0.42e-3
CPU_PER_PACKED_EVENT: Final = 1.5e-6
CPU_ACCEPTED: Final = 41e-6
CPU_ACCEPTED_PACKED: Final = 27e-6
CPU_PER_MESSAGE: Final = 22e-6
"""Seconds per message of the queue, which may hold many events."""

CPU_RECEIVED: Final = 0.6e-3
"""Seconds per request with one event."""

CPU_RECEIVED_MORE: Final = 16e-6
"""Seconds per further event in it."""

MEMORY_GB: Final = 1.0
GB_PER_CPU: Final = 1769 / 1024
"""A function has a whole CPU at this memory size, and less in proportion: a second of CPU costs the same at any size.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""

LOG_BYTES: Final = 1_200
"""Bytes that an invocation logs."""


@dataclass(frozen=True, slots=True)
class Function:
    """How often a function runs per second, and what a run takes: seconds of CPU, and rounds of requests."""

    runs: float
    cpu: float
    rounds: float

    @property
    def seconds(self) -> float:
        return self.cpu * GB_PER_CPU / MEMORY_GB + INVOCATION + self.rounds * ROUND_TRIP

    @property
    def gb_seconds(self) -> float:
        """Per second."""
        return self.runs * self.seconds * MEMORY_GB


def rounds(requests: float) -> float:
    """Rounds of requests, so many at a time.

    >>> rounds(0), rounds(20)
    (0, 2)
    """
    return math.ceil(requests / PARALLEL_REQUESTS)


def counting(events: float, updates: float, runs: float = 1.0, *, packed: bool) -> Function:
    """The aggregator, whose batches hold so many events and update so many items."""
    per_record = CPU_PER_PACKED_EVENT if packed else CPU_PER_RECORD
    return Function(runs, events * per_record + updates * (CPU_PER_UPDATE + CPU_PER_RECORD), rounds(updates))
