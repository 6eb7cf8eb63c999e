"""The commit: one update per item, which counts each record exactly once, as `dynamodb_counters.exactly_once` says.

What the kernel leaves to it: checkpoints, up to which no record comes again; groups that share an item, a *page*; what
an item cannot take; what a failed batch has written. The condition is `ItemDelta.bound`, under its timeline.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeGuard

from botocore.exceptions import BotoCoreError, ClientError

from counters_lambda.counting.run_logs import RUN_RETENTION
from dynamodb_counters import exactly_once as kernel
from dynamodb_counters._assumptions import CHECKPOINT_KEPT, FRESH, KEPT_LONGER, LONGEST_REQUEST, SETTLED_AFTER
from dynamodb_counters._declarations.groups import Key, typed_key
from dynamodb_counters._fold.fold import Delta, fold
from dynamodb_counters._fold.layouts import BITS, GroupRef, ItemLayout, Page, PageUpdate, Update, is_full
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Change
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import fits, format_number, parse_number
from dynamodb_counters._quarantine import UNREADABLE, Quarantine
from dynamodb_counters._registry import PageLevels
from dynamodb_counters._table import MAX_STATEMENT_CHARACTERS, Table, calls_of, time_left
from dynamodb_counters._tiers import MINUTE
from dynamodb_counters.errors import CheckpointError, CommitError
from dynamodb_counters.exactly_once import PRUNED_AT, Watermark, shard_digest

WORTH_A_WRITE: Final = 100  # Items touched since the checkpoint moved.
_FORWARD: Final = "attribute_not_exists(applied_through) OR applied_through < :applied_through"
_READ_AGAIN: Final = 5 * MINUTE  # After this, a checkpoint that has not settled is read again, to prune.
_KEYS_PER_CALL: Final = 100
_READ_NO_MORE: Final = RUN_RETENTION + KEPT_LONGER  # After this, no run reads what an item has counted of its log.
_SPARE_BYTES: Final = 64
_MOST_ENTRIES: Final = 99  # Entries of the quarantine next to an update in one transaction.
_FEW: Final = 8  # Groups of a page in one update: where it has more, both halves of the page would be written as often.
_LARGE: Final = 4.0  # Write units up to which such a page stays whole: it still takes half a unit to read.
_MOST_HALVINGS: Final = 6  # A transaction has at most 100 items.
_MOST_REMEMBERED: Final = 20_000

_Joined: TypeAlias = tuple[list[Delta], Page | None]  # Deltas of an item, and which page it is, if it is one.


@dataclass(frozen=True, slots=True)
class Part:
    plan: Plan
    changes: Sequence[Change]  # Consecutive ones of a shard, which the same names count.
    watermark: Watermark


class ItemDelta:
    """Deltas that go to one item; `page` if that is a page."""

    def __init__(self, deltas: Sequence[Delta], page: Page | None) -> None:
        self.deltas, self.page, self.layout = deltas, page, deltas[0].layout
        self.refs = [delta.ref for delta in deltas]
        self.first, self.last = min(delta.first for delta in deltas), max(delta.last for delta in deltas)

    # The timeline of a record:
    #   delivered  dropped if its shard's checkpoint, read at most FRESH ago, covers it
    #   folded     with its batch, to a delta per group, from a `first` record to a `last`
    #   updated    the item takes delta and watermark if it has counted none of it, which is the condition; if it
    #              refuses, it shows its watermark, and what comes after that is folded and sent again
    #   committed  all items of the batch are brought so far, and the rest is in quarantine
    #   covered    the checkpoint has moved so far, stamped with its writer's deadline, until which the write may land
    #   settled    SETTLED_AFTER the stamp: every invocation that may still run has read that checkpoint, or a later one
    #   pruned     so watermarks at or below it refuse nothing any more, and may go
    def bound(self, watermark: Watermark) -> kernel.Bound:
        """Return what the item's watermark must be less than: it has counted none of this."""
        return watermark.name, watermark.bound(int(self.first))

    def update(self, part: Part, without: Iterable[Delta] = ()) -> Update:
        """Return the update that adds them, but those of some deltas, of which the item only takes note."""
        watermark, group, ignored = part.watermark, self.deltas[0].group, {delta.group for delta in without}
        measures = {delta.group: delta.measures for delta in self.deltas if delta.group not in ignored}
        if self.page is None:
            update = Update(self.layout, group, measures.get(group, {}), watermark.shard)
        else:
            update = PageUpdate(self.layout, self.page, measures or {group: None})
        # Without a time, the watermarks of a backfill stay.
        created = part.changes[-1].created if part.changes else None
        update.attributes[watermark.name] = watermark.value(int(self.last), created or 0.0)
        return update


