"""Counts batches that Lambda gave up on, from the on-failure bucket, each record once.

A batch is delivered to the aggregator as its shard's batch that it is. Watermarks hold what an earlier invocation has
counted of it: later records are in books of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.control import Control, read_control
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.origins import table_of
from dynamodb_counters._quarantine.quarantine import RETENTION
from dynamodb_counters._recovery.catch_up import deliver, has_caught_up
from dynamodb_counters._recovery.given_up import GivenUp, OnFailureBucket
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CountersError, GivenUpError


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
    left: int = 0
    """Records of a table that this one was restored from, but not in the copy, or perhaps not."""


def redrive_bucket(
    table: Table,
    bucket: OnFailureBucket,
    *,
    declarations: tuple[Declaration, ...] | None = None,
    keep: bool = False,
    dry_run: bool = False,
) -> Iterator[RedrivenBatch]:
    """Count each object and delete it, unless it is to be kept (`keep`); a problem stops its shard, not the others."""
    # An object with records that were skipped, or are not of the copy, stays, and stops nothing: what can be counted of
    # it is.
    control = read_control(table)
    if control.predecessors and not has_caught_up(table, original := control.predecessors[-1].stream):
        # The copy is still to count what comes first.
        raise GivenUpError(
            f"the copy has not caught up with the original's stream: run `counters restore {original}` again"
        )
    aggregator = Aggregator(
        table,
        last_declarations(table, GivenUpError) if declarations is None else declarations,
        quarantine_retention_seconds=RETENTION,
        source_table=control.source or None,
        takes_over=False,
    )
    aggregator.handle({})  # Refuses declarations other than the last deployment's.
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
        if (problem := _unknown(batch.stream, table.name, control)) is None:
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
            redriven = _redrive(aggregator, table, control, bucket, key, keep=keep, dry_run=dry_run)
            yield redriven
            # Nothing may overtake what may be counted later.
            stopped_by = key if redriven.problem and not (redriven.skipped or redriven.left) else ""


def _redrive(
    aggregator: Aggregator,
    table: Table,
    control: Control,
    bucket: OnFailureBucket,
    key: str,
    *,
    keep: bool,
    dry_run: bool,
) -> RedrivenBatch:
    done = RedrivenBatch(key)
    problems = []
    try:
        whole = bucket.read(key)
        done = replace(done, records=len(whole.records))
        batch, left = _contained(whole, control)
        if left:
            done = replace(done, left=left)
            problems.append(
                f"{left:,} of them stay: created after the copy was made, or too near it; their writers send them "
                "again, so delete the object once the original needs it no more"
            )
        if batch.records and not dry_run:
            report = deliver(aggregator, table, batch.shard, batch.records, given_up=True)
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
        return replace(done, skipped=0, left=0, problem=f"{type(error).__name__}: {error}")
    return replace(done, problem="; ".join(problems) or None)


def _contained(batch: GivenUp, control: Control) -> tuple[GivenUp, int]:
    """The batch as far as this table contains it, and how many of its records are in doubt."""
    for predecessor in control.predecessors:
        if predecessor.is_of(batch.stream):
            contained, left = predecessor.sort(batch.records)
            return replace(batch, records=contained), left
    return batch, 0


def _unknown(stream: str, table_name: str, control: Control) -> str | None:
    """Why batches of a stream are not counted; None if they are."""
    # The table has a name or an ARN, the stream an ARN.
    is_own = table_of(stream).rpartition("/")[2] == table_name.rpartition("/")[2]
    is_copied = any(predecessor.is_of(stream) for predecessor in control.predecessors)
    if is_copied or is_own or table_of(stream) == control.source:
        return None
    known = [repr(table_name), *(repr(source) for source in [control.source] if source)]
    known += [f"{table_of(each.stream)!r} until it was copied" for each in control.predecessors]
    return (
        f"invalid stream={stream!r}: expected a stream of {' or '.join(known)}, which this table counts; if it was "
        "restored from that, run `counters restore` first"
    )
