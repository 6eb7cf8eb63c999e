"""The explainer: what adds up to a group at its position in the stream, read while traffic flows.

A group's items are read first; they are its position. Items of its source are read after that, and the stream last,
from the position on: the first change after it shows what an item had contributed. So nothing is asked to stand still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Final, Protocol

from dynamodb_counters._assumptions import CLOCKS, SKEW
from dynamodb_counters._backfill.held import Held, applied_in, books, hold
from dynamodb_counters._backfill.source_table import SourceTable
from dynamodb_counters._backfill.state import State
from dynamodb_counters._backfill.verdicts import counted, judge, shown, tally_of
from dynamodb_counters._commit.checkpoint_items import BOOK, LAST_SEQUENCE, Checkpoint
from dynamodb_counters._commit.expired_items import read_expired
from dynamodb_counters._control.control import read_control, read_declarations
from dynamodb_counters._control.run_items import ONLY_SHARD, RUN_SK_PREFIX, Run, cut_key, found_by
from dynamodb_counters._control.statuses import Status
from dynamodb_counters._declarations import Aggregate, Window
from dynamodb_counters._declarations.generations import base_name, generation_number, read_name
from dynamodb_counters._declarations.groups import require_fields
from dynamodb_counters._explain.asked import Asked
from dynamodb_counters._explain.contributions import Contributing, Found
from dynamodb_counters._explain.explanation import Explanation
from dynamodb_counters._explain.lines import READ, Line, LineStore
from dynamodb_counters._explain.reach import Reach, reach_of
from dynamodb_counters._fold.item_layout import GroupKey, late_parts
from dynamodb_counters._fold.origins import ONE_TABLE, Origins
from dynamodb_counters._fold.page_layout import is_split
from dynamodb_counters._fold.records import NEW, OLD, Record, counted_in, created_of, sequence_number
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import EXACT, Number
from dynamodb_counters._items.discard_marks import stored_marks
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, SCORE, SK, VERSION
from dynamodb_counters._quarantine.quarantine_items import RECORD, STATE, WAITING, redriven_item
from dynamodb_counters._quarantine.redrive_entries import stored_entries
from dynamodb_counters._reads.page_reads import read_items
from dynamodb_counters._streams import Shard, depth_of
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters.errors import UncountedError

_AGAIN: Final = 5
_IMAGE: Final = "Image"

COUNTED_MEANWHILE: Final = "a transaction counted in it meanwhile: explain it again"
GONE_MEANWHILE: Final = "it is gone, and what it had applied is unknown"
TIME_IS_OVER: Final = "its time is over: what came late was not counted, and nothing shows which"
UNEXPLAINED: Final = "nothing explains it: verify and repair the declaration"
NOT_WHOLE: Final = "its declaration does not count everything yet: backfill it"
AS_GOOD: Final = "a value that is as good was there, and need not count again"
TALLY: Final = "increments and resets, and events that were erased or have expired and stay counted"
GIVEN_UP: Final = "Lambda may have given up on records: redrive what is in the on-failure bucket"


class Streams(Protocol):
    """The streams that feed the counts; shards are called as the aggregator calls them."""

    def shards(self) -> list[Shard]: ...

    def records(self, shard: str, after: str) -> Iterable[Record]:
        """Those of a shard from after a padded sequence number on; all for ""."""


@dataclass(slots=True, kw_only=True)
class Explainer:
    """Explains the groups that are asked for, once or again."""

    table: Table
    streams: Streams
    asked: Asked
    reach: Reach
    origins: Origins = ONE_TABLE
    whole: bool = True
    clocks: float = CLOCKS
    _held: dict[GroupKey, Held] = field(init=False, default_factory=dict)
    _store: LineStore = field(init=False)
    _of: Contributing = field(init=False)
    _groups: dict[str, GroupKey] = field(init=False)
    _parents: dict[str, str] = field(init=False)
    _unsure: dict[GroupKey, str] = field(init=False)
    _run: Run | None = field(init=False)
    """The backfill that filled the generation."""
    _cuts: dict[str, str] = field(init=False)
    _unlisted: set[GroupKey] = field(init=False, default_factory=set)

    def explained(self) -> Explanation:
        """The explanation as of where the groups stand now."""
        for again in range(_AGAIN):
            self._read_groups()
            read_at = self._read_sources()
            self._read_tail()
            rest = self._rest()
            if any(line.kind == "difference" for line in rest) and self.table.clock() < read_at + self.clocks:
                # By then, the stream has all that was written before the sources were read.
                self.table.sleep(read_at + self.clocks - self.table.clock())
                self._read_tail()
                rest = self._rest()
            if self._unlisted <= self._held.keys() and not self._counts_directly():
                break
            self.table.sleep(2**again)
        return Explanation(self.asked, self._store, rest, self._numbers(), self._position())

    def _read_groups(self) -> None:
        groups = list(dict.fromkeys((*self.asked.groups(self.table), *self._unlisted)))
        shards = [shard.id for shard in self.streams.shards()]
        held = hold(self.table, [(self.asked.layout, group) for group in groups], shards, self.table.clock)
        self._held = dict(zip(groups, held, strict=True))

        number = generation_number(self.asked.declaration.name)
        runs = self.table.partition(CHECKPOINT_PREFIX, f"{RUN_SK_PREFIX}{number}r") if number else ()
        self._run = next((State.of(each[SK]["S"].removeprefix(RUN_SK_PREFIX), each).run for each in runs), None)
        self._cuts = {}

    def _read_sources(self) -> float:
        """Read what the groups count, strongly consistent; return when all was read."""
        self._store, self._groups, self._unsure = LineStore(), {}, {}
        self._of = Contributing(self.asked, self.origins, self.table.clock())
        is_foreign = self.reach.is_foreign if self.origins.are_two else None
        for item in self.reach.items(self.table):
            keys = {name: item[name] for name in self.reach.key_names}
            for (one, group), lines in _together(self._of.lines(item, keys, is_foreign=is_foreign)).items():
                self._put(one, group, READ, lines)
        for item in stored_entries(self.table):
            if item.get(STATE) == {"S": WAITING}:
                self._put_entry(item)
        return self.table.clock()

    def _read_tail(self) -> None:
        shards = self.streams.shards()
        self._parents = {shard.id: shard.parent for shard in shards}
        for held in self._held.values():
            for shard in self._parents:
                # One that has begun since: no watermark of it has been pruned yet.
                known = [(shard, Checkpoint())]
                if held.applied.setdefault(shard, applied_in(held.items, shard, known)):
                    parent = self._parents[shard]
                    while parent in self._parents:
                        # It was delivered to its end before its child.
                        held.applied[parent], parent = LAST_SEQUENCE, self._parents[parent]
        self.table.each(self._read_shard, [shard.id for shard in shards])

    def _read_shard(self, shard: str) -> None:
        after = min((self._applied(group, shard) for group in self._held), default="")
        for record in self.streams.records(shard, after):
            change = record["dynamodb"]
            entry = redriven_item(change)
            if entry is not None:
                self._put_entry(entry, shard, sequence_number(record))
            elif (change.get(OLD) or change.get(NEW)) and not self._is_in_baseline(shard, record):
                self._take(shard, record)

    def _is_in_baseline(self, shard: str, record: Record) -> bool:
        """Whether a record comes before the cut of the run that filled the generation."""
        if self._run is None:
            return False
        if shard not in self._cuts:
            found = self.table.read_item(cut_key(self._run.id, shard))
            self._cuts[shard] = found["cut"]["S"] if found else ""
        cut, created = self._cuts[shard], created_of(record)
        is_late = created >= self._run.since + (SKEW if cut else 0)
        return not is_late and (not cut or sequence_number(record) < cut)

    def _take(self, shard: str, record: Record) -> None:
        """Take the first change of an item after a group's position: what it had contributed before."""
        change, sequence, pages = record["dynamodb"], sequence_number(record), self._of.pages
        is_foreign = self.origins.is_foreign(record) if self.origins.are_two else None
        images: dict[str, Image] = {name: image for name in (OLD, NEW) if (image := change.get(name)) is not None}
        marks = stored_marks(*images.values()) if not is_foreign else ()
        old, new = (
            _together(self._of.lines(images[name], change["Keys"], is_foreign=is_foreign, marks=marks))
            if name in images
            else {}
            for name in (OLD, NEW)
        )
        shown = images.get(OLD) or images[NEW]
        is_direct = OLD not in images and self.asked.declaration.name in counted_in(shown)
        is_moved = pages is not None and is_split(images.get(OLD), images.get(NEW))
        rank = f"{depth_of(shard, self._parents):06}{sequence}"
        if pages is not None and VERSION in shown:
            # Its groups move from page to page, and so from shard to shard: pages count their updates.
            rank = shown[VERSION]["N"].zfill(len(rank))
        for one, group in {**old, **new}:
            before, after = old.get((one, group), []), new.get((one, group), [])
            is_changed = [line.adds for line in before] != [line.adds for line in after]
            if group in self._held and is_changed | is_moved and sequence > self._applied(group, shard):
                lines = before if old or not (is_direct or is_moved) else after
                self._put(one, group, rank, lines)
                if is_direct:
                    self._unsure[group] = COUNTED_MEANWHILE
                elif not is_moved and not self._held[group].items:
                    self._unsure.setdefault(group, GONE_MEANWHILE)

    def _put_entry(self, entry: Image, shard: str = "", sequence: str = "") -> None:
        """Take an entry that waits, or is redriven after a group's position, if it is of a record before that."""
        of, number, image = [*entry[SK]["S"].split("#"), "", ""][:3]
        is_of_run = RECORD in entry and (of.startswith(found_by("")) or not image.endswith(_IMAGE))
        for found in self._of.waiting(entry):
            held = self._held.get(found.group)
            is_known = held is None or is_of_run or number <= held.applied.get(of.partition(BOOK)[0], number)
            if is_known and not (shard and held is not None and sequence <= self._applied(found.group, shard)):
                self._put(found.item, found.group, READ, [found.line])

    def _put(self, item: str, group: GroupKey, rank: str, lines: list[Line]) -> None:
        if group not in self._held:
            # Its item is not there, but what it should count is.
            self._unlisted.add(group)
            return
        part = repr(group)
        self._groups[part] = group
        self._store.put(item, part, rank, lines)

    def _applied(self, group: GroupKey, shard: str) -> str:
        applied = self._held[group].applied
        return applied[shard] or applied.get(ONLY_SHARD, "")

    def _counts_directly(self) -> bool:
        """Whether a group was written meanwhile in which a transaction has counted before the stream brings it."""
        groups = [group for group, why in self._unsure.items() if why == COUNTED_MEANWHILE]
        found = read_items(self.table, [(self.asked.layout, group) for group in groups], consistent=True)
        return [self._held[group].items for group in groups] != found

    # What lines of items do not show

    def _rest(self) -> list[Line]:
        """The tally of each group, and what it differs by."""
        declared, lines = self.asked.declaration, list[Line]()
        sums = {self._groups[part]: numbers for part, numbers in self._store.sums().items()}
        with localcontext(EXACT):
            for group, held in self._held.items():
                named = self._of.group_of(group)
                if tally := self.asked.counted(group, _added(map(tally_of, held.items))):
                    lines.append(Line("tally", tally, base_name(declared.name), group=named, reason=TALLY))
                found = self._counted(group)
                expected = shown(declared, sums.get(group, {}))
                missing = {name: expected.get(name, 0) - found.get(name, 0) for name in {**expected, **found}}
                if missing := {name: number for name, number in missing.items() if number}:
                    lines += self._judged(group, held, missing)
        return lines

    def _judged(self, group: GroupKey, held: Held, missing: Mapping[str, Number]) -> Iterator[Line]:
        declared, layout, now = self.asked.declaration, self.asked.layout, self.table.clock()
        until = read_expired(self.table).get(declared.name)
        for _, why, numbers in judge(declared, group, missing, until, is_gone=not held.items):
            reason = self._unsure.get(group, why)
            if layout.only is not None and not any(number < 0 for number in numbers.values()):
                reason = AS_GOOD
            elif late_parts(declared, group, now) or (layout.closing_time and layout.closing_time(group) <= now):
                reason = TIME_IS_OVER
            elif not self.whole:
                reason = NOT_WHOLE
            elif any(book.successor for shard in held.applied for _, book in books(self.table, shard)):
                reason = reason or GIVEN_UP
            adds = {name: -number for name, number in numbers.items() if name != SCORE}
            apart = f"; its score differs by {-numbers[SCORE]}" if SCORE in numbers else ""
            named = self._of.group_of(group)
            yield Line(
                "difference", adds, base_name(declared.name), group=named, reason=(reason or UNEXPLAINED) + apart
            )

    def _counted(self, group: GroupKey) -> dict[str, Number]:
        found = counted(self.asked.declaration, group, self._held[group].items)
        return {**self.asked.counted(group, found), **({SCORE: found[SCORE]} if SCORE in found else {})}

    def _numbers(self) -> dict[str, Number]:
        """What the items of all groups hold."""
        with localcontext(EXACT):
            held = [
                self.asked.counted(
                    group, _added([counted(self.asked.declaration, group, one.items), *map(tally_of, one.items)])
                )
                for group, one in self._held.items()
            ]
            return {name: number for name, number in _added(held).items() if number and name != SCORE}

    def _position(self) -> dict[str, str]:
        """By shard, the last record that the groups have applied; from the least to the greatest, if they differ."""
        found: dict[str, str] = {}
        for shard in sorted({shard for held in self._held.values() for shard in held.applied}):
            known = sorted({held.applied.get(shard, "") for held in self._held.values()})
            ends = ["end" if each == LAST_SEQUENCE else each.lstrip("0") or "-" for each in known]
            if ends != ["-"]:
                found[shard] = ends[0] if len(ends) == 1 else f"{ends[0]}..{ends[-1]}"
        return found


