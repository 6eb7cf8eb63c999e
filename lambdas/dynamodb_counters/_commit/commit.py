"""The commit: one conditional UpdateItem per item, which applies each stream record exactly once.

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

The item of groups in pages is a page. Its level is part of the condition: a page that has split refuses, and shows
where to go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from botocore.exceptions import ClientError

from dynamodb_counters._commit.checkpoint_items import Checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoints
from dynamodb_counters._commit.item_deltas import ItemDelta, joined, place_of
from dynamodb_counters._commit.page_splits import PageSplits
from dynamodb_counters._commit.pruning import Pruner
from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import AppliedThrough, fold
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._fold.updates import PageUpdate, Update
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.decimals import fits, format_number, parse_number
from dynamodb_counters._items.item_sizes import item_bytes, write_units
from dynamodb_counters._items.table_schema import BASELINE
from dynamodb_counters._items.watermarks import Watermark
from dynamodb_counters._pages import PageLevels
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._quarantine.quarantine_items import DELTA, UNREADABLE, pack
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError

_MOST_ENTRIES: Final = 99
"""Entries of the quarantine next to an update in one transaction."""

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
    baseline: str = ""
    """The part of a backfill that it is."""

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

    def skip(self, part: Part, refs: Sequence[GroupRef], applied_through: str) -> None:
        """An item had been brought as far by an earlier delivery."""
        self.skipped += 1
        if "" < part.given_up_through < applied_through:
            self.overtaken |= {of_record.last for ref in refs for of_record in part.fold_each(ref)}


@dataclass(slots=True)
class _Answer:
    write_units: float = 0.0
    applied_through: str | None = None
    """The item's watermark, if it refused the update."""
    quarantined: int = 0
    unguarded: int = 0
    is_elsewhere: bool = False
    """Whether the groups lie in other pages than it was thought."""