@dataclass(slots=True)
class Committed:
    updated: int = 0  # Items written.
    skipped: int = 0  # Items that an earlier delivery had brought as far.
    quarantined: int = 0  # Entries.
    unguarded: int = 0  # Entries of items that take no watermark: only the checkpoint keeps them from counting again.
    write_units: float = 0.0  # As reported.


@dataclass(slots=True)
class _Answer:
    write_units: float = 0.0
    applied_through: str | None = None  # The item's watermark, if it refused the update.
    quarantined: int = 0
    unguarded: int = 0
    is_elsewhere: bool = False  # Whether the groups lie in other pages than it was thought.


class Committer:
    """Writes deltas to one table, each until the invocation's time is up."""

    def __init__(self, table: Table, quarantine: Quarantine, checkpoints: Checkpoints, once: Table | None) -> None:
        self._table, self._quarantine, self._checkpoints = table, quarantine, checkpoints
        self._once = once  # For requests of many updates, which need not succeed.
        self._levels, self._splits = PageLevels.of_table(table), PageSplits(table)
        self._progress: dict[str, dict[GroupRef, str]] = {}  # By shard: what groups have applied of failed batches.

    def commit(self, deltas: Sequence[Delta], part: Part) -> Committed:
        """Write the deltas of a part; `CommitError` means that some are not written: deliver the batch again."""
        failures: dict[GroupRef, Exception] = {}
        # An earlier delivery, which failed, has written the others.
        progress = self._progress.get(part.watermark.shard, {})
        remaining = sorted((delta for delta in deltas if delta.last > progress.get(delta.ref, "")), key=place_of)
        result = Committed(skipped=len(deltas) - len(remaining))
        while remaining:
            applied_through: dict[GroupRef, str] = {}
            elsewhere: list[Delta] = []
            for item, answer in self._written(part, self._joined(remaining, failures)):
                if isinstance(answer, Exception):
                    failures |= dict.fromkeys(item.refs, answer)
                    # A page that lacks them must not be written: its watermark would cover them.
                    elsewhere += item.deltas if item.page is not None else ()
                    continue
                result.write_units += answer.write_units
                result.quarantined += answer.quarantined
                result.unguarded += answer.unguarded
                if answer.is_elsewhere:
                    elsewhere += item.deltas
                elif answer.applied_through is None:
                    result.updated += 1
                elif answer.applied_through >= item.last or not part.changes:
                    result.skipped += 1
                else:
                    applied_through |= dict.fromkeys(item.refs, answer.applied_through)
            # Again for some groups, each from after the record it has applied.
            again = fold(part.plan, part.changes, applied_through).deltas if applied_through else ()
            remaining = sorted([*elsewhere, *again], key=place_of)
        self._remember(deltas, failures, part)
        if failures:
            raise CommitError(list(failures.values()))
        return result

    def _written(self, part: Part, items: Sequence[ItemDelta]) -> list[tuple[ItemDelta, _Answer | Exception]]:
        """Write items: those that this process has updated lately many at once, and alone what that does not settle."""
        recent = [item for item in items if self._is_recent(item, part)]
        answered: list[tuple[ItemDelta, _Answer | Exception]] = []
        for batch, answers in self._table.side_by_side(partial(self._write_together, part), calls_of(recent)):
            if not isinstance(answers, Exception):
                answered += [(item, answer) for item, answer in zip(batch, answers, strict=True) if answer]
        settled = {id(item) for item, _ in answered}
        alone = [item for item in items if id(item) not in settled]
        return [*answered, *self._table.side_by_side(partial(self._write, part), alone)]

    def _is_recent(self, item: ItemDelta, part: Part) -> bool:
        """Return whether an item is there for all that is known, and need not be looked at."""
        if self._once is None or item.page is not None or not fits(*item.deltas[0].measures.values()):
            return False
        key = item.layout.key(item.deltas[0].group, part.watermark.shard)
        return self._checkpoints.looks.is_recent(tuple(key.values()))

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
        send: Any = self._once.client.batch_execute_statement  # Once: the items get what time there is, each by itself.
        answer = send(Statements=[*statements.values()], ReturnConsumedCapacity="TOTAL")
        for index, response in zip(statements, answer["Responses"], strict=True):
            answers[index] = _settled(response.get("Error"), part)
        if first := next(filter(None, answers), None):  # DynamoDB reports the units of all of them.
            first.write_units = sum(table.get("CapacityUnits", 0.0) for table in answer.get("ConsumedCapacity", ()))
        return answers

    def _joined(self, deltas: Sequence[Delta], failures: dict[GroupRef, Exception]) -> list[ItemDelta]:
        """Join deltas by item; none that fails in a part, and no more if all of a page have failed."""
        items = joined(deltas, self._levels)
        for item in items:
            if failure := next((failures[ref] for ref in item.refs if ref in failures), None):
                failures |= dict.fromkeys(item.refs, failure)
        return [item for item in items if item.refs[0] not in failures]

    def _remember(self, deltas: Sequence[Delta], failures: Collection[GroupRef], part: Part) -> None:
        """Note what groups have applied of a batch that fails, and forget what the next batch is beyond."""
        if not part.changes:
            return
        last, progress = part.changes[-1].sequence, self._progress.get(part.watermark.shard, {})
        written = {delta.ref: last for delta in deltas if delta.ref not in failures} if failures else {}
        later = {ref: through for ref, through in progress.items() if through > last}
        self._progress[part.watermark.shard] = written | later

    def _write(self, part: Part, item: ItemDelta) -> _Answer:
        for delta in item.deltas:
            assert delta.first <= delta.last, f"records {delta.first} to {delta.last} are out of order"
        update = item.update(part)
        if update.requests > 1 and len(item.deltas) > 1:
            return self._split(item, update.requests)
        if unfit := [delta for delta in item.deltas if not fits(*delta.measures.values())]:
            return self._quarantine_deltas(item, unfit, part, "the sum has more than 38 digits")
        request = update.request(self._table.name, item.bound(part.watermark))
        returned = self._checkpoints.looks.returned(tuple(update.key.values()))
        client = self._table.client
        try:
            answer = client.update_item(**request, ReturnConsumedCapacity="TOTAL", ReturnValues=returned)
        except client.exceptions.ConditionalCheckFailedException as error:
            return self._refused(dict(error.response), item, part)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationException":
                raise
            # The item cannot take it: a sum beyond 38 digits, or an attribute that is not a number.
            return self._quarantine_deltas(item, self._unfit(item), part, error.response["Error"]["Message"])
        units, image = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0), answer.get("Attributes")
        pruned = self._checkpoints.prune(request["Key"], image, part.watermark.name) if image else 0.0
        grown = self._splits.grown(item.layout, item.page, units, image, len(item.deltas)) if item.page else 0.0
        return _Answer(units + pruned + grown)

    def _refused(self, refusal: Mapping[str, Any], item: ItemDelta, part: Part) -> _Answer:
        # A refused write consumes as much as one that succeeds, but its answer does not say so.
        image: Mapping[str, Any] = refusal.get("Item") or {}
        units = schema.write_units(schema.item_bytes(image))
        if item.page is not None and not self._levels.learn(item.layout.name, item.page, image):
            return _Answer(units, is_elsewhere=True)
        try:
            return _Answer(units, schema.sequence_of(image[part.watermark.name]))
        except UNREADABLE:
            reason = f"the item's watermark {part.watermark.name!r} cannot be read: the record may have been counted"
            return self._quarantine_each(item, part, reason)

    def _split(self, item: ItemDelta, requests: float) -> _Answer:
        self._splits.make_room(item.deltas[0], item.page, requests)
        return _Answer(is_elsewhere=True)

    def _unfit(self, item: ItemDelta) -> Sequence[Delta]:
        if item.page is None:
            return item.deltas
        page = self._table.read_item(_page_key(item.layout, item.page))
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
        if part.watermark.name == schema.REPAIRED:
            # No record has what a repair adds: once redriven, another one might have added it, too.
            fit = [delta for delta in item.deltas if delta not in unfit]
            if not 0 < len(fit) < len(item.deltas):
                return _Answer(applied_through=item.last)
            return replace(self._write(part, ItemDelta(fit, item.page)), quarantined=len(unfit))
        if len(unfit) > _MOST_ENTRIES:
            is_whole = item.layout.pages is not None and item.layout.pages.is_whole
            return self._quarantine_each(item, part, reason) if is_whole else self._split(item, 2)
        table = self._table.name
        writes: list[Any] = [{"Update": item.update(part, unfit).request(table, item.bound(part.watermark))}]
        writes += [{"Put": schema.put_as_seen(table, self._entry(delta, part, reason), {}, ())} for delta in unfit]
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
        return _Answer(units, quarantined=len(unfit))

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
            content["created"] = part.changes[-1].created  # All of a part lie on the same side of every cut.
        shard = part.watermark.shard
        entry_id = f"{delta.first}#{_digest(delta.layout.key(delta.group, shard), 32)}#{delta.layout.name}"
        return self._quarantine.item_of(content, shard, entry_id, reason)


