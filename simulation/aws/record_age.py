"""Record age: retries without end, until a record is older than the mapping's maximum, or than the stream keeps it."""

from __future__ import annotations

from typing import Final

from simulation.aws.rule import Rule
from simulation.memory.memory_stream import Record

_PARAMETERS: Final = "https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html"

OLD_RECORDS_ARE_GIVEN_UP: Final = Rule(
    "Lambda gives up on records beyond the maximum age",
    "Discard records older than the specified age.",
    _PARAMETERS,
    switch="simulation.delivery.event_source_mapping.Settings(max_age_seconds)",
    guard="a repair does not outlive invocations whose batch was given up",
)

RETRIES_HAVE_NO_END: Final = Rule(
    "Lambda retries until a record expires",
    "When set to infinite (-1), failed records are retried until the record expires.",
    _PARAMETERS,
    switch="simulation.delivery.event_source_mapping.EventSourceMapping.fail",
    guard="failed writes are passed over",
)

RECORDS_VANISH: Final = Rule(
    "a stream keeps records for 24 hours",
    "Stream records whose age exceeds this limit are subject to removal (trimming) from the stream.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html",
    switch="simulation.delivery.event_source_mapping.Settings(retention_seconds)",
    guard="a table whose stream is older than what it shows is said to be whole",
)


def older(records: list[Record], than: float) -> list[Record]:
    """The first records of a batch, up to the last one of that age."""
    return records[: sum(record["dynamodb"]["ApproximateCreationDateTime"] <= than for record in records)]
