"""One batch of the stream, end to end: unwrap, fold, quarantine, commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._stream.commit import Committer
from dynamodb_counters._stream.deployment import deployment_id
from dynamodb_counters._stream.quarantine import Quarantine
from dynamodb_counters._stream.redrive import unwrap
from dynamodb_counters._table import Table
from dynamodb_counters.errors import ShardUnknownError

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
        self._quarantine = Quarantine(table, deployment_id(declarations), quarantine_retention_seconds)
        self._single_shard = single_shard

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float] = lambda: math.inf) -> Report:
        """Count a batch, each record exactly once however often it is delivered.

        `event` is Lambda's: ``shardId`` and its ``Records`` in order. `CommitError` means: deliver it again.
        """
        records = event.get("Records") or []
        if not records:
            return Report()
        shard = self._shard(event)
        quarantined = self._quarantine.entry_ids(shard)
        batch = unwrap(records, quarantined)
        folded = fold(self._plan, batch.changes, quarantined=quarantined)
        # Before any commit: once a later record moves a watermark past it, only the quarantine knows of a record.
        kept = self._quarantine.keep(shard, [*batch.unreadable, *folded.unfoldable])
        committer = Committer(self._table, shard, self._quarantine, time_left)
        done = committer.commit(
            folded.deltas,
            lambda applied_through: fold(self._plan, batch.changes, applied_through, quarantined).deltas,
        )
        return Report(len(records), done.updated, done.skipped, kept + done.quarantined, folded.late, done.write_units)

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
