"""The commit: one update per item, which counts each record exactly once, as `dynamodb_counters.exactly_once` says.

What the kernel leaves to it: groups that share an item, a *page*; what an item cannot take; what a failed batch has
written. The level of a page is part of the condition: a page that has split refuses, and shows where to go on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.counting.checkpoints import Checkpoints
from counters_lambda.counting.run_logs import KEPT
from dynamodb_counters._assumptions import KEPT_LONGER, LONGEST_REQUEST
from dynamodb_counters._declarations.groups import Key, typed_key
from dynamodb_counters._fold.fold import AppliedThrough, Delta, fold
from dynamodb_counters._fold.layouts import BITS, GroupRef, ItemLayout, Page, PageUpdate, Update, is_full
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import fits, format_number, parse_number
from dynamodb_counters._items.schema import (
    LEVEL,
    PK,
    REPAIRED,
    SK,
    VERSION,
    item_bytes,
    put_as_seen,
    sequence_of,
    write_units,
)
from dynamodb_counters._quarantine import UNREADABLE, Quarantine
from dynamodb_counters._registry import PageLevels
from dynamodb_counters._table import MAX_STATEMENT_CHARACTERS, Table, calls_of, time_left
from dynamodb_counters.errors import CommitError
from dynamodb_counters.exactly_once import PRUNED_AT, Bound, Looks, Watermark, old, prune_request, watermarks_of


@dataclass(slots=True)
class ItemDelta:
    """Deltas that go to one item; `page` if that is a page."""

    deltas: list[Delta]
    page: Page | None = None

    @property
    def layout(self) -> ItemLayout:
        return self.deltas[0].layout

    @property
    def refs(self) -> list[GroupRef]:
        return [delta.ref for delta in self.deltas]

    @property
    def first(self) -> str:
        return min(delta.first for delta in self.deltas)

    @property
    def last(self) -> str:
        return max(delta.last for delta in self.deltas)

    def bound(self, watermark: Watermark) -> Bound:
        """What the item's watermark must be less than: it has counted none of this."""
        return watermark.name, watermark.bound(int(self.first))

    def update(self, part: Part, without: Iterable[Delta] = ()) -> Update:
        """The update that adds them, but those of some deltas, of which the item only takes note."""
        watermark, left_out = part.watermark, {delta.group for delta in without}
        kept = {delta.group: delta.measures for delta in self.deltas if delta.group not in left_out}
        group = self.deltas[0].group
        if self.page is None:
            update = Update(self.layout, group, kept.get(group, {}), watermark.shard)
        else:
            update = PageUpdate(self.layout, self.page, kept or {group: None})
        update.attributes[watermark.name] = watermark.value(int(self.last), part.created)
        return update


def place_of(delta: Delta) -> str:
    """Orders the groups of a batch the same way in every delivery: those that share a page side by side."""
    layout = delta.layout
    if layout.pages is not None:
        shelf, number = layout.address(delta.group)
        return f"{_digest((layout.name, shelf))}{number:016x}"
    return _digest(delta.ref)


def joined(deltas: Sequence[Delta], levels: PageLevels) -> list[ItemDelta]:
    """Deltas in the order of their places, joined by item."""
    found: list[ItemDelta] = []
    for delta in deltas:
        layout = delta.layout
        if layout.pages is None:
            found.append(ItemDelta([delta]))
            continue
        shelf, number = layout.address(delta.group)
        last = found[-1].page if found and found[-1].layout.name == layout.name else None
        if last is not None and last.shelf == shelf and number < last.end:
            found[-1].deltas.append(delta)
            continue
        # A page gets all that a batch has for it, whatever its level is thought to be: its watermark covers them all.
        page, held = levels.locate(layout.name, shelf, number), [delta]
        while last is not None and last.shelf == shelf and last.first >= page.first:
            held = [*found.pop().deltas, *held]
            last = found[-1].page if found and found[-1].layout.name == layout.name else None
        found.append(ItemDelta(held, page))
    return found


