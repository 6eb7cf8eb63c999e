"""Back-pressure of an index: what its partition cannot take, the table refuses."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

INDEX_BACK_PRESSURE: Final = Rule(
    "an index that is throttled throttles the writes of its table",
    "If a GSI doesn't have sufficient capacity to handle these updates, DynamoDB throttles writes to the base table to "
    "maintain data consistency.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/gsi-throttling.html",
    switch="simulation.queue.throttles.Limits(index_writes)",
    guard="contention is not waited out",
)
