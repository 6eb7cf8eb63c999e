"""The commit: one conditional UpdateItem per group, which applies each stream record exactly once.

Every item holds a watermark per shard that feeds it: the sequence number of the last record applied. For a delta of
records `first` to `last` the commit sends, literally (names and values are placeholders in the request)::

    UPDATE    SET _type = "views", #watermark = <last> ADD views 3
    CONDITION attribute_not_exists(#watermark) OR #watermark < <first>
    RETURN    ALL_OLD if the condition fails

A batch of records 1-3 that is delivered twice, the second time with record 4, after a crash between two items:

    time  invocation  item  item's watermark  what happens
    1     A           x     none              condition holds: +3, watermark = 3
    2     A           y     none              A dies before it writes y; Lambda delivers the batch again
    3     B           x     3                 condition fails (3 < 1 is false); ALL_OLD says: applied through 3
    4     B           y     none              condition holds: +4, watermark = 4
    5     B           x     3                 folds again for x, only records after 3: +1, condition 3 < 4 holds
    6     A           y     4                 A was not dead, only slow: its condition fails, nothing remains to fold
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from botocore.exceptions import ClientError

from dynamodb_counters._commit.checkpoint_items import Checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._commit.pruning import Pruner
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import AppliedThrough, fold
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.decimals import fits, format_number
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._items.watermarks import Watermark
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._quarantine.quarantine_items import DELTA, UNREADABLE, pack
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError

_GONE: Final = "the group's retention is over, and what it had counted is gone: the record may have been counted"


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive changes of one shard, all of one deployment, and what the invocation knows of the shard."""

    plan: Plan
    changes: Sequence[Change]
    watermark: Watermark
    checkpoint: Checkpoint
    given_up_through: str = ""
    """The last record of the batch, if Lambda gave up on it."""

    def fold(self, applied_through: AppliedThrough) -> list[Delta]:
        """Fold again for some groups, each from after the record it has applied."""
        return fold(self.plan, self.changes, applied_through).deltas

    def fold_each(self, ref: GroupRef) -> list[Delta]:
        """Contributions of each record to a group."""
        return [delta for change in self.changes for delta in fold(self.plan, [change], {ref: ""}).deltas]


@dataclass(slots=True)
class Committed:
    """Items written, items an earlier delivery had brought as far, entries quarantined, write units as reported."""

    updated: int = 0
    skipped: int = 0
    quarantined: int = 0
    unguarded: int = 0
    """Entries of an item that takes no watermark: only the checkpoint keeps them from being counted again."""
    write_units: float = 0.0
    overtaken: set[str] = field(default_factory=set)
    """Records that Lambda gave up on and that an item refuses because it has applied later ones."""


@dataclass(slots=True)
class _Answer:
    write_units: float = 0.0
    applied_through: str | None = None
    """The item's watermark, if it refused the update."""
    quarantined: int = 0
    unguarded: int = 0