def _settled(error: Mapping[str, Any] | None, part: Part) -> _Answer | None:
    if error is None:
        return _Answer()
    # An item that lacks a number, is gone, or was not shown: a request of its own decides.
    if error.get("Code") == "ConditionalCheckFailed" and part.watermark.name in error.get("Item", {}):
        with suppress(*UNREADABLE):
            return _Answer(applied_through=schema.sequence_of(error["Item"][part.watermark.name]))
    return None


def _digest(key: object, characters: int = 16) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:characters]


def place_of(delta: Delta) -> str:
    """Return what orders groups the same way in every delivery: those that share a page side by side."""
    layout = delta.layout
    if layout.pages is None:
        return _digest(delta.ref)
    shelf, number = layout.address(delta.group)
    return f"{_digest((layout.name, shelf))}{number:016x}"


def joined(deltas: Sequence[Delta], levels: PageLevels) -> list[ItemDelta]:
    """Join deltas, which are in the order of their places, by item."""
    items: list[_Joined] = []
    for delta in deltas:
        layout, page, group = delta.layout, None, [delta]
        if layout.pages is not None:
            shelf, number = layout.address(delta.group)
            last = _last_page(items, layout.name, shelf)
            if last is not None and number < last.end:
                items[-1][0].append(delta)
                continue
            page = levels.locate(layout.name, shelf, number)
            # A page gets all that a batch has for it, whatever its level is thought to be: its watermark covers them.
            while (last := _last_page(items, layout.name, shelf)) is not None and last.first >= page.first:
                group = [*items.pop()[0], *group]
        items.append((group, page))
    return [ItemDelta(group, page) for group, page in items]


