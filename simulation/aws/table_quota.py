"""The table's quota: write units per second of a whole table, which AWS raises on request."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

WRITES: Final = 40_000.0

TABLE_QUOTA: Final = Rule(
    "a table has a quota of 40,000 write units per second",
    "40,000 read request units and 40,000 write request units (per table, on demand).",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
    switch="simulation.queue.throttles.Limits(table_writes)",
    guard="contention is not waited out",
)