class Committer:
    """Writes deltas to one table, each until the invocation's time is up."""

    def __init__(self, table: Table, checkpoints: Checkpoints, quarantine: Quarantine, pruner: Pruner) -> None:
        self._table = table
        self._checkpoints = checkpoints
        self._quarantine = quarantine
        self._pruner = pruner

    def commit(self, deltas: Sequence[Delta], part: Part) -> Committed:
        """Write the deltas of a part; `CommitError` means that some are not written: deliver the batch again."""
        done = Committed()
        failures: dict[GroupRef, Exception] = {}
        ordered = deltas = sorted(deltas, key=place_of)
        while deltas:
            applied_through: dict[GroupRef, str] = {}
            for delta, answer in self._table.side_by_side(lambda delta: self._write(delta, part), deltas):
                if isinstance(answer, Exception):
                    failures[delta.ref] = answer
                    continue
                done.write_units += answer.write_units
                done.quarantined += answer.quarantined
                done.unguarded += answer.unguarded
                if answer.applied_through is None:
                    done.updated += 1
                elif answer.applied_through >= delta.last:
                    done.skipped += 1
                    if "" < part.given_up_through < answer.applied_through:
                        done.overtaken |= {of_record.last for of_record in part.fold_each(delta.ref)}
                else:
                    applied_through[delta.ref] = answer.applied_through
            deltas = part.fold(applied_through) if applied_through else []
        if failures:
            self._remember(ordered, failures, part)
            raise CommitError(list(failures.values()))
        return done

    def _remember(self, ordered: Sequence[Delta], failures: Collection[GroupRef], part: Part) -> None:
        """Note how far the batch came: everything in a place before that of the first failure is committed."""
        failed = next(index for index, delta in enumerate(ordered) if delta.ref in failures)
        if failed:
            self._checkpoints.remember(part.watermark.book, part.changes[-1].sequence, place_of(ordered[failed]))

    def _write(self, delta: Delta, part: Part) -> _Answer:
        assert delta.first <= delta.last, f"records {delta.first} to {delta.last} are out of order"
        if part.checkpoint.progress:
            through = part.checkpoint.applied_through_at(place_of(delta))
            if delta.first <= through:
                return _Answer(applied_through=through)
        if delta.layout.closing_time is not None and delta.layout.is_gone(delta.group, self._table.clock()):
            return self._quarantine_each(delta, part, _GONE)
        if not fits(*delta.measures.values()):
            return self._quarantine_delta(delta, part, "the sum has more than 38 digits")
        update = Update(delta.layout, delta.group, delta.measures, part.watermark.shard)
        request = _guarded(self._table.name, update, delta, part.watermark)
        returned: Literal["NONE", "ALL_NEW"] = "ALL_NEW" if self._pruner.wants(update.key) else "NONE"
        client = self._table.client
        try:
            answer = client.update_item(**request, ReturnConsumedCapacity="TOTAL", ReturnValues=returned)
        except client.exceptions.ConditionalCheckFailedException as error:
            return self._refused(dict(error.response), delta, part)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise
            # The item cannot take it: a sum beyond 38 digits, or an attribute that is not a number.
            return self._quarantine_delta(delta, part, error.response["Error"]["Message"])
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        if item := answer.get("Attributes"):
            units += self._pruner.prune(request["Key"], item, part.watermark.name)
        return _Answer(units)

    def _refused(self, refusal: Mapping[str, Any], delta: Delta, part: Part) -> _Answer:
        # A refused write consumes as much as one that succeeds, but its answer does not say so.
        item = refusal["Item"]
        units = write_units(item_bytes(item))
        try:
            return _Answer(units, part.watermark.of(item))
        except UNREADABLE:
            reason = f"the item's watermark {part.watermark.name!r} cannot be read: the record may have been counted"
            return self._quarantine_each(delta, part, reason)

    def _quarantine_delta(self, delta: Delta, part: Part, reason: str) -> _Answer:
        """Move the watermark without the delta, and the delta to quarantine, in one transaction."""
        update = Update(delta.layout, delta.group, {}, part.watermark.shard)
        move: Any = _guarded(self._table.name, update, delta, part.watermark)
        item = self._entry(delta, part, reason)
        put: Any = {"TableName": self._table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
        client = self._table.client
        try:
            answer = client.transact_write_items(
                TransactItems=[{"Update": move}, {"Put": put}], ReturnConsumedCapacity="TOTAL"
            )
        except client.exceptions.TransactionCanceledException as error:
            first: dict[str, Any] = dict(error.response["CancellationReasons"][0])
            if first.get("Code") == "ConditionalCheckFailed":
                return self._refused(first, delta, part)
            if first.get("Code") == "ValidationError":
                return self._quarantine_each(delta, part, reason)
            raise
        units = sum(table.get("CapacityUnits", 0.0) for table in answer.get("ConsumedCapacity", []))
        return _Answer(units, quarantined=1)

    def _quarantine_each(self, delta: Delta, part: Part, reason: str) -> _Answer:
        """Leave an item alone that takes not even a watermark: an entry per record, the same in every delivery."""
        entries = [
            self._entry(of_record, part, reason)
            for of_record in part.fold_each(delta.ref)
            if delta.first <= of_record.first <= delta.last
        ]
        new = sum(self._quarantine.put(entry) is None for entry in entries)
        return _Answer(float(len(entries)), delta.last, new, len(entries))

    def _entry(self, delta: Delta, part: Part, reason: str) -> dict[str, Any]:
        numbers = {name: format_number(number) for name, number in delta.measures.items()}
        content = {"name": delta.layout.name, "group": list(delta.group), "numbers": numbers}
        shard = part.watermark.shard
        key_digest = hashlib.sha256(repr(delta.layout.key(delta.group, shard)).encode()).hexdigest()[:32]
        entry_id = f"{delta.first}#{key_digest}#{delta.layout.name}"
        return self._quarantine.item(shard, entry_id, reason, {DELTA: pack(content)})


def place_of(delta: Delta) -> str:
    """Orders the groups of a batch the same way in every delivery."""
    ref: GroupRef = (delta.layout.name, delta.group)
    return hashlib.sha256(repr(ref).encode()).hexdigest()[:16]


def _guarded(table: str, update: Update, delta: Delta, watermark: Watermark) -> dict[str, Any]:
    first, last = watermark.values(delta.first, delta.last)
    return update.guarded_request(table, watermark.guards, first, last)