def _last_page(items: Sequence[_Joined], name: str, shelf: str) -> Page | None:
    page = items[-1][1] if items and items[-1][0][0].layout.name == name else None
    return page if page is not None and page.shelf == shelf else None


def _page_key(layout: ItemLayout, page: Page) -> Key:
    assert layout.pages is not None
    return typed_key(layout.pages.key(page))


class PageSplits:
    def __init__(self, table: Table) -> None:
        self._table, self._levels = table, PageLevels.of_table(table)
        self._units: dict[tuple[str, str], float] = {}  # By key: the write units of a page when it was last looked at.

    def grown(self, layout: ItemLayout, page: Page, units: float, item: Mapping[str, Any] | None, groups: int) -> float:
        """Split a page that an update of so many `groups` has brought to so many units; return the units of that."""
        # The page is read if `item` is not what the update has returned of it.
        if layout.pages is None or layout.pages.is_whole:
            return 0.0
        key = (page.shelf, f"{layout.name}{page.first}")
        least = _LARGE if groups > _FEW else 1.0
        if len(self._units) >= _MOST_REMEMBERED:
            self._units.clear()
        if item is None and units <= (limit := max(least, self._units.get(key, 1.0))):
            self._units[key] = limit
            return 0.0
        with suppress(ClientError, BotoCoreError, TimeoutError):  # A later update tries again if this fails.
            item = item or self._table.read_item(_page_key(layout, page))
            halves, spent = [(page, item)] if self._levels.learn(layout.name, page, item) else [], 0.0
            while halves:
                page, item = halves.pop()
                if item and is_full(item, least) and page.level < BITS:
                    spent += 4 * units
                    halves += self._divide(layout, item)
            self._units[key] = 1.0 if spent else units
            return spent
        return 0.0

    def make_room(self, delta: Delta, page: Page | None, requests: float) -> None:
        """Split a delta's page, of which a batch touches so many times the groups that a request takes."""
        layout = delta.layout
        assert page is not None
        key = _page_key(layout, page)
        item = self._table.read_item(key)
        if self._levels.learn(layout.name, page, item):
            attributes = layout.attributes(delta.group, {schema.PK: page.pk, schema.SK: key[schema.SK]["S"]})
            # A page that is lost is of a level.
            item = item or {**key, **attributes, schema.LEVEL: {"N": str(page.level)}}
            self._divide(layout, item, min(_MOST_HALVINGS, math.ceil(math.log2(requests))))

    def _divide(self, layout: ItemLayout, item: Image, times: int = 1) -> list[tuple[Page, Image]]:
        """Halve a page that is as it was read, and its halves; return nothing if it is not."""
        assert layout.pages is not None
        halves = [item]
        for _ in range(times):
            halves = [half for whole in halves for half in layout.pages.halves(whole)]
        before = item if schema.VERSION in item else {}
        stays = schema.put_as_seen(self._table.name, halves[0], before, (schema.VERSION,))
        # The new pages are not there, or are what a restore has left of a split.
        goes = [{"Put": {"TableName": self._table.name, "Item": half}} for half in halves[1:]]
        if not self._table.write_together([{"Put": stays}, *goes]):
            return []
        pages = [(page, half) for half in halves if (page := layout.pages.page_of(half))]
        for page, half in pages:
            self._levels.learn(layout.name, page, half)
        return pages


