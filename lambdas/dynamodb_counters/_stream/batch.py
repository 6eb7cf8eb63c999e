"""One batch from the stream, from end to end: fold, quarantine, commit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._fold.fold import Plan
from dynamodb_counters._stream.commit import Committer
from dynamodb_counters._stream.quarantine import Quarantine
from dynamodb_counters._table import Table
from dynamodb_counters._version import VERSION
from dynamodb_counters.errors import ShardUnknownError

_ONLY_SHARD: Final = "only"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a batch.

    Parameters
    ----------
    records : int
        Records in it.
    updated, skipped : int
        Items written, and items an earlier delivery had brought as far already.
    quarantined : int
        Records put into quarantine.
    late : int
        Contributions dropped because their bucket's retention is over.
    write_units : float
        Write units consumed.
    """

    records: int = 0
    updated: int = 0
    skipped: int = 0
    quarantined: int = 0
    late: int = 0
    write_units: float = 0.0


class Aggregator:
    """Keeps the aggregates of one table current.

    Parameters
    ----------
    table : Table
        The table.
    declarations : tuple of Aggregate and Window
        All that is counted in it.
    quarantine_retention_seconds : float
        How long a record that cannot be folded is kept.
    single_shard : bool, optional
        Whether the stream has but one shard, so that an event need not name it (local emulators). Default False.
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
        deployment = hashlib.sha256(f"{VERSION} {encode(declarations)}".encode()).hexdigest()[:16]
        self._quarantine = Quarantine(table, deployment, quarantine_retention_seconds)
        self._single_shard = single_shard

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float] = lambda: math.inf) -> Report:
        """Count a batch, each record exactly once however often it comes.

        Parameters
        ----------
        event : mapping
            As Lambda hands it over: ``Records`` of one shard in order, and ``shardId``.
        time_left : callable, optional
            Gives the seconds until the invocation must have ended. Default: without end.

        Returns
        -------
        Report
            What was done.

        Raises
        ------
        ShardUnknownError
            The event does not name its shard.
        CommitError
            A part could not be written; the batch must be delivered again.
        """
        records = event.get("Records") or []
        if not records:
            return Report()
        shard = self._shard(event)
        known = self._quarantine.known(shard)
        folded = self._plan.fold(records, known=known)
        # Before any commit: once a later record moves a watermark past it, only the quarantine knows of a record.
        kept = self._quarantine.keep(shard, folded.unfoldable)
        committer = Committer(self._table, shard, self._quarantine, time_left)
        done = committer.commit(folded.deltas, lambda floors: self._plan.fold(records, floors, known).deltas)
        quarantined = kept + done.set_aside
        return Report(len(records), done.updated, done.skipped, quarantined, folded.late, done.write_units)

    def _shard(self, event: Mapping[str, Any]) -> str:
        shard = event.get("shardId")
        if shard:
            return str(shard)
        if self._single_shard:
            return _ONLY_SHARD
        raise ShardUnknownError(
            "the event has no shardId, without which a redelivery cannot be told from a new record: configure a "
            "tumbling window on the event source mapping, or single_shard if the stream has but one shard"
        )
