"""Counts what Lambda gave up on, from the on-failure bucket, each record once.

A batch is delivered to the aggregator as its shard's batch that it is. What an earlier invocation has counted of it is
told by watermarks: later records are in books of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._stream.batch import Aggregator, Report
from dynamodb_counters._stream.control import read_control
from dynamodb_counters._stream.deployments import last_declarations
from dynamodb_counters._stream.given_up import GivenUp, OnFailureBucket
from dynamodb_counters._stream.origins import table_of
from dynamodb_counters._stream.quarantine import RETENTION
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError, CountersError, GivenUpError

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class RedrivenBatch:
    """What became of an object of the on-failure bucket.

    Parameters
    ----------
    key : str
        The object's key.
    records : int
        How many records it holds.
    updated, quarantined : int
        Items updated, and images that went to quarantine because they cannot be counted.
    skipped : int
        Records that some item refused: Lambda gave up on them before the age of 23 hours, and later records of their
        shard were counted meanwhile. Nothing tells whether they were counted before.
    problem : str, optional
        Why it stays in the bucket. Default: it was counted, and the object is deleted.
    """

    key: str
    records: int = 0
    updated: int = 0
    quarantined: int = 0
    skipped: int = 0
    problem: str | None = None


def redrive_bucket(
    table: Table,
    bucket: OnFailureBucket,
    *,
    declarations: tuple[Declaration, ...] | None = None,
    keep: bool = False,
    dry_run: bool = False,
) -> Iterator[RedrivenBatch]:
    """Count each object and delete it, unless told to `keep` it; a problem stops its shard, not the others.

    An object with records that were skipped stays, and stops nothing: all that can be counted of it is.

    Declarations other than the table's last deployment are refused, with a `CheckpointError`.
    """
    source_table = read_control(table).source or None
    aggregator = Aggregator(
        table,
        last_declarations(table, GivenUpError) if declarations is None else declarations,
        quarantine_retention_seconds=RETENTION,
        source_table=source_table,
        takes_over=False,
    )
    aggregator.handle({})
    by_shard: dict[tuple[str, str], list[tuple[tuple[str, str], str]]] = {}
    for key in bucket.list_keys():
        try:
            batch = bucket.read(key)
        except GivenUpError as error:
            yield RedrivenBatch(key, problem=str(error))
            continue
        except ClientError as error:
            # What cannot be read now must not be overtaken by what follows it in its shard.
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            yield RedrivenBatch(key, problem=_told(error))
            continue
        if _is_of(batch.stream, table.name) or table_of(batch.stream) == source_table:
            by_shard.setdefault((table_of(batch.stream), batch.shard), []).append((batch.place, key))
    for batches in by_shard.values():
        # An item's watermark tells the last record only, so a shard's batches are counted in their order.
        for _, key in sorted(batches):
            redriven = _redrive(aggregator, table, bucket, key, keep=keep, dry_run=dry_run)
            yield redriven
            if redriven.problem is not None and not redriven.skipped:
                break


def _redrive(
    aggregator: Aggregator, table: Table, bucket: OnFailureBucket, key: str, *, keep: bool, dry_run: bool
) -> RedrivenBatch:
    records = updated = quarantined = skipped = 0
    problem = None
    try:
        batch = bucket.read(key)
        records = len(batch.records)
        if dry_run:
            return RedrivenBatch(key, records)
        report = _deliver(aggregator, table, batch)
        updated, quarantined = report.updated, report.quarantined
        skipped = report.overtaken if batch.is_early else 0
        if skipped:
            problem = (
                f"{skipped:,} of them skipped: Lambda gave up on them early, and later records of their shard were "
                "counted meanwhile; verify what they count, then delete the object"
            )
        elif not keep:
            bucket.delete(key)
    except (CountersError, ClientError, BotoCoreError, TimeoutError) as error:
        problem = _told(error)
    return RedrivenBatch(key, records, updated, quarantined, skipped, problem)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _deliver(aggregator: Aggregator, table: Table, batch: GivenUp) -> Report:
    failure = CommitError([])
    for _ in table.tries(_TRIES):
        try:
            return aggregator.handle({"shardId": batch.shard, "Records": list(batch.records)}, given_up=True)
        except CommitError as error:
            failure = error
    raise failure


def _is_of(stream: str, table_name: str) -> bool:
    """Whether a stream, by its ARN, is that of a table, by its name or ARN."""
    return table_of(stream).rpartition("/")[2] == table_name.rpartition("/")[2]
