"""Stream labels: a stream that is disabled and enabled again is another one, with other shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation.aws.rule import Rule
from simulation.metered_table import MeteredTable
from simulation.recorded_stream import RecordedStream

LABELS_CHANGE: Final = Rule(
    "each stream of a table has a label of its own",
    "However, the combination of the following three elements is guaranteed to be unique: the AWS customer ID, the "
    "table name, the StreamLabel.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Stream.html",
    switch="simulation.recorded_stream.RecordedStream(label)",
    harmless="its shards have ids of their own, and so checkpoints and watermarks",
)


def renewed(table: MeteredTable, clock: Callable[[], float], label: str, seed: int) -> RecordedStream:
    """Enable a table's stream again; return the one before, which can be read for another day."""
    before = table.stream
    table.stream = table.tables[table.name].stream = RecordedStream(seed, 1, clock, table.name, label)
    return before
