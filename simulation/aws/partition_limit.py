"""The partition's limit: units per second of a partition key, of an item, and of a partition key of an index."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

WRITES: Final = 1000.0
READS: Final = 3000.0

PARTITION_LIMIT: Final = Rule(
    "a partition takes 1,000 write units and 3,000 read units per second",
    "By default, every partition in a DynamoDB table is designed to deliver a maximum capacity of 3,000 read units per "
    "second and 1,000 write units per second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
    switch="simulation.queue.throttles.Limits(writes)",
    guard="contention is not waited out",
)
