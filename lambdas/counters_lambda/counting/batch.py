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

from counters_lambda.counting.commit import WORTH_A_WRITE, Checkpoints, Committed, Committer, Part, is_sequence
from counters_lambda.counting.counted_names import CountedNames
from counters_lambda.counting.crossings import crossings
from counters_lambda.counting.run_logs import ONLY_SHARD
from dynamodb_counters._assumptions import GUARANTEE, LONGEST_INVOCATION
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._fold.fold import fold, reason_of, surplus_of
from dynamodb_counters._fold.records import ONE_TABLE, Change, Origins, Record, stream_number
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.schema import PK, bookkeeping_item, bookkeeping_key
from dynamodb_counters._quarantine import UNREADABLE, Quarantine, held_by, redriven_item
from dynamodb_counters._table import RetryingClient, Table, ending_at
from dynamodb_counters._tiers import HOUR
from dynamodb_counters.errors import CheckpointError, CommitError
from dynamodb_counters.exactly_once import Watermark

_MOST_WRITES: Final = 10_000  # Groups and quarantined images at once: a larger batch is counted part by part.
_APPLIED_THROUGH: Final = "applied_through"  # In the tumbling window's state: the last record that is committed.


def intake(records: Iterable[Record], origins: Origins = ONE_TABLE) -> list[Change]:
    """Return the changes that a shard's records, in order, ask to count; of an entry that cannot be read, why."""
    changes, last = list[Change](), ""
    for record in records:
        change = Change(record, is_foreign=origins.is_foreign(record))
        assert last < change.sequence, f"record {change.sequence} comes after {last}: a shard's records ascend"
        last = change.sequence
        if not change.is_foreign and (item := redriven_item(record["dynamodb"])) is not None:
            try:
                change = held_by(item, record, origins)
            except UNREADABLE as error:
                change = Change(record, is_foreign=change.is_foreign, failure=reason_of(error))
        changes.append(change)
    return changes


def put_crossings(table: Table, crossings: Sequence[Image]) -> None:
    """Put crossings that are not there yet; `CommitError` means: deliver the batch again."""

    def put(group: Sequence[Image]) -> None:
        for crossing in group:
            table.write("put_item", Item=crossing, ConditionExpression=f"attribute_not_exists({PK})")

    groups: dict[str, list[Image]] = {}  # One after the other of a group: their records are then in order, too.
    for crossing in crossings:
        groups.setdefault(repr([crossing[name] for name in ("threshold", "aggregate", "group")]), []).append(crossing)
    answers = [answer for _, answer in table.side_by_side(put, [*groups.values()])]
    if failures := [answer for answer in answers if isinstance(answer, Exception)]:
        raise CommitError(failures)


def put_pulse(table: Table) -> None:
    """Put an item whose record shows that the stream is polled, when nothing else happens, too."""
    pulse = bookkeeping_item(bookkeeping_key("PULSE", "PULSE"), {"at": table.clock()})
    table.client.put_item(TableName=table.name, Item=pulse)


@dataclass(slots=True)
class Report(Committed):
    records: int = 0
    late: int = 0  # Contributions dropped because the retention of their bucket is over.
    redelivered: int = 0  # Records at or below the shard's checkpoint.
    changed: tuple[str, ...] = ()  # Names that the code declares otherwise than they are registered.
    undeclared: tuple[str, ...] = ()  # Names that count although the code does not declare them.
    refused: Mapping[str, str] = field(default_factory=dict)  # Names that cannot be registered, and why.
    skipped_types: Counter[str] = field(default_factory=Counter)  # Records of items of types that nothing declares.
    # Changes that may have crossed a line of a group whose item other code has spoiled, by threshold.
    skipped_thresholds: Counter[str] = field(default_factory=Counter)
    touched: int = 0  # Items and entries of the quarantine.
    moved: dict[str, Any] = field(default_factory=dict)  # The batch's last record, if the batch touched items.

    def add(self, result: Committed) -> None:
        for number in fields(Committed):
            setattr(self, number.name, getattr(self, number.name) + getattr(result, number.name))
        self.touched += result.updated + result.skipped

    def state(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state that the function returns, and the tumbling window's next invocation gets."""
        return {**(event.get("state") or {}), **self.moved}


class Aggregator:
    """Keeps the aggregates of one table current."""

    def __init__(
        self,
        table: Table,
        declarations: tuple[Declaration, ...],
        *,
        quarantine_retention_seconds: float,
        single_shard: bool = False,  # So that events need not name it (local emulators).
        source_table: str | None = None,  # The ARN of the table whose `Items` are counted, if that is another.
        always_reads: bool = False,  # The registry, before a batch: the emulator's function.
    ) -> None:
        self._clock, self._client = table.clock, RetryingClient(table)
        self._table = retrying = replace(table, client=cast("Any", self._client))
        self._names = CountedNames(retrying, declarations, source_table or "", always_reads=always_reads)
        self._origins = Origins(table.name, source_table)
        self._checkpoints = Checkpoints(table, retrying)
        self._quarantine = Quarantine(retrying, quarantine_retention_seconds, self._origins.ttl_of(declarations))
        # Emulators do not parse PartiQL, or leave what it writes out of the stream.
        once = None if single_shard else table
        self._committer = Committer(retrying, self._quarantine, self._checkpoints, once)
        self._single_shard = single_shard

    def handle(self, event: Mapping[str, Any], time_left: Callable[[], float] = lambda: math.inf) -> Report:
        """Count a batch, each record exactly once however often it is delivered; any error means: deliver it again."""
        # When this invocation has ended at the latest.
        deadline = self._clock() + min(time_left(), LONGEST_INVOCATION)
        with ending_at(deadline):
            if event.get("Records"):
                return self._batch(event, deadline)
            if "Records" in event:
                return self._end_of_window(event, deadline)
            # By hand, or by the deployment: the declarations are registered before there is a batch.
            return self._refresh(Report())

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
        for plan, part in portions:
            self._names.note_surplus(surplus_of(plan, part))
            report.write_units += self._names.log((plan, part), shard, cuts, self._quarantine)
            # Before anything moves the checkpoint: an item is the same in every delivery.
            put_crossings(self._table, crossings(plan, part, report.skipped_thresholds))
            self._commit(Part(plan, part, Watermark(shard)), deadline, report)
        if report.touched:
            report.moved = {_APPLIED_THROUGH: changes[-1].sequence}

    def _commit(self, part: Part, deadline: float, report: Report) -> None:
        fresh, shard = part.changes, part.watermark.shard
        while fresh:
            folded = fold(part.plan, fresh, limit=_MOST_WRITES)
            counted, fresh = fresh[: folded.changes], fresh[folded.changes :]
            # Before the checkpoint moves: a record that it covers is not looked at again.
            quarantined = self._quarantine.keep(shard, folded.invalid) if folded.invalid else 0
            report.quarantined += quarantined
            report.touched += quarantined
            report.late += folded.late
            report.skipped_types += folded.skipped_types
            result = self._committer.commit(folded.deltas, replace(part, changes=counted))
            report.add(result)
            touched = result.updated + quarantined + result.unguarded * WORTH_A_WRITE
            if touched and self._client.has_time():
                report.write_units += self._checkpoints.committed(shard, counted[-1].sequence, touched, deadline)

    def _refresh(self, report: Report) -> Report:
        names = self._names
        if names.refresh():
            report.changed, report.undeclared, report.refused = names.changed, names.undeclared, names.refused
        return report

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
