"""Counts batches that Lambda gave up on, from the on-failure bucket, each record once.

A batch is delivered to the aggregator as its shard's batch that it is. Watermarks hold what an earlier invocation has
counted of it: later records are in books of their own.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import BOOK_OPEN_AFTER
from dynamodb_counters._commit.batch import Aggregator, Report
from dynamodb_counters._control.registry import Registry, read_registry
from dynamodb_counters._fold.records import NEW, OLD, Record, created_of, sequence_number, table_of
from dynamodb_counters._quarantine.quarantine import PREFIX, RETENTION
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError, CountersError, GivenUpError

_BEGINNING: Final = "1970-01-01T00:00:00Z"

_MOST_SECONDS: Final = 10**11
"""Most seconds of a time since 1970: longer than a calendar lasts."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A batch of a shard that Lambda gave up on."""

    shard: str
    stream: str
    records: tuple[Record, ...]
    at: float = 0.0
    """When Lambda gave up, in seconds since 1970; 0 if the object does not say."""

    @property
    def is_early(self) -> bool:
        """Whether later records may have been counted in its book, which another one begins after only at that age."""
        return self.at < created_of(self.records[0]) + BOOK_OPEN_AFTER

    @property
    def place(self) -> tuple[str, str]:
        """The first and the last sequence number: a shard's batches are counted in this order."""
        return sequence_number(self.records[0]), sequence_number(self.records[-1])


def read_given_up(body: str | bytes) -> GivenUp:
    """The batch an object holds; GivenUpError if it holds none."""
    try:
        document = json.loads(body)
        payload = document["payload"]
        records = (json.loads(payload) if isinstance(payload, str) else payload)["Records"]
        batch = document["DDBStreamBatchInfo"]
        at = datetime.fromisoformat(str(document.get("timestamp", _BEGINNING))).timestamp()
        return GivenUp(str(batch["shardId"]), str(batch["streamArn"]), _in_order(records), at)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise GivenUpError(f"not what Lambda writes of a batch of a DynamoDB stream ({type(error).__name__})") from None


def _in_order(records: Any) -> tuple[Record, ...]:
    """The records, if the aggregator can take them for a batch."""
    numbers = [sequence_number(record) for record in records]
    if not numbers or any(later <= number for number, later in pairwise(numbers)):
        raise ValueError("not ascending")
    if not all(0 <= record["dynamodb"]["ApproximateCreationDateTime"] < _MOST_SECONDS for record in records):
        raise ValueError("not a time")
    if not all(_is_image(record["dynamodb"].get(name, {})) for record in records for name in (NEW, OLD)):
        raise ValueError("not an image")
    return tuple(records)


def _is_image(image: Any) -> bool:
    return all(isinstance(value.get(kind, ""), str) for value in image.values() for kind in ("S", "N", "B"))


class OnFailureBucket:
    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    def list_keys(self) -> Iterator[str]:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=PREFIX):
            yield from (found["Key"] for found in page.get("Contents", ()))

    def read(self, key: str) -> GivenUp:
        return read_given_up(self._client.get_object(Bucket=self._name, Key=key)["Body"].read())

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=key)


@dataclass(frozen=True, slots=True)
class RedrivenBatch:
    """Outcome of an object of the on-failure bucket: items updated, and images quarantined."""

    key: str
    records: int = 0
    updated: int = 0
    quarantined: int = 0
    skipped: int = 0
    """Records that some item refused: Lambda gave up on them before the age of 23 hours, and later records of their
    shard were counted meanwhile. It is unknown whether they were counted before."""
    problem: str | None = None
    """Why it stays in the bucket; None if it was counted, and the object is deleted."""


