"""Wiring of a run: the parts that it needs, looked up from its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from dynamodb_counters._assumptions import KNOWN_AT_ONCE, ONE_CLOCK
from dynamodb_counters._backfill.runner import Runner
from dynamodb_counters._backfill.service_time import ServiceTime
from dynamodb_counters._backfill.shards import stream_shards
from dynamodb_counters._backfill.source_table import SourceTable
from dynamodb_counters._control.control import read_control
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

EMULATOR_HEADER: Final = "x-counters-dev"
"""In each answer of an emulator that alone runs what counts its tables; AWS sends none."""

Kind = TypeVar("Kind", bound=Runner)


def make_runner(
    kind: type[Kind], table: Table, streams: Any, *, now: Callable[[], float] | None = None, **options: Any
) -> Kind:
    """Make what works on a run; `streams` is a client of DynamoDB Streams, `now` DynamoDB's time if not its own."""
    described: Any = table.client.describe_table(TableName=table.name)
    stream = described["Table"].get("LatestStreamArn")
    if not stream:
        raise BackfillError(f"the table {table.name!r} has no stream")
    if EMULATOR_HEADER in described.get("ResponseMetadata", {}).get("HTTPHeaders", {}):
        options |= {"clocks": ONE_CLOCK, "open_after": KNOWN_AT_ONCE}
    arn = read_control(table).source
    return kind(
        table=table,
        shards=lambda: stream_shards(streams, stream),
        now=now or ServiceTime(table),
        source=SourceTable.described(table.client, streams, arn) if arn else None,
        **options,
    )
