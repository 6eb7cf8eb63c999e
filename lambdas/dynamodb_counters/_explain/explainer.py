"""The explainer: what adds up to a group at its position in the stream, read while traffic flows.

A group's items are read first; they are its position. Items of its source are read after that, and the stream last,
from the position on: the first change after it shows what an item had contributed. So nothing is asked to stand still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import localcontext
from typing import Any, Final

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._backfill.feeds import Books, Feeds, applied_by, read_after_books
from dynamodb_counters._backfill.verification import counted, judge, with_score
from dynamodb_counters._commit.batch import read_expired
from dynamodb_counters._commit.checkpoints import BOOK, LAST_SEQUENCE, Checkpoint
from dynamodb_counters._control.counted_names import is_moot
from dynamodb_counters._control.registry import Entry, read_registry
from dynamodb_counters._control.run_items import ONLY_SHARD, cut_key, found_by
from dynamodb_counters._declarations import Aggregate, Direct, Window
from dynamodb_counters._declarations.definitions import same_definition
from dynamodb_counters._declarations.groups import canonical_fields
from dynamodb_counters._explain.asked import Asked, Reach, reach_of
from dynamodb_counters._explain.lines import Explanation, ImageLines, Line, LineStore, added
from dynamodb_counters._fold.item_layout import GroupKey, late_parts, require_kept
from dynamodb_counters._fold.page_layout import is_split
from dynamodb_counters._fold.records import NEW, OLD, Record, counted_in, created_of, sequence_number
from dynamodb_counters._items.bookkeeping import stored_marks
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import EXACT, Number
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._items.table_schema import REPAIRED, SCORE, SK, VERSION
from dynamodb_counters._quarantine.quarantine import RECORD, REDRIVEN, STATE, WAITING, redriven_item
from dynamodb_counters._quarantine.redrive_entries import stored_entries
from dynamodb_counters._streams import depth_of
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import Interval, seconds_of, utc
from dynamodb_counters.errors import ChangedError, InvalidArgumentError, UncountedError

_AGAIN: Final = 5
_READ: Final = "~"
"""The rank of what was read: after those of all changes."""

_MOVED: Final = "~~"
"""The rank of what a split moves: it shows what the reads missed, as it went on meanwhile."""

_NO_LINE: Final = Line("left out")

COUNTED_MEANWHILE: Final = "a transaction counted in it meanwhile: explain it again"
GONE_MEANWHILE: Final = "it is gone, and what it had applied is unknown"
REPAIRED_MEANWHILE: Final = "it was repaired, and what it had applied before is unknown: explain it again later"
REDRIVEN_MEANWHILE: Final = "it counts what was redriven lately, or not yet: explain it again later"
_UNEXPLAINED: Final = "nothing explains it: verify, and repair"
_LATE: Final = "its time is over: what came late was not counted, and nothing shows which"
_NOT_WHOLE: Final = "its declaration does not count everything yet: backfill it"
_GIVEN_UP: Final = "Lambda may have given up on records: redrive what is in the on-failure bucket"


@dataclass(slots=True, kw_only=True)
class Explainer:
    """Explains the groups that are asked for as they are when it is called."""

    table: Table
    feeds: Feeds
    asked: Asked
    reach: Reach
    entry: Entry
    """What the registry says of the name."""
    _books: dict[str, Books] = field(init=False)
    _items: dict[GroupKey, list[Image]] = field(init=False)
    _applied: dict[GroupKey, dict[str, str]] = field(init=False)
    _store: LineStore = field(init=False)
    _of: ImageLines = field(init=False)
    _parents: dict[str, str] = field(init=False)
    _unsure: dict[GroupKey, str] = field(init=False)
    _cuts: dict[str, str] = field(init=False)
    _redriven: set[tuple[str, str]] = field(init=False)
    """Records of which something was redriven, by shard and sequence number."""

    def explained(self, *, scan: bool = True) -> Explanation:
        """Explain them; `scan` is whether the whole table may be read."""
        if not self.reach.ranges and not scan:
            raise InvalidArgumentError("scan", scan, f"True, for a Scan that takes {self.reach.units:,} read units")
        for _ in self.table.tries(_AGAIN):
            read_at = self._read()
            rest = self._read_tail()
            left, pause = read_at + self.feeds.clocks - self.table.clock(), 1.0
            while left > 0 and any(line.kind == "difference" for line in rest):
                # By the end, the stream has all that was written before it was read.
                self.table.sleep(min(left, pause))
                left, pause = left - pause, 2 * pause
                rest = self._read_tail()
            if COUNTED_MEANWHILE not in self._unsure.values() or not self._has_moved():
                break
        about: dict[str, Any] = {"explains": self.asked.declaration.name, "values": dict(self.asked.texts)}
        if (interval := self.asked.interval) is not None:
            about["span"] = [utc(one).isoformat() for one in (interval.start, interval.end)]
        with localcontext(EXACT):
            numbers = added(self.asked.counted(group, self._number(group)) for group in self._items)
        return Explanation(about, numbers, self._position(), rest, self._store)

    def _read(self) -> float:
        """Read the groups, then what they count, strongly consistent; return when all was read."""
        table, asked = self.table, self.asked
        shards = [shard.id for shard in self.feeds.shards()]
        self._books, self._items = read_after_books(table, shards, lambda: asked.read(table), table.clock)
        self._store, self._applied, self._unsure, self._cuts = LineStore(), {}, {}, {}
        self._of = ImageLines(asked, self.feeds.origins(table), table.clock())
        for item in self.reach.items():
            keys = {name: item[name] for name in self.reach.source.key_names}
            for (one, group), line in self._of.lines(item, keys, self.reach.source.is_foreign).items():
                self._store.put(one, repr(group), _READ, line)
                self._items.setdefault(group, [])
        return table.clock()

    def _read_tail(self) -> list[Line]:
        """Read the stream from the groups' positions on; return what the lines of items do not show."""
        self._parents = {shard.id: shard.parent or "" for shard in self.feeds.shards()}
        self._applied, self._redriven = {}, set()
        for item in stored_entries(self.table):
            if item.get(STATE) == {"S": WAITING}:
                self._take_entry(item)
            elif item.get(STATE) == {"S": REDRIVEN}:
                of, number = [*item[SK]["S"].split("#"), ""][:2]
                self._redriven.add((of.partition(BOOK)[0], number))
        self.table.each(self._read_shard, list(self._parents))
        return list(self._rest())

    def _read_shard(self, shard: str) -> None:
        after = self._position_of([])[shard]
        for record in self.feeds.records(shard, after) if after < LAST_SEQUENCE else ():
            images, sequence = record["dynamodb"], sequence_number(record)
            entry = redriven_item(images)
            if entry is not None:
                self._take_entry(entry, shard, sequence)
            elif (images.get(OLD) or images.get(NEW)) and not self._is_in_baseline(shard, record):
                self._take(shard, record, f"{depth_of(shard, self._parents):06}{sequence}")

    def _take(self, shard: str, record: Record, rank: str) -> None:
        """Take the first change of an item after a group's position: what it had contributed before."""
        images, sequence = record["dynamodb"], sequence_number(record)
        is_foreign = self.feeds.is_foreign(shard)
        old, new = images.get(OLD), images.get(NEW)
        marks = () if is_foreign else stored_marks(old, new)
        before, after = (self._of.lines(one, images["Keys"], is_foreign, marks) for one in (old, new))
        is_direct = old is None and self.asked.declaration.name in counted_in(new)
        is_moved = self._of.pages is not None and is_split(old, new)
        if self._of.pages is not None and VERSION in (old or new):
            # Groups move from page to page, and so from shard to shard: pages count their updates.
            before_it = int(old[VERSION]["N"]) if old else int(new[VERSION]["N"]) - 1
            rank = f"{before_it:0{len(rank)}}"
        shows = after if old is None and (is_direct or is_moved) else before
        for one, group in {**before, **after}:
            line, other = (lines.get((one, group), _NO_LINE) for lines in (before, after))
            is_changed = is_moved or line.adds != other.adds
            if is_changed and sequence > self._applied_in(group, shard):
                self._store.put(one, repr(group), _MOVED if is_moved else rank, shows.get((one, group)))
                if is_direct:
                    self._unsure[group] = COUNTED_MEANWHILE
                elif not is_moved and (why := self._unknown(group, shard, sequence)):
                    self._unsure.setdefault(group, why)

    def _unknown(self, group: GroupKey, shard: str, sequence: str) -> str:
        """Why it is unknown whether a group had applied a record beyond its position; an empty text if it had not."""
        if not (items := self._items.get(group)):
            return GONE_MEANWHILE
        if (shard, sequence) in self._redriven:
            return REDRIVEN_MEANWHILE
        # A group that was lost has no watermarks after its repair.
        is_lost = not self._applied_in(group, shard) and any(REPAIRED in item for item in items)
        return REPAIRED_MEANWHILE if is_lost else ""

    def _take_entry(self, entry: Image, shard: str = "", sequence: str = "") -> None:
        """Take an entry that waits, or is redriven after a group's position, if it is of a record before that."""
        if is_moot(self.table, self.entry, entry):
            return
        of, number, image = [*entry[SK]["S"].split("#"), "", ""][:3]
        is_of_run = RECORD in entry and (of.startswith(found_by("")) or not image.endswith("Image"))
        for (one, group), line in self._of.waiting(entry).items():
            is_before = is_of_run or number <= self._applied_in(group, of.partition(BOOK)[0], number)
            if is_before and not (shard and sequence <= self._applied_in(group, shard)):
                self._store.put(one, repr(group), _READ, line)

    def _applied_in(self, group: GroupKey, shard: str, unknown: str = "") -> str:
        """The last record of a shard that a group has applied."""
        if group not in self._applied:
            self._applied[group] = self._position_of(self._items.setdefault(group, []))
        return self._applied[group].get(shard, unknown)

    def _position_of(self, items: list[Image]) -> dict[str, str]:
        # No watermark is pruned yet of a shard that has begun since.
        applied = applied_by(items, {shard: [(shard, Checkpoint())] for shard in self._parents} | self._books)
        only = applied.pop(ONLY_SHARD, "")
        applied |= {shard: through or only for shard, through in applied.items()}
        for shard in [shard for shard, through in applied.items() if through]:
            while shard := self._parents.get(shard, ""):
                # It was delivered to its end before its child.
                applied[shard] = LAST_SEQUENCE
        return applied

    def _is_in_baseline(self, shard: str, record: Record) -> bool:
        """Whether a record comes before the cut of the run that has filled the name."""
        run, since = self.entry.run, self.entry.since
        if not run:
            return False
        if shard not in self._cuts:
            item = self.table.read_item(cut_key(run, shard))
            self._cuts[shard] = item["cut"]["S"] if item else LAST_SEQUENCE
        cut = self._cuts[shard]
        # Where no cut is written, no record is near it.
        return created_of(record) < since + (SKEW if cut < LAST_SEQUENCE else 0) and sequence_number(record) < cut

    def _has_moved(self) -> bool:
        """Whether the groups were written since they were read."""
        now = self.asked.read(self.table)
        return any(now.get(group, []) != items for group, items in self._items.items())

    # Lines that no item shows

    def _rest(self) -> Iterator[Line]:
        """How each group differs from what all lines add up to."""
        sums: dict[str, dict[str, Number]] = {}
        about: Any = {"source": self.asked.declaration.name}
        with localcontext(EXACT):
            for part, line in self._store.lines():
                sums[part] = added((sums.get(part, {}), line.adds))
            for group, items in self._items.items():
                named = self._of.named(group)
                expected = with_score(self.asked.declaration, sums.get(repr(group), {}))
                found = counted(self.asked.declaration, group, items)
                found = self.asked.counted(group, found) | ({SCORE: found[SCORE]} if SCORE in found else {})
                if missing := added((expected, {name: -number for name, number in found.items()})):
                    for why, numbers in self._judged(group, missing):
                        adds = {name: -number for name, number in numbers.items() if name != SCORE}
                        apart = f"; its score differs by {-numbers[SCORE]}" if SCORE in numbers else ""
                        yield Line("difference", adds, group=named, reason=why + apart, **about)

    def _judged(self, group: GroupKey, missing: Mapping[str, Number]) -> Iterator[tuple[str, Mapping[str, Number]]]:
        declared, layout, now = self.asked.declaration, self.asked.layout, self.table.clock()
        until = read_expired(self.table).get(declared.name)
        is_late = late_parts(declared, group, now) or (layout.closing_time and layout.closing_time(group) <= now)
        known = (book for each in self._books.values() for _, book in each)
        for _, why, numbers in judge(declared, group, missing, until, is_gone=not self._items[group]):
            reasons = {
                self._unsure.get(group, ""): True,
                _LATE: is_late,
                _NOT_WHOLE: not self.entry.is_complete,
                why: why,
                _GIVEN_UP: any(book.successor for book in known),
            }
            yield next((reason for reason, holds in reasons.items() if reason and holds), _UNEXPLAINED), numbers

    def _number(self, group: GroupKey) -> dict[str, Number]:
        """The numbers that its items hold."""
        items = self._items[group]
        found = counted(self.asked.declaration, group, items)
        return {name: number for name, number in found.items() if name != SCORE}

    def _position(self) -> dict[str, str]:
        """By shard, from the least record to the greatest where groups differ."""
        found: dict[str, str] = {}
        for shard, through in sorted(self._position_of([]).items()):
            ends = sorted({self._applied_in(group, shard) for group in self._items} or {through})
            told = ["end" if each == LAST_SEQUENCE else each.lstrip("0") or "-" for each in (ends[0], ends[-1])]
            found |= {shard: "..".join(dict.fromkeys(told))} if ends != [""] else {}
        return found


