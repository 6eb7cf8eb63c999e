"""Warm throughput: units per second that a whole table takes at once."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

NEW_TABLE_WRITES: Final = 4000.0

WARM_THROUGHPUT: Final = Rule(
    "a new table on demand takes 4,000 write units per second",
    "A new on-demand table starts with a warm throughput of 12,000 read units per second and 4,000 write units per "
    "second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html",
    switch="simulation.queue.throttles.Limits(table_writes)",
    guard="contention is not waited out",
)
