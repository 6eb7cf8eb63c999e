"""Pollers of a queue: how many invocations Lambda runs at a time while messages wait."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

_FIRST: Final = 5
_MORE_PER_SECOND: Final = 300 / 60

MOST_INVOCATIONS: Final = 1250

POLLERS_SCALE: Final = Rule(
    "a queue has more and more invocations while messages wait",
    "If messages are still available, Lambda increases the number of processes that are reading batches by up to 300 "
    "more concurrent invokes per minute. The maximum number of invokes that an event source mapping can process "
    "simultaneously is 1,250.",
    "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html",
    switch="simulation.queue.sqs.Poller(max_concurrency)",
    harmless="an event is put on condition that it is not there, however many invocations do so at a time",
)


def invocations(busy_seconds: float) -> int:
    """How many may run at a time, once messages have waited for so long."""
    return min(int(_FIRST + _MORE_PER_SECOND * busy_seconds), MOST_INVOCATIONS)