def redrive_bucket(
    table: Table,
    bucket: OnFailureBucket,
    *,
    keep: bool = False,
    dry_run: bool = False,
) -> Iterator[RedrivenBatch]:
    """Count each object and delete it, unless it is to be kept (`keep`); a problem stops its shard, not the others."""
    # An object with records that were skipped stays, and stops nothing: what can be counted of it is.
    registry = read_registry(table)
    if not registry.is_founded:
        raise GivenUpError("nothing counts the table yet: deploy its aggregator, and wait for a batch")
    aggregator = Aggregator(
        table,
        registry.declarations,
        quarantine_retention_seconds=RETENTION,
        source_table=registry.source or None,
        registers=False,
    )
    described: Any = table.client.describe_table(TableName=table.name)["Table"]
    restored_as = described["LatestStreamArn"] if "RestoreSummary" in described else ""
    by_shard: dict[tuple[str, str], list[tuple[tuple[str, str], str]]] = {}
    for key in bucket.list_keys():
        try:
            batch = bucket.read(key)
        except (GivenUpError, ClientError) as error:
            # An object that cannot be read now must not be overtaken by what follows it in its shard.
            if isinstance(error, ClientError) and error.response["Error"]["Code"] != "NoSuchKey":
                raise
            yield RedrivenBatch(key, problem=str(error))
            continue
        if (problem := _unknown(batch.stream, table.name, registry, restored_as)) is None:
            by_shard.setdefault((table_of(batch.stream), batch.shard), []).append((batch.place, key))
        else:
            yield RedrivenBatch(key, len(batch.records), problem=problem)
    for batches in by_shard.values():
        stopped_by = ""
        # An item's watermark holds the last record only, so a shard's batches are counted in their order.
        for _, key in sorted(batches):
            if stopped_by:
                yield RedrivenBatch(key, problem=f"waits for {stopped_by}, an earlier batch of its shard")
                continue
            redriven = _redrive(aggregator, table, bucket, key, keep=keep, dry_run=dry_run)
            yield redriven
            # Nothing may overtake what may be counted later.
            stopped_by = key if redriven.problem and not redriven.skipped else ""


def _redrive(
    aggregator: Aggregator,
    table: Table,
    bucket: OnFailureBucket,
    key: str,
    *,
    keep: bool,
    dry_run: bool,
) -> RedrivenBatch:
    done = RedrivenBatch(key)
    problems = []
    try:
        batch = bucket.read(key)
        done = replace(done, records=len(batch.records))
        if not dry_run:
            report = _deliver(aggregator, table, batch)
            done = replace(done, updated=report.updated, quarantined=report.quarantined)
            if skipped := report.overtaken if batch.is_early else 0:
                done = replace(done, skipped=skipped)
                problems.append(
                    f"{skipped:,} of them skipped: Lambda gave up on them early, and later records of their shard "
                    "were counted meanwhile; verify what they count, then delete the object"
                )
        if not (problems or keep or dry_run):
            bucket.delete(key)
    except (CountersError, ClientError, BotoCoreError, TimeoutError) as error:
        return replace(done, skipped=0, problem=f"{type(error).__name__}: {error}")
    return replace(done, problem="; ".join(problems) or None)


def _deliver(aggregator: Aggregator, table: Table, batch: GivenUp) -> Report:
    """Have a batch counted, in as many tries as it takes."""
    failure = CommitError([])
    for _ in table.tries():
        try:
            return aggregator.handle({"shardId": batch.shard, "Records": list(batch.records)}, given_up=True)
        except CommitError as error:
            failure = error
    raise failure


def _unknown(stream: str, table_name: str, registry: Registry, restored_as: str = "") -> str | None:
    """Why batches of a stream are not counted, if the table was restored with another stream; None if they are."""
    # The table has a name or an ARN, the stream an ARN.
    is_own = table_of(stream).rpartition("/")[2] == table_name.rpartition("/")[2]
    if is_own and stream < restored_as:
        return (
            f"invalid stream={stream!r}: expected {restored_as!r}, since the table was restored: `counters repair` "
            "counts what it holds of the one before"
        )
    if is_own or table_of(stream) == registry.source:
        return None
    known = [repr(table_name), *(repr(source) for source in [registry.source] if source)]
    return f"invalid stream={stream!r}: expected a stream of {' or '.join(known)}, which this table counts"
