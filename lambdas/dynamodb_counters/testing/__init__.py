"""Tests of your own code: counters in memory, counted at once, with a clock that you move."""

from dynamodb_counters.testing._in_memory import CountersInMemory, QuarantinedRecordsError, counters_in_memory
from dynamodb_counters.testing._test_clock import TestClock

__all__ = ["CountersInMemory", "QuarantinedRecordsError", "TestClock", "counters_in_memory"]