def _digest(ref: tuple[str, object]) -> str:
    return hashlib.sha256(repr(ref).encode()).hexdigest()[:16]


_MOST_REMEMBERED: Final = 20_000

_FEW: Final = 8
"""Groups of a page in one update: where it has more, both halves of the page would be written as often."""

LARGE: Final = 4.0
"""Write units up to which such a page stays whole: it still takes half a unit to read."""

_MOST_HALVINGS: Final = 6
"""A transaction has at most 100 items."""


class PageSplits:
    def __init__(self, table: Table) -> None:
        self._table = table
        self._levels = PageLevels.of_table(table)
        self._seen: dict[tuple[str, str], float] = {}
        """By key: the write units of a page when it was last looked at."""

    def grown(self, layout: ItemLayout, page: Page, units: float, item: Mapping[str, Any] | None, groups: int) -> float:
        """Split a page that an update of so many `groups` has brought to so many units; return the units of that."""
        # The page is read if `item` is not what the update has returned of it.
        if layout.pages is None or layout.pages.is_whole:
            return 0.0
        place = (page.shelf, f"{layout.name}{page.first}")
        least = LARGE if groups > _FEW else 1.0
        if len(self._seen) >= _MOST_REMEMBERED:
            self._seen.clear()
        if item is None and units <= (most := max(least, self._seen.get(place, 1.0))):
            self._seen[place] = most
            return 0.0
        # A later update tries again if this fails.
        with suppress(ClientError, BotoCoreError, TimeoutError):
            item = item or self._table.read_item(self._key(layout, page))
            left, spent = [(page, item)] if self._levels.learn(layout.name, page, item) else [], 0.0
            while left:
                page, item = left.pop()
                if item and is_full(item, least) and page.level < BITS:
                    spent += 4 * units
                    left += self._divide(layout, item)
            self._seen[place] = 1.0 if spent else units
            return spent
        return 0.0

    def make_room(self, delta: ItemDelta, requests: float = 2) -> _Answer:
        """Split a page of which a batch touches so many times the groups that a request takes."""
        page, layout = delta.page, delta.layout
        assert page is not None
        key = self._key(layout, page)
        item = self._table.read_item(key)
        if self._levels.learn(layout.name, page, item):
            attributes = layout.attributes(delta.deltas[0].group, {PK: page.pk, SK: key[SK]["S"]})
            # A page that is lost is of a level.
            item = item or {**key, **attributes, LEVEL: {"N": str(page.level)}}
            self._divide(layout, item, min(_MOST_HALVINGS, math.ceil(math.log2(requests))))
        return _Answer(is_elsewhere=True)

    def _divide(self, layout: ItemLayout, item: Image, times: int = 1) -> list[tuple[Page, Image]]:
        """Halve a page that is as it was read, and its halves; nothing if it is not."""
        assert layout.pages is not None
        halves = [item]
        for _ in range(times):
            halves = [half for whole in halves for half in layout.pages.halves(whole)]
        stays = put_as_seen(self._table.name, halves[0], item if VERSION in item else {}, (VERSION,))
        # The new pages are not there, or are what a restore has left of a split.
        goes = [{"Put": {"TableName": self._table.name, "Item": half}} for half in halves[1:]]
        if not self._table.write_together([{"Put": stays}, *goes]):
            return []
        pages = [(page, half) for half in halves if (page := layout.pages.page_of(half))]
        for page, half in pages:
            self._levels.learn(layout.name, page, half)
        return pages

    def _key(self, layout: ItemLayout, page: Page) -> Key:
        assert layout.pages is not None
        return typed_key(layout.pages.key(page))


_SPARE_BYTES: Final = 64
_READ_NO_MORE: Final = KEPT + KEPT_LONGER
"""Seconds after which no run reads from a watermark what an item has counted of its log."""