class Committer:
    """Writes deltas to one table, each until the invocation's time is up."""

    def __init__(self, table: Table, checkpoints: Checkpoints, quarantine: Quarantine, pruner: Pruner) -> None:
        self._table = table
        self._checkpoints = checkpoints
        self._quarantine = quarantine
        self._pruner = pruner
        self._levels = PageLevels.of_table(table)
        self._splits = PageSplits(table)

    def commit(self, deltas: Sequence[Delta], part: Part) -> Committed:
        """Write the deltas of a part; `CommitError` means that some are not written: deliver the batch again."""
        done = Committed()
        failures: dict[GroupRef, Exception] = {}
        ordered = sorted(deltas, key=place_of)
        left = self._after_progress(ordered, part, done) if part.checkpoint.progress else ordered
        while left:
            applied_through: dict[GroupRef, str] = {}
            elsewhere: list[Delta] = []
            for item, answer in self._table.side_by_side(partial(self._write, part), self._joined(left, failures)):
                if isinstance(answer, Exception):
                    failures |= dict.fromkeys(item.refs, answer)
                    # A page that lacks them must not be written: its watermark would cover them.
                    elsewhere += item.deltas if item.page is not None else ()
                    continue
                done.write_units += answer.write_units
                done.quarantined += answer.quarantined
                done.unguarded += answer.unguarded
                if answer.is_elsewhere:
                    elsewhere += item.deltas
                elif answer.applied_through is None:
                    done.updated += 1
                elif answer.applied_through >= item.last:
                    done.skip(part, item.refs, answer.applied_through)
                else:
                    applied_through |= dict.fromkeys(item.refs, answer.applied_through)
            left = sorted([*elsewhere, *(part.fold(applied_through) if applied_through else ())], key=place_of)
        if failures:
            self._remember(ordered, failures, part)
            raise CommitError(list(failures.values()))
        return done

    def _joined(self, deltas: Sequence[Delta], failures: dict[GroupRef, Exception]) -> list[ItemDelta]:
        """Deltas by item; none that fails in a part, and no more if all of a page have failed."""
        found = []
        for item in joined(deltas, self._levels):
            failed = next((failures[ref] for ref in item.refs if ref in failures), None)
            if failed is None:
                found.append(item)
            else:
                failures |= dict.fromkeys(item.refs, failed)
        return found

    def _after_progress(self, ordered: Sequence[Delta], part: Part, done: Committed) -> list[Delta]:
        """The deltas that an earlier delivery, which failed, has not written."""
        left: list[Delta] = []
        later: dict[GroupRef, str] = {}
        for delta in ordered:
            through = part.checkpoint.applied_through_at(place_of(delta))
            if delta.first > through:
                left.append(delta)
            elif delta.last > through:
                later[delta.ref] = through
            else:
                done.skip(part, [delta.ref], through)
        return sorted([*left, *part.fold(later)], key=place_of) if later else left

    def _remember(self, ordered: Sequence[Delta], failures: Collection[GroupRef], part: Part) -> None:
        """Note how far the batch came: everything in a place before that of the first failure is committed."""
        failed = next(index for index, delta in enumerate(ordered) if delta.ref in failures)
        if failed and part.changes:
            self._checkpoints.remember(part.watermark.book, part.changes[-1].sequence, place_of(ordered[failed]))

    def _write(self, part: Part, item: ItemDelta) -> _Answer:
        layout = item.layout
        for delta in item.deltas:
            assert delta.first <= delta.last, f"records {delta.first} to {delta.last} are out of order"
        if layout.closing_time is not None and layout.is_gone(item.deltas[0].group, self._table.clock()):
            return self._quarantine_each(item, part, _GONE)
        update = item.update(part.watermark.shard)
        if update.requests > 1 and len(item.deltas) > 1:
            return self._make_room(item, update.requests)
        unfit = [delta for delta in item.deltas if not fits(*delta.measures.values())]
        if unfit:
            return self._quarantine_deltas(item, unfit, part, "the sum has more than 38 digits")
        request = _guarded(self._table.name, update, item, part)
        returned: Literal["NONE", "ALL_NEW"] = "ALL_NEW" if self._pruner.wants(update.key) else "NONE"
        client = self._table.client
        try:
            answer = client.update_item(**request, ReturnConsumedCapacity="TOTAL", ReturnValues=returned)
        except client.exceptions.ConditionalCheckFailedException as error:
            return self._refused(dict(error.response), item, part)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise
            # The item cannot take it: a sum beyond 38 digits, or an attribute that is not a number.
            unfit = self._unfit(item)
            return self._quarantine_deltas(item, unfit, part, error.response["Error"]["Message"])
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        found = answer.get("Attributes")
        pruned = self._pruner.prune(request["Key"], found, part.watermark.name) if found else 0.0
        grown = self._splits.grown(layout, item.page, units, found, len(item.deltas)) if item.page else 0.0
        return _Answer(units + pruned + grown)

    def _make_room(self, item: ItemDelta, parts: float = 2) -> _Answer:
        """Split a page before it is written: its groups are too many for one request."""
        assert item.page is not None
        self._splits.make_room(item.layout, item.page, item.deltas[0].group, parts)
        return _Answer(is_elsewhere=True)

    def _refused(self, refusal: Mapping[str, Any], item: ItemDelta, part: Part) -> _Answer:
        # A refused write consumes as much as one that succeeds, but its answer does not say so.
        found: Mapping[str, Any] = refusal.get("Item") or {}
        units = write_units(item_bytes(found))
        if item.page is not None and not self._levels.learn(item.layout.name, item.page, found):
            return _Answer(units, is_elsewhere=True)
        try:
            return _Answer(units, part.watermark.of(found))
        except UNREADABLE:
            reason = f"the item's watermark {part.watermark.name!r} cannot be read: the record may have been counted"
            return self._quarantine_each(item, part, reason)

    def _unfit(self, item: ItemDelta) -> list[Delta]:
        """The deltas that an item cannot take."""
        if item.page is None:
            return item.deltas
        assert item.layout.pages is not None
        page = self._table.read_item(typed_key(item.layout.pages.key(item.page)))
        each = [(delta, PageUpdate(item.layout, item.page, {delta.group: delta.measures})) for delta in item.deltas]
        return [delta for delta, update in each if not _takes(page, update)]

    def _quarantine_deltas(self, item: ItemDelta, unfit: Sequence[Delta], part: Part, reason: str) -> _Answer:
        """Move the watermark without some deltas, and these to quarantine, in one transaction."""
        if len(unfit) > _MOST_ENTRIES:
            is_whole = item.layout.pages is not None and item.layout.pages.is_whole
            return self._quarantine_each(item, part, reason) if is_whole else self._make_room(item)
        move: Any = _guarded(self._table.name, item.update(part.watermark.shard, unfit), item, part)
        puts: Any = [put_as_seen(self._table.name, self._entry(delta, part, reason), {}, ()) for delta in unfit]
        writes: Any = [{"Update": move}, *({"Put": put} for put in puts)]
        try:
            answer = self._table.client.transact_write_items(TransactItems=writes, ReturnConsumedCapacity="TOTAL")
        except ClientError as error:
            response: Any = error.response
            first = response.get("CancellationReasons", [{}])[0]
            if first.get("Code") == "ConditionalCheckFailed":
                return self._refused(first, item, part)
            # DynamoDB Local refuses as a whole what AWS cancels by a reason.
            if first.get("Code") != "ValidationError" and response["Error"]["Code"] != "ValidationException":
                raise
            return self._quarantine_each(item, part, reason)
        units = sum(table.get("CapacityUnits", 0.0) for table in answer.get("ConsumedCapacity", []))
        return _Answer(units, quarantined=len(puts))

    def _quarantine_each(self, item: ItemDelta, part: Part, reason: str) -> _Answer:
        """Leave an item alone that takes not even a watermark: an entry per record, the same in every delivery."""
        entries = [
            self._entry(of_record, part, reason)
            for delta in item.deltas
            for of_record in part.fold_each(delta.ref)
            if delta.first <= of_record.first <= delta.last
        ]
        new = sum(self._quarantine.put(entry) is None for entry in entries)
        return _Answer(float(len(entries)), item.last, new, len(entries))

    def _entry(self, delta: Delta, part: Part, reason: str) -> dict[str, Any]:
        numbers = {name: format_number(number) for name, number in delta.measures.items()}
        content = {"name": delta.layout.name, "group": list(delta.group), "numbers": numbers}
        shard = part.watermark.shard
        key_digest = hashlib.sha256(repr(delta.layout.key(delta.group, shard)).encode()).hexdigest()[:32]
        entry_id = f"{delta.first}#{key_digest}#{delta.layout.name}"
        return self._quarantine.item(shard, entry_id, reason, {DELTA: pack(content)})


def _guarded(table: str, update: Update, item: ItemDelta, part: Part) -> dict[str, Any]:
    first, last = part.watermark.values(item.first, item.last)
    if part.baseline:
        update.set(BASELINE, {"S": part.baseline})
    return update.guarded_request(table, part.watermark.guards, first, last)


def _takes(page: Mapping[str, Any], update: PageUpdate) -> bool:
    """Whether a page can take the numbers of one group."""
    try:
        return fits(*(parse_number(page.get(name, {"N": "0"})["N"]) + number for name, number in update.added.items()))
    except (LookupError, ValueError):
        return False
