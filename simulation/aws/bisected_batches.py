"""Bisected batches: a batch that failed comes again in two parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation.aws.rule import Rule
from simulation.memory.memory_stream import Record

BATCHES_ARE_BISECTED: Final = Rule(
    "a batch that failed is bisected",
    "If the function returns an error, split the batch in two and retry.",
    "https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html",
    switch="simulation.delivery.event_source_mapping.Settings(bisect)",
    guard="the condition looks at the last record, not the first",
)


def halves(batch: list[Record], cut: Callable[[int], int]) -> list[list[Record]]:
    """Parts of a batch, the later one first, split where `cut` says for its length; a single record is not split."""
    if len(batch) < 2:
        return [batch]
    middle = min(max(cut(len(batch)), 1), len(batch) - 1)
    return [batch[middle:], batch[:middle]]