@dataclass(frozen=True, slots=True)
class Checkpoint:
    applied_through: str = ""  # The record up to which all batches of a shard are committed, padded; "" for none.
    at: float = 0.0  # Its stamp, in seconds since 1970.

    def settled_through(self, now: float) -> str:
        """Return the record at or beyond which every invocation that may still run has read a checkpoint."""
        return self.applied_through if self.at + SETTLED_AFTER < now else ""


def is_sequence(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.isdecimal() and len(text) == schema.SEQUENCE_DIGITS


def checkpoint_key(digest: str) -> dict[str, Any]:
    return schema.bookkeeping_key("CHECKPOINT", digest)


def checkpoint_of(item: Mapping[str, Any]) -> Checkpoint:
    """Return the checkpoint that a shard's item holds, if there is one; refuse one that is malformed."""
    if not item:
        return Checkpoint()
    pk, sk = item[schema.PK]["S"], item[schema.SK]["S"]
    # Either name of two shards with the same digest is right.
    with suppress(LookupError, ValueError):
        applied_through, digest = item["applied_through"]["S"], shard_digest(item["shard"]["S"])
        if is_sequence(applied_through) and digest == pk.removeprefix(schema.CHECKPOINT_PREFIX):
            return Checkpoint(applied_through, float(item["at"]["N"]))
    raise CheckpointError(
        f"the item {pk!r}, {sk!r} is malformed: delete it, then run `counters verify --repair`, as records may have "
        "been counted twice"
    )


@dataclass(slots=True)
class _Observed:
    settled: str = ""
    pending: Checkpoint = Checkpoint()
    read_at: float = 0.0

    def observe(self, checkpoint: Checkpoint, now: float) -> None:
        """Take note of a checkpoint; one that was read earlier settles, too, although it has moved since."""
        self.settled = max(self.settled, checkpoint.settled_through(now), self.pending.settled_through(now))
        if self.settled >= self.pending.applied_through:
            self.pending = checkpoint


class Checkpoints:
    """The checkpoints of one table, as a process knows them, which prunes an item at most every ten minutes by them."""

    def __init__(self, table: Table, retrying: Table) -> None:
        self._table, self._once = retrying, table  # The latter for requests that may as well be done later.
        self._read: dict[str, tuple[Checkpoint, float]] = {}
        self._touched: Counter[str] = Counter()
        self._observed: dict[str, _Observed] = {}  # By the digest of a shard whose watermarks it prunes.
        self.looks = kernel.Looks(table.clock)

    def of(self, shard: str, last: str) -> Checkpoint:
        """Return the checkpoint of a shard whose batch ends with `last`."""
        cached, read_at = self._read.get(shard, (None, 0.0))
        now = self._table.clock()
        if cached is not None and (cached.applied_through >= last or read_at + FRESH > now):
            return cached
        checkpoint = self._read_item(shard)
        self._read[shard] = checkpoint, now
        return checkpoint

    def committed(self, shard: str, last: str, touched: int, deadline: float) -> float:
        """Note that a batch is committed; move the checkpoint if that is worth a write, and return its units."""
        self._touched[shard] += touched
        return self._move(self._once, shard, last, deadline) if self._touched[shard] >= WORTH_A_WRITE else 0.0

    def advance(self, shard: str, last: str, deadline: float) -> float:
        """Move the checkpoint forward to `last`, where nothing may do so later; return the units."""
        return self._move(self._table, shard, last, deadline)

    def _move(self, table: Table, shard: str, last: str, deadline: float) -> float:
        checkpoint, read_at = self._read.get(shard) or (self._read_item(shard), self._table.clock())
        if last <= checkpoint.applied_through:
            return 0.0
        expires_at = math.ceil(self._table.clock() + CHECKPOINT_KEPT)
        values = {schema.TYPE: schema.CHECKPOINT, "shard": shard, schema.TTL: expires_at, "applied_through": last}
        # The stamp is rounded up: a later one is only cautious.
        written = schema.typed_values({**values, "at": math.ceil(deadline)})
        try:
            table.client.update_item(
                TableName=table.name,
                Key=checkpoint_key(shard_digest(shard)),
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in written),
                ConditionExpression=_FORWARD,
                ExpressionAttributeNames={f"#{name}": name for name in written},
                ExpressionAttributeValues={f":{name}": value for name, value in written.items()},
            )
        except (ClientError, BotoCoreError):
            self._read.pop(shard, None)  # An old checkpoint is only cautious.
        else:
            self._touched[shard] = 0
            self._read[shard] = Checkpoint(last, deadline), read_at
        return 1.0

    def _read_item(self, shard: str) -> Checkpoint:
        item = self._table.read_item(checkpoint_key(shard_digest(shard)))
        checkpoint = checkpoint_of(item)
        if item and item["shard"]["S"] != shard:
            raise CheckpointError(f"the shards {shard!r} and {item['shard']['S']!r} have the same digest")
        return checkpoint

    def settled(self, watermarks: Mapping[str, tuple[int, float]]) -> set[str]:
        """Return the names of watermarks at or below a checkpoint of their shard that has settled."""
        prefix, digits = kernel.WATERMARK_PREFIX, schema.SEQUENCE_DIGITS
        sequences = {name.removeprefix(prefix): f"{number:0{digits}}" for name, (number, _) in watermarks.items()}
        now = self._table.clock()
        observed = {digest: self._observed.setdefault(digest, _Observed()) for digest in sequences}
        unsettled = [digest for digest, sequence in sequences.items() if observed[digest].settled < sequence]
        old = [digest for digest in unsettled if observed[digest].read_at + _READ_AGAIN <= now]
        for start in range(0, len(old), _KEYS_PER_CALL):
            digests = old[start : start + _KEYS_PER_CALL]
            # An old answer is only cautious, so the read need not be consistent, nor complete.
            keys = [checkpoint_key(digest) for digest in digests]
            answer = self._once.client.batch_get_item(RequestItems={self._table.name: {"Keys": keys}})
            for digest in digests:
                observed[digest].read_at = now
            for item in answer["Responses"].get(self._table.name, []):
                with suppress(CheckpointError):
                    digest = item[schema.PK]["S"].removeprefix(schema.CHECKPOINT_PREFIX)
                    observed[digest].observe(checkpoint_of(item), now)
        return {prefix + digest for digest, sequence in sequences.items() if sequence <= observed[digest].settled}

    def prune(self, key: Mapping[str, Any], item: Mapping[str, Any], own: str) -> float:
        """Remove what guards nothing from the item just written, but not the watermark just set; return the units."""
        watermarks = kernel.watermarks_of(item, own)
        if not _saves_a_unit(item, watermarks):
            return 0.0
        try:
            aged = kernel.old(watermarks, self._once.clock() - _READ_NO_MORE)
            needless = {*aged, *self.settled(watermarks)}
            if not _saves_a_unit(item, needless):
                return 0.0
            # Only what was read is removed: a shard that has moved on keeps its watermark.
            request = kernel.prune_request(self._once.name, key, item, needless)
            answer = self._once.client.update_item(**request, ReturnConsumedCapacity="TOTAL")
            return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        except (ClientError, BotoCoreError):
            return schema.write_units(schema.item_bytes(item))  # Housekeeping: a later update tries again.


def _saves_a_unit(item: Mapping[str, Any], watermarks: Collection[str]) -> bool:
    """Return whether an item at, or nearly at, its next write unit is a unit smaller without the watermarks."""
    # A page that is too large splits, and never grows together again.
    if len(watermarks) < (1 if schema.VERSION in item else PRUNED_AT):
        return False
    size, removed = schema.item_bytes(item), schema.item_bytes({name: item[name] for name in watermarks})
    return schema.write_units(size + _SPARE_BYTES) > schema.write_units(size - removed)
