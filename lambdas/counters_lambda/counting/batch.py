"""One batch of the stream, end to end: drop what is counted, unwrap, fold, quarantine, commit, move the checkpoint.

A batch is cut where a name or a run begins to count, for what comes before a run's cut is counted before what comes
after it is logged. That something expires is noted, because no item shows it later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, cast

from counters_lambda.counting.checkpoints import WORTH_A_WRITE, Checkpoints, is_sequence
from counters_lambda.counting.commit import Committed, Committer, Part, Pruner
from counters_lambda.counting.counted_names import CountedNames
from counters_lambda.counting.crossings import crossings
from counters_lambda.counting.run_logs import ONLY_SHARD
from dynamodb_counters._assumptions import GUARANTEE, LONGEST_INVOCATION
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold, reason_of, surplus_of
from dynamodb_counters._fold.records import OLD, ONE_TABLE, Change, Origins, Record, stream_number
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import PK, QUARANTINE, TYPE
from dynamodb_counters._quarantine import UNREADABLE, Quarantine, held_by, redriven_item
from dynamodb_counters._table import RetryingClient, Table, ending_at
from dynamodb_counters._tiers import HOUR
from dynamodb_counters.errors import CheckpointError, CommitError
from dynamodb_counters.exactly_once import Watermark

_OF_QUARANTINE: Final = {"S": QUARANTINE}


def intake(records: Iterable[Record], origins: Origins = ONE_TABLE) -> list[Change]:
    """The changes that a shard's records, in order, ask to count; of an entry that cannot be read, why."""
    changes: list[Change] = []
    last = ""
    for record in records:
        change = Change(record, is_foreign=origins.is_foreign(record))
        assert last < change.sequence, f"record {change.sequence} comes after {last}: a shard's records ascend"
        last = change.sequence
        old = record["dynamodb"].get(OLD)
        if isinstance(old, dict) and old.get(TYPE) == _OF_QUARANTINE and not change.is_foreign:
            item = redriven_item(record["dynamodb"])
            try:
                change = change if item is None else held_by(item, record, origins)
            except UNREADABLE as error:
                change = Change(record, is_foreign=change.is_foreign, failure=reason_of(error))
        changes.append(change)
    return changes


def put_crossings(table: Table, crossings: Sequence[Image]) -> None:
    """Put crossings that are not there yet; `CommitError` means: deliver the batch again."""

    def put_each(some: Sequence[Image]) -> None:
        for each in some:
            table.write("put_item", Item=each, ConditionExpression=f"attribute_not_exists({PK})")

    # One after the other of a group: their records are then in order, too.
    groups: dict[str, list[Image]] = {}
    for crossing in crossings:
        groups.setdefault(repr([crossing[name] for name in ("threshold", "aggregate", "group")]), []).append(crossing)
    answers = [there for _, there in table.side_by_side(put_each, [*groups.values()])]
    if failures := [there for there in answers if isinstance(there, Exception)]:
        raise CommitError(failures)


_MOST_WRITES: Final = 10_000
"""Groups and quarantined images that are written at once: a larger batch is counted in parts, so that none is too
large."""

_APPLIED_THROUGH: Final = "applied_through"
"""Key in the tumbling window's state: the last record its invocations have committed."""