def make_explainer(
    table: Table,
    feeds: Feeds,
    declared: Any,
    values: Mapping[str, object],
    ends: tuple[datetime | None, datetime | None] = (None, None),
) -> Explainer:
    """Make what explains groups of a declaration."""
    wanted = getattr(declared, "_parts", (declared,))[-1]
    if not isinstance(wanted, Aggregate | Window) or isinstance(wanted.source, Direct):
        allowed = "an Aggregate of events or items, Window, Distinct, Percentiles, Extremes or ActiveMembers"
        raise InvalidArgumentError("declaration", getattr(declared, "name", declared), allowed)
    entry = read_registry(table).entries.get(wanted.name)
    declaration = entry.declaration if entry is not None else None
    if entry is None or declaration is None:
        raise UncountedError(wanted.name)
    if not same_definition(declaration, wanted):
        raise ChangedError(wanted.name)
    texts = canonical_fields(declaration, declaration.fields, values)
    if isinstance(declaration, Aggregate):
        require_kept(declaration, texts, table.clock())
    asked = Asked(declaration, texts, _interval(declaration, *ends))
    return Explainer(table=table, feeds=feeds, asked=asked, reach=reach_of(asked, *feeds.tables(table)), entry=entry)


def _interval(declared: Aggregate | Window, start: datetime | None, end: datetime | None) -> Interval | None:
    if start is None or end is None:
        if start is not end:
            raise InvalidArgumentError("start" if start is None else "end", None, "both ends of a span, or neither")
        return None
    begin, until = seconds_of("start", start), seconds_of("end", end)
    if begin >= until:
        raise InvalidArgumentError("end", end, "a moment after start")
    if isinstance(declared, Window):
        return Interval.around(begin, until, declared._unit)
    if not any(map(tier_of, declared.fields)):
        raise InvalidArgumentError("start", start, f"no span: groups of {declared.name!r} have no time")
    return Interval.around(begin, until, 1)
