"""Put declarations in force as soon as they are deployed."""

from __future__ import annotations

import time
from typing import Any, Final

from dynamodb_counters._assumptions import FRESH, SKEW
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._dev.deployed import Function
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY

_INVOCATION_SECONDS: Final = 60.0
# On AWS a deployment holds for what is created some minutes later: clocks differ, and functions of the one before may
# be running. Here are one clock and one function, which the deployment has replaced.
_BEHIND: Final = _INVOCATION_SECONDS + FRESH + SKEW


def take_over(function: Function, client: Any) -> str:
    """Do what the function does on its first invocation, without the delay; return what it says of it, if anything.

    Returns once the declarations hold: an era begins with the next whole second.
    """
    variables = function.variables
    table = Table(function.table, client, clock=lambda: time.time() - _BEHIND)
    aggregator = Aggregator(
        table,
        function.declarations,
        quarantine_retention_seconds=float(variables["QUARANTINE_RETENTION_DAYS"]) * DAY,
        source_table=variables.get("SOURCE_TABLE_ARN"),
        single_shard=True,
        name=variables.get("AGGREGATOR", ""),
    )
    told = aggregator.handle({}, lambda: _INVOCATION_SECONDS).takeover
    if told:
        time.sleep(-time.time() % 1)
    return told