class Pruner:
    """Prunes the items of one table, each at most every ten minutes per process."""

    def __init__(self, table: Table, checkpoints: Checkpoints) -> None:
        self._table = table
        self._checkpoints = checkpoints
        self.looks = Looks(table.clock)

    def prune(self, key: Mapping[str, Any], item: Mapping[str, Any], own: str) -> float:
        """Remove what guards nothing from the item just written, but not the watermark just set; return the units."""
        watermarks = watermarks_of(item, own)
        if not _saves_a_unit(item, watermarks):
            return 0.0
        try:
            aged = old(watermarks, self._table.clock() - _READ_NO_MORE)
            needless = {*aged, *self._checkpoints.settled(watermarks)}
            if not _saves_a_unit(item, needless):
                return 0.0
            # Only what was read is removed: a shard that has moved on keeps its watermark.
            request = prune_request(self._table.name, key, item, needless)
            answer = self._table.client.update_item(**request, ReturnConsumedCapacity="TOTAL")
            return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        except (ClientError, BotoCoreError):
            # Housekeeping: a later update tries again.
            return write_units(item_bytes(item))


def _saves_a_unit(item: Mapping[str, Any], watermarks: Collection[str]) -> bool:
    """Whether an item that is at its next write unit, or nearly, would be a unit smaller without the watermarks."""
    # A page that is too large splits, and never grows together again.
    if len(watermarks) < (1 if VERSION in item else PRUNED_AT):
        return False
    size = item_bytes(item)
    return write_units(size + _SPARE_BYTES) > write_units(size - item_bytes({name: item[name] for name in watermarks}))


_MOST_ENTRIES: Final = 99
"""Entries of the quarantine next to an update in one transaction."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive changes of one shard that the same names count."""

    plan: Plan
    changes: Sequence[Change]
    watermark: Watermark

    @property
    def created(self) -> float:
        """The time of its last record, in seconds since 1970; 0 for a part of a backfill, whose watermarks stay."""
        return (self.changes[-1].created or 0.0) if self.changes else 0.0

    def fold(self, applied_through: AppliedThrough) -> list[Delta]:
        """Fold again for some groups, each from after the record it has applied."""
        return fold(self.plan, self.changes, applied_through).deltas