def _together(found: Iterable[Found]) -> dict[tuple[str, GroupKey], list[Line]]:
    lines: dict[tuple[str, GroupKey], list[Line]] = {}
    for item, group, line in found:
        lines.setdefault((item, group), []).append(line)
    return lines


def _added(each: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    sums: dict[str, Number] = {}
    for numbers in each:
        for name, number in numbers.items():
            sums[name] = sums.get(name, 0) + number
    return sums


def make_explainer(
    table: Table,
    streams: Streams,
    declared: Aggregate | Window,
    values: Mapping[str, object],
    *,
    interval: Interval | None = None,
    source: SourceTable | None = None,
    clocks: float = CLOCKS,
) -> Explainer:
    """Make what explains groups of a declaration, of the generation that readers use."""
    control = read_control(table)
    base = base_name(declared.name)
    name, status = read_name(base, control.reads), control.statuses.get(base, Status())
    folded = read_declarations(table, control.history.last.deployment) if control.history else None
    kept = next((one for one in folded or () if one.name == name), None)
    if kept is None:
        raise UncountedError(declared.name, control.statuses)
    require_fields(declared.name, [(kept, kept.fields)], values)
    asked = Asked(kept, {field: key_text(field, value) for field, value in values.items()}, interval)
    origins = ONE_TABLE if source is None else Origins(table.name, source.arn)
    reach = reach_of(asked, table, None if source is None else source.scanned)
    return Explainer(
        table=table, streams=streams, asked=asked, reach=reach, origins=origins, whole=status.whole, clocks=clocks
    )
