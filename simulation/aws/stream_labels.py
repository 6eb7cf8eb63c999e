"""Stream labels: a stream that is disabled and enabled again is another one, with other shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from dynamodb_counters.testing._dynamodb.memory_stream import MemoryStream
from simulation.aws.rule import Rule

LABELS_CHANGE: Final = Rule(
    "each stream of a table has a label of its own",
    "However, the combination of the following three elements is guaranteed to be unique: the AWS customer ID, the "
    "table name, the StreamLabel.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Stream.html",
    switch="dynamodb_counters.testing._dynamodb.memory_stream.MemoryStream(label)",
    guard="a copy takes its own batches for the original's",
)


def renewed(table: MemoryTable, clock: Callable[[], float], label: str, seed: int) -> MemoryStream:
    """Enable a table's stream again; return the one before, which can be read for another day."""
    before = table.stream
    table.stream = table.tables[table.name].stream = MemoryStream(seed, 1, clock, table.name, label)
    return before
