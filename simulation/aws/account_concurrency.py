"""The account's concurrent executions, which all functions of a Region share."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

DEFAULT: Final = 1000

ACCOUNT_CONCURRENCY: Final = Rule(
    "an account has 1,000 concurrent executions, a new one fewer",
    "New AWS accounts have reduced concurrency and memory quotas.",
    "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
    switch="simulation.capacity.World(concurrency)",
    harmless="records that no execution is free for wait in the stream and in the queue, and come in larger batches",
)
