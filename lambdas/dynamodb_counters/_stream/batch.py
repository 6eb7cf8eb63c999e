"""One batch of the stream, end to end: drop what is counted, unwrap, fold, quarantine, commit, move the checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Record, padded
from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS
from dynamodb_counters._stream.checkpoint_items import GUARANTEE, LONGEST_INVOCATION, Checkpoint
from dynamodb_counters._stream.checkpoints import Checkpoints
from dynamodb_counters._stream.commit import RESERVE_SECONDS, Committer
from dynamodb_counters._stream.deployment import deployment_id
from dynamodb_counters._stream.doubtful import set_aside
from dynamodb_counters._stream.pruning import Pruner
from dynamodb_counters._stream.quarantine import Quarantine
from dynamodb_counters._stream.redrive import unwrap
from dynamodb_counters._stream.watermarks import Watermark
from dynamodb_counters._table import Table
from dynamodb_counters.errors import ShardUnknownError

_APPLIED_THROUGH: Final = "applied_through"
"""Of the tumbling window's state: the last record its invocations have committed."""

_ONLY_SHARD: Final = "only"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a batch."""

    records: int = 0
    updated: int = 0
    skipped: int = 0
    """Items that an earlier delivery had brought as far already."""
    quarantined: int = 0
    late: int = 0
    """Contributions dropped because the retention of their bucket is over."""
    write_units: float = 0.0
    redelivered: int = 0
    """Records at or below the shard's checkpoint."""
    checkpoint_lost: bool = False
    applied_through: str | None = None
    """The batch's last sequence number, if the batch touched items."""

    def state(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """What the function returns, and the tumbling window's next invocation is given."""
        moved = {} if self.applied_through is None else {_APPLIED_THROUGH: self.applied_through}
        return {**(event.get("state") or {}), **moved}


class Aggregator:
    """Keeps the aggregates of one table current.

    `single_shard` says that the stream has one shard, so that events need not name it (local emulators).
    """

    def __init__(
        self,
        table: Table,
        declarations: tuple[Declaration, ...],
        *,
        quarantine_retention_seconds: float,
        single_shard: bool = False,
    ) -> None:
        self._table = table
        self._plan = Plan(declarations)
        self._checkpoints = Checkpoints(table)
        self._pruner = Pruner(table, self._checkpoints)
        self._quarantine = Quarantine(table, deployment_id(declarations), quarantine_retention_seconds)
        self._single_shard = single_shard

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float] = lambda: math.inf) -> Report:
        """Count a batch, each record exactly once however often it is delivered.

        `event` is Lambda's: ``shardId`` and its ``Records`` in order. `CommitError` means: deliver it again.
        """
        records = event.get("Records") or []
        if not records:
            return self._end_of_window(event, time_left)
        shard = self._shard(event)
        last = padded(records[-1]["dynamodb"]["SequenceNumber"])
        checkpoint = self._checkpoints.of(shard, last, self._deadline(time_left))
        fresh = _after(checkpoint.applied_through, records)
        counted = self._count(shard, fresh, checkpoint, time_left) if fresh else Report()
        return replace(
            counted,
            records=len(records),
            redelivered=len(records) - len(fresh),
            checkpoint_lost=checkpoint.just_lost,
        )

    def _count(
        self, shard: str, records: Sequence[Record], checkpoint: Checkpoint, time_left: Callable[[], float]
    ) -> Report:
        quarantined = self._quarantine.entry_ids(shard)
        batch = unwrap(records, quarantined)
        created_before = max(self._table.clock() - GUARANTEE, checkpoint.lost_before)
        changes, doubtful = set_aside(self._plan, batch.changes, created_before, quarantined)
        folded = fold(self._plan, changes, quarantined=quarantined)
        # Before any commit: once a later record moves a watermark past it, only the quarantine knows of a record.
        kept = self._quarantine.keep(shard, [*batch.unreadable, *doubtful, *folded.unfoldable])
        watermark = Watermark(shard, old_format=checkpoint.old_format, now=self._table.clock())
        done = Committer(self._table, watermark, self._quarantine, self._pruner, time_left).commit(
            folded.deltas,
            lambda applied_through: fold(self._plan, changes, applied_through, quarantined).deltas,
        )
        last, touched = padded(records[-1]["dynamodb"]["SequenceNumber"]), len(folded.deltas) + kept
        units = 0.0
        if time_left() >= RESERVE_SECONDS:
            units = self._checkpoints.committed(shard, last, touched - done.skipped, self._deadline(time_left))
        return Report(
            updated=done.updated,
            skipped=done.skipped,
            quarantined=kept + done.quarantined,
            late=folded.late,
            write_units=done.write_units + units,
            applied_through=last if touched else None,
        )

    def _end_of_window(self, event: Mapping[str, Any], time_left: Callable[[], float]) -> Report:
        """Move the checkpoint to what the window's invocations have committed: the response's state tells."""
        applied_through = str((event.get("state") or {}).get(_APPLIED_THROUGH))
        is_sequence = applied_through.isdecimal() and len(applied_through) == SEQUENCE_DIGITS
        if not event.get("isFinalInvokeForWindow") or not is_sequence:
            return Report()
        deadline = self._deadline(time_left)
        return Report(write_units=self._checkpoints.advance(self._shard(event), applied_through, deadline))

    def _deadline(self, time_left: Callable[[], float]) -> float:
        """When this invocation has ended at the latest."""
        return self._table.clock() + min(time_left(), LONGEST_INVOCATION)

    def _shard(self, event: Mapping[str, Any]) -> str:
        shard = event.get("shardId")
        if shard:
            return str(shard)
        if self._single_shard:
            return _ONLY_SHARD
        raise ShardUnknownError(
            "the event has no shardId, without which a redelivery cannot be told from a new record: configure a "
            "tumbling window on the event source mapping, or single_shard if the stream has one shard"
        )


def _after(applied_through: str, records: Sequence[Record]) -> Sequence[Record]:
    if applied_through < padded(records[0]["dynamodb"]["SequenceNumber"]):
        return records
    return [record for record in records if applied_through < padded(record["dynamodb"]["SequenceNumber"])]
