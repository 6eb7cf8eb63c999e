"""Tests of your own code: counters in memory, counted at once, with a clock that you move."""

from dynamodb_counters.testing._in_memory import (
    CountersInMemory,
    QuarantinedRecordsError,
    TestClock,
    counters_in_memory,
)

__all__ = ["CountersInMemory", "QuarantinedRecordsError", "TestClock", "counters_in_memory"]