@dataclass(slots=True)
class Report(Committed):
    records: int = 0
    late: int = 0
    """Contributions dropped because the retention of their bucket is over."""
    redelivered: int = 0
    """Records at or below the shard's checkpoint."""
    changed: tuple[str, ...] = ()
    """Names that the code declares otherwise than they are registered."""
    undeclared: tuple[str, ...] = ()
    """Names that count although the code does not declare them."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Names that cannot be registered, and why."""
    skipped_types: Counter[str] = field(default_factory=Counter)
    """Records of items that are not counted for a type that nothing declares, by type."""
    skipped_thresholds: Counter[str] = field(default_factory=Counter)
    """Changes that may have crossed a line of a group whose item other code has spoiled, by threshold."""
    touched: int = 0
    """Items and entries of the quarantine."""
    moved: dict[str, Any] = field(default_factory=dict)
    """The batch's last record, if the batch touched items."""

    def add(self, done: Committed) -> None:
        for each in fields(Committed):
            setattr(self, each.name, getattr(self, each.name) + getattr(done, each.name))
        self.touched += done.updated + done.skipped

    def state(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """State that the function returns, and the tumbling window's next invocation is given."""
        return {**(event.get("state") or {}), **self.moved}


class Aggregator:
    """Keeps the aggregates of one table current.

    `single_shard` says that the stream has one shard, so that events need not name it (local emulators);
    `source_table` is the ARN of the table whose `Items` are counted, if that is another. The
    emulator's function `always_reads` the registry before a batch.
    """

    def __init__(
        self,
        table: Table,
        declarations: tuple[Declaration, ...],
        *,
        quarantine_retention_seconds: float,
        single_shard: bool = False,
        source_table: str | None = None,
        always_reads: bool = False,
    ) -> None:
        self._clock = table.clock
        self._client = RetryingClient(table)
        self._table = retrying = replace(table, client=cast("Any", self._client))
        self._names = CountedNames(retrying, declarations, source_table or "", always_reads=always_reads)
        self._origins = Origins(table.name, source_table)
        self._checkpoints = Checkpoints(table, retrying)
        self._quarantine = Quarantine(retrying, quarantine_retention_seconds, self._origins.ttl_of(declarations))
        pruner = Pruner(table, self._checkpoints)
        # Emulators do not parse PartiQL, or leave what it writes out of the stream.
        self._committer = Committer(retrying, self._quarantine, pruner, None if single_shard else table)
        self._single_shard = single_shard

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float] = lambda: math.inf) -> Report:
        """Count a batch, each record exactly once however often it is delivered."""
        # `event` is Lambda's: ``shardId`` and its ``Records`` in order. Any error means: deliver it again.
        # When this invocation has ended at the latest.
        deadline = self._clock() + min(time_left(), LONGEST_INVOCATION)
        with ending_at(deadline):
            if event.get("Records"):
                return self._batch(event, deadline)
            if "Records" in event:
                return self._end_of_window(event, deadline)
            # By hand, or by the deployment: the declarations are registered before there is a batch.
            report = Report()
            self._refresh(report)
            return report

    def _batch(self, event: Mapping[str, Any], deadline: float) -> Report:
        changes = intake(event["Records"], self._origins)
        report, shard = Report(records=len(changes)), self._shard(event)
        applied_through = self._checkpoints.of(shard, changes[-1].sequence).applied_through
        fresh = [change for change in changes if applied_through < change.sequence]
        report.redelivered = len(changes) - len(fresh)
        if fresh:
            self._require_young(shard, fresh[0])
            self._refresh(report)
            self._quarantine.leave_aside(shard, fresh)
            self._count(shard, fresh, deadline, report)
        return report

    def _require_young(self, shard: str, oldest: Change) -> None:
        """Refuse what Lambda has given up on, so that it does: a repair may have counted it."""
        age = self._clock() - (oldest.created or math.inf)
        if age > GUARANTEE:
            raise CheckpointError(
                f"record {stream_number(oldest.sequence)} of {shard} is {age / HOUR:.1f} hours old: expected at most "
                f"{GUARANTEE / HOUR:.1f}; Lambda gives it up, and `counters verify --repair` counts it"
            )

    def _count(self, shard: str, changes: Sequence[Change], deadline: float, report: Report) -> None:
        portions, cuts = self._names.portions(shard, changes)
        for portion in portions:
            plan, some = portion
            self._names.note_surplus(surplus_of(plan, some))
            report.write_units += self._names.log(portion, shard, cuts, self._quarantine)
            # Before anything moves the checkpoint: an item is the same in every delivery.
            put_crossings(self._table, crossings(plan, some, report.skipped_thresholds))
            self._commit(Part(plan, some, Watermark(shard)), deadline, report)
        if report.touched:
            report.moved = {_APPLIED_THROUGH: changes[-1].sequence}

    def _commit(self, part: Part, deadline: float, report: Report) -> None:
        """Fold and commit what was not counted, so much at a time."""
        fresh, shard = part.changes, part.watermark.shard
        while fresh:
            folded = fold(part.plan, fresh, limit=_MOST_WRITES)
            counted, fresh = fresh[: folded.changes], fresh[folded.changes :]
            # Before the checkpoint moves: a record that it covers is not looked at again.
            quarantined = self._quarantine.keep(shard, folded.unfoldable) if folded.unfoldable else 0
            report.quarantined += quarantined
            report.touched += quarantined
            report.late += folded.late
            report.skipped_types += folded.skipped_types
            done = self._committer.commit(folded.deltas, replace(part, changes=counted))
            report.add(done)
            touched = done.updated + quarantined + done.unguarded * WORTH_A_WRITE
            if touched and self._client.has_time():
                report.write_units += self._checkpoints.committed(shard, counted[-1].sequence, touched, deadline)

    def _refresh(self, report: Report) -> None:
        names = self._names
        if names.refresh():
            report.changed, report.undeclared, report.refused = names.changed, names.undeclared, names.refused

    def _end_of_window(self, event: Mapping[str, Any], deadline: float) -> Report:
        """Move the checkpoint to what the window's invocations have committed, by the response's state."""
        state = event.get("state") or {}
        applied_through = state.get(_APPLIED_THROUGH)
        if not event.get("isFinalInvokeForWindow") or not is_sequence(applied_through):
            return Report()
        return Report(write_units=self._checkpoints.advance(self._shard(event), applied_through, deadline))

    def _shard(self, event: Mapping[str, Any]) -> str:
        shard = str(event.get("shardId") or (self._single_shard and ONLY_SHARD) or "")
        if shard:
            return self._origins.shard(shard, event)
        raise CheckpointError(
            "the event has no shardId, without which a redelivery cannot be distinguished from a new record: configure "
            "a tumbling window on the event source mapping, or single_shard if the stream has one shard"
        )
