"""What requests cost: units by DynamoDB's documented rule, calls, and which item and partition key took them."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

DOLLARS_A_MILLION_WRITES: Final = 0.625
DOLLARS_A_MILLION_READS: Final = 0.125
"""On demand, us-east-1: https://aws.amazon.com/dynamodb/pricing/on-demand/"""

UNITS_A_SECOND: Final = 1000.0
"""Write units a second that a partition, and so an item, can take."""

READ_UNITS_A_SECOND: Final = 3000.0

Key = tuple[str, ...]
"""Table name and the values of the key."""


@dataclass(slots=True)
class Usage:
    """What has been consumed.

    Parameters
    ----------
    calls : int
        Requests, also refused ones.
    writes, reads : float
        Write and read units.
    items, partitions : Counter
        Write units by item and by partition key.
    """

    calls: int = 0
    writes: float = 0.0
    reads: float = 0.0
    items: Counter[Key] = field(default_factory=Counter)
    partitions: Counter[Key] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def call(self) -> None:
        """Note a request."""
        with self._lock:
            self.calls += 1

    def write(self, key: Key, units: float) -> None:
        """Note a write."""
        with self._lock:
            self.writes += units
            self.items[key] += units  # type: ignore[assignment]  # typeshed wants whole counts
            self.partitions[key[:2]] += units  # type: ignore[assignment]

    def read(self, units: float) -> None:
        """Note a read."""
        with self._lock:
            self.reads += units


def dollars_a_million(writes: float, reads: float) -> float:
    """Price a million of something.

    Parameters
    ----------
    writes, reads : float
        Units that one of it takes.

    Returns
    -------
    float
        US dollars. Storage, Lambda and queues are not in it; Lambda's reads of a stream are free.

    Examples
    --------
    >>> dollars_a_million(4, 0)
    2.5
    """
    return writes * DOLLARS_A_MILLION_WRITES + reads * DOLLARS_A_MILLION_READS