@dataclass(slots=True)
class Committed:
    """Items written, items an earlier delivery had brought as far, entries quarantined, write units as reported."""

    updated: int = 0
    skipped: int = 0
    quarantined: int = 0
    unguarded: int = 0
    """Entries of an item that takes no watermark: only the checkpoint keeps them from being counted again."""
    write_units: float = 0.0


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

    def __init__(self, table: Table, quarantine: Quarantine, pruner: Pruner, once: Table | None = None) -> None:
        self._table = table
        self._once = once
        """For requests of many updates, which need not succeed."""
        self._quarantine = quarantine
        self._pruner = pruner
        self._levels = PageLevels.of_table(table)
        self._splits = PageSplits(table)
        self._progress: dict[str, dict[GroupRef, str]] = {}
        """By shard: what groups have applied of batches that failed here."""

    def commit(self, deltas: Sequence[Delta], part: Part) -> Committed:
        """Write the deltas of a part; `CommitError` means that some are not written: deliver the batch again."""
        failures: dict[GroupRef, Exception] = {}
        # An earlier delivery, which failed, has written the others.
        progress = self._progress.get(part.watermark.shard, {})
        remaining = sorted((delta for delta in deltas if delta.last > progress.get(delta.ref, "")), key=place_of)
        done = Committed(skipped=len(deltas) - len(remaining))
        while remaining:
            applied_through: dict[GroupRef, str] = {}
            elsewhere: list[Delta] = []
            for item, answer in self._written(part, self._joined(remaining, failures)):
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
                elif answer.applied_through >= item.last or not part.changes:
                    done.skipped += 1
                else:
                    applied_through |= dict.fromkeys(item.refs, answer.applied_through)
            remaining = sorted([*elsewhere, *(part.fold(applied_through) if applied_through else ())], key=place_of)
        self._remember(deltas, failures, part)
        if failures:
            raise CommitError(list(failures.values()))
        return done

    def _written(self, part: Part, items: Sequence[ItemDelta]) -> list[tuple[ItemDelta, _Answer | Exception]]:
        """Write items: those that this process has updated lately many at once, and alone what that does not settle."""
        recent = [item for item in items if self._is_recent(item, part)]
        answered: list[tuple[ItemDelta, _Answer | Exception]] = []
        for batch, answers in self._table.side_by_side(partial(self._write_together, part), calls_of(recent)):
            if not isinstance(answers, Exception):
                answered += [(item, answer) for item, answer in zip(batch, answers, strict=True) if answer]
        done = {id(item) for item, _ in answered}
        alone = [item for item in items if id(item) not in done]
        return [*answered, *self._table.side_by_side(partial(self._write, part), alone)]

    def _is_recent(self, item: ItemDelta, part: Part) -> bool:
        """Whether an item is there for all that is known, and need not be looked at."""
        if self._once is None or item.page is not None or not fits(*item.deltas[0].measures.values()):
            return False
        key = item.layout.key(item.deltas[0].group, part.watermark.shard)
        return self._pruner.looks.is_recent(tuple(key.values()))

    def _write_together(self, part: Part, items: Sequence[ItemDelta]) -> list[_Answer | None]:
        """Update items in one request; None for an item that has not been updated by it for certain."""
        assert self._once is not None
        answers: list[_Answer | None] = [None] * len(items)
        statements = dict[int, Any]()
        for index, item in enumerate(items):
            statement = item.update(part).statement(self._table.name, item.bound(part.watermark))
            # A longer one would make DynamoDB refuse the whole call.
            if len(statement["Statement"]) <= MAX_STATEMENT_CHARACTERS:
                statements[index] = statement
        if not statements or time_left(self._table.clock()) < LONGEST_REQUEST:
            return answers
        # Once: the items get what time there is, each by itself.
        answer: Any = self._once.client.batch_execute_statement(
            Statements=[*statements.values()], ReturnConsumedCapacity="TOTAL"
        )
        for index, response in zip(statements, answer["Responses"], strict=True):
            answers[index] = _settled(response.get("Error"), part)
        # DynamoDB reports the units of all of them.
        if first := next(filter(None, answers), None):
            first.write_units = sum(table.get("CapacityUnits", 0.0) for table in answer.get("ConsumedCapacity", ()))
        return answers

    def _joined(self, deltas: Sequence[Delta], failures: dict[GroupRef, Exception]) -> list[ItemDelta]:
        """Deltas by item; none that fails in a part, and no more if all of a page have failed."""
        items = []
        for item in joined(deltas, self._levels):
            failed = next((failures[ref] for ref in item.refs if ref in failures), None)
            if failed is None:
                items.append(item)
            else:
                failures |= dict.fromkeys(item.refs, failed)
        return items

    def _remember(self, deltas: Sequence[Delta], failures: Collection[GroupRef], part: Part) -> None:
        """Note what groups have applied of a batch that fails, and forget what the next batch is beyond."""
        if not part.changes:
            return
        last, known = part.changes[-1].sequence, self._progress.get(part.watermark.shard, {})
        written = {delta.ref: last for delta in deltas if delta.ref not in failures} if failures else {}
        later = {ref: through for ref, through in known.items() if through > last}
        self._progress[part.watermark.shard] = written | later

    def _write(self, part: Part, item: ItemDelta) -> _Answer:
        for delta in item.deltas:
            assert delta.first <= delta.last, f"records {delta.first} to {delta.last} are out of order"
        update = item.update(part)
        if update.requests > 1 and len(item.deltas) > 1:
            return self._splits.make_room(item, update.requests)
        unfit = [delta for delta in item.deltas if not fits(*delta.measures.values())]
        if unfit:
            return self._quarantine_deltas(item, unfit, part, "the sum has more than 38 digits")
        request = update.request(self._table.name, item.bound(part.watermark))
        returned = self._pruner.looks.returned(tuple(update.key.values()))
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
        grown = self._splits.grown(item.layout, item.page, units, found, len(item.deltas)) if item.page else 0.0
        return _Answer(units + pruned + grown)

    def _refused(self, refusal: Mapping[str, Any], item: ItemDelta, part: Part) -> _Answer:
        # A refused write consumes as much as one that succeeds, but its answer does not say so.
        found: Mapping[str, Any] = refusal.get("Item") or {}
        units = write_units(item_bytes(found))
        if item.page is not None and not self._levels.learn(item.layout.name, item.page, found):
            return _Answer(units, is_elsewhere=True)
        try:
            return _Answer(units, sequence_of(found[part.watermark.name]))
        except UNREADABLE:
            reason = f"the item's watermark {part.watermark.name!r} cannot be read: the record may have been counted"
            return self._quarantine_each(item, part, reason)

    def _unfit(self, item: ItemDelta) -> list[Delta]:
        if item.page is None:
            return item.deltas
        assert item.layout.pages is not None
        page = self._table.read_item(typed_key(item.layout.pages.key(item.page)))
        unfit = []
        for delta in item.deltas:
            added = PageUpdate(item.layout, item.page, {delta.group: delta.measures}).added
            with suppress(LookupError, ValueError):
                if fits(*(parse_number(page.get(name, {"N": "0"})["N"]) + number for name, number in added.items())):
                    continue
            unfit.append(delta)
        return unfit

    def _quarantine_deltas(self, item: ItemDelta, unfit: Sequence[Delta], part: Part, reason: str) -> _Answer:
        """Move the watermark without some deltas, and these to quarantine, in one transaction."""
        if part.watermark.name == REPAIRED:
            # No record has what a repair adds: once redriven, another one might have added it, too.
            fit = [delta for delta in item.deltas if delta not in unfit]
            if not 0 < len(fit) < len(item.deltas):
                return _Answer(applied_through=item.last)
            return replace(self._write(part, replace(item, deltas=fit)), quarantined=len(unfit))
        if len(unfit) > _MOST_ENTRIES:
            is_whole = item.layout.pages is not None and item.layout.pages.is_whole
            return self._quarantine_each(item, part, reason) if is_whole else self._splits.make_room(item)
        move: Any = item.update(part, unfit).request(self._table.name, item.bound(part.watermark))
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
            for change in part.changes
            for of_record in fold(part.plan, [change], {delta.ref: ""}).deltas
            if delta.first <= of_record.first <= delta.last
        ]
        new = sum(map(self._quarantine.put, entries))
        return _Answer(float(len(entries)), item.last, new, len(entries))

    def _entry(self, delta: Delta, part: Part, reason: str) -> dict[str, Any]:
        numbers = {name: format_number(number) for name, number in delta.measures.items()}
        content: dict[str, Any] = {"name": delta.layout.name, "group": list(delta.group), "numbers": numbers}
        if part.changes:
            # All of a part lie on the same side of every cut.
            content["created"] = part.changes[-1].created
        shard = part.watermark.shard
        key_digest = hashlib.sha256(repr(delta.layout.key(delta.group, shard)).encode()).hexdigest()[:32]
        entry_id = f"{delta.first}#{key_digest}#{delta.layout.name}"
        return self._quarantine.item_of(content, shard, entry_id, reason)


def _settled(error: Mapping[str, Any] | None, part: Part) -> _Answer | None:
    """What became of an item's statement, if that is certain."""
    if error is None:
        return _Answer()
    # An item that lacks a number, is gone, or was not shown: a request of its own decides.
    if error.get("Code") == "ConditionalCheckFailed" and part.watermark.name in error.get("Item", {}):
        with suppress(*UNREADABLE):
            return _Answer(applied_through=sequence_of(error["Item"][part.watermark.name]))
    return None
