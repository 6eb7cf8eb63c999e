"""Expiry by TTL: days late, and seen by reads until then."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

EXPIRY_IS_LATE: Final = Rule(
    "expired items stay for days",
    "DynamoDB typically deletes expired items within two days of expiration. Items that have expired and not been "
    "deleted will still show up in reads, queries, and scans.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html",
    switch="simulation.counters_in_memory.Faults(late_expiry)",
    guard="records after a group's retention count",
)
