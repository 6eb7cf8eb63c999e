"""Streams and their mappings: labels, times, readers, the age of records, bisected batches, tumbling windows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from simulation.aws.rule import Rule
from simulation.memory.memory_stream import Page, Record

_MOST_SECONDS_OFF: Final = 1.0

LABELS_CHANGE: Final = Rule(
    "each stream of a table has a label of its own",
    "However, the combination of the following three elements is guaranteed to be unique: the AWS customer ID, the "
    "table name, the StreamLabel.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Stream.html",
    switch="simulation.recorded_stream.RecordedStream(label)",
    harmless="its shards have ids of their own, and so checkpoints and watermarks",
)

TIMES_ARE_APPROXIMATE: Final = Rule(
    "times of creation are approximate, in whole seconds",
    "The approximate date and time when the stream record was created, in UNIX epoch time format and rounded down to "
    "the closest second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html",
    switch="simulation.recorded_stream.RecordedStream.disorder",
    guard="each delivery has a cut of its own",
)


def disorder(rng: random.Random) -> Callable[[], float]:
    """By how many seconds the time of each record is wrong."""
    return lambda: rng.uniform(-_MOST_SECONDS_OFF, _MOST_SECONDS_OFF)


SHARDS_HAVE_TWO_READERS: Final = Rule(
    "a shard has two readers at most",
    "No more than two processes at most should be reading from the same stream's shard at the same time. Having more "
    "than two readers per shard can result in throttling.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html",
    guard="a stream may have a third reader",
)

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


STATE_IS_RETURNED: Final = Rule(
    "an invocation of a tumbling window returns its state",
    "If the response does not contain a state property, Lambda considers this a failed invocation.",
    "https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html",
    switch="simulation.delivery.event_source_mapping.Settings(window_seconds)",
    guard="an invocation of a window returns no state",
)


class TumblingWindow:
    """The window one shard is in, its envelope and the state carried on; a length of 0 seconds is no windows at all."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._start: int | None = None
        self._state: dict[str, Any] = {}

    def same(self, records: list[Record]) -> list[Record]:
        """The first records, up to the end of the window that the first one is in."""
        if not self._seconds or not records:
            return records
        first = self._of(records[0])
        return records[: next((index for index, record in enumerate(records) if self._of(record) > first), None)]

    def admit(self, records: list[Record]) -> list[Record]:
        """Open a window for records of one window; none of them while an earlier one has to be ended first."""
        if not self._seconds or not records:
            return records
        begins = self._of(records[0])
        if self._start is None:
            self._start = begins
        return records if begins <= self._start else []

    def is_over(self, now: float, page: Page) -> bool:
        """Whether the last invocation of an open window is due, given what was read."""
        if self._start is None:
            return False
        return bool(page.records) or page.ended or now >= self._start + self._seconds

    def envelope(self, *, final: bool) -> dict[str, Any]:
        """Lambda's additions to the event: window, state and flags."""
        assert self._start is not None
        return {
            "window": {"start": _iso(self._start), "end": _iso(self._start + self._seconds)},
            "state": self._state,
            "isFinalInvokeForWindow": final,
            "isWindowTerminatedEarly": False,
        }

    def keep(self, state: dict[str, Any], *, final: bool) -> None:
        """Keep the state a function returned for the window's next invocation, if there is one."""
        self._state = json.loads(json.dumps(state)) if state else {}
        if final:
            self.close()

    def close(self) -> None:
        self._start, self._state = None, {}

    def _of(self, record: Record) -> int:
        created = int(record["dynamodb"]["ApproximateCreationDateTime"])
        return created - created % self._seconds


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
