"""Splits for heat: a busy partition key is spread over partitions by its sort keys, and an item is not."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule

HEAT_SPLITS: Final = Rule(
    "a busy partition is split, down to an item",
    "If your application drives consistently high traffic to a single item, adaptive capacity might rebalance your "
    "data so that a partition contains only that single, frequently accessed item.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html",
    switch="simulation.queue.throttles.Limits(splits_after)",
    harmless="a split admits more, and is not counted on: how soon one comes, AWS does not say",
)
