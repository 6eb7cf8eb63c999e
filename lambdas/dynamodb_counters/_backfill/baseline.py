"""The baseline: what all items together had contributed at one moment, the run's cut, summed up per group.

The earliest change of an item after the cut shows what it had contributed before; the scan shows it for the others.
Parts are worked off one by one, so that memory is bounded however many items and groups there are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import localcontext
from typing import Any, Final, TypeAlias

from dynamodb_counters._backfill.state import Lineage
from dynamodb_counters._control.run_items import (
    ROWS,
    LoggedChange,
    Run,
    ScannedItem,
    Sums,
    found_by,
    log_key,
    scan_key,
    unpack_log,
    unpack_scanned,
)
from dynamodb_counters._declarations.groups import Key
from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._fold.records import NEW
from dynamodb_counters._items.conversions import EXACT, Number
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._quarantine.quarantine_items import quarantine_key
from dynamodb_counters._table import Table

Totals: TypeAlias = dict[GroupRef, dict[str, Number]]
"""Numbers of groups, by measure."""

MOST_HELD: Final = 500_000
"""Changed items, or groups, that are held at a time."""

_MORE: Final = 4


@dataclass(slots=True)
class Pages:
    """The pages of a run: what its scan has read, and what its log holds."""

    table: Table
    run: Run
    segments: int
    lineage: Lineage

    def scanned(self) -> Iterator[ScannedItem]:
        """Each item that contributed when it was read, or would have."""
        for segment in range(self.segments):
            for page in self.table.partition(scan_key(self.run.id, segment, 0)[PK]["S"]):
                yield from unpack_scanned(page[ROWS]["B"])

    def logged(self) -> Iterator[tuple[str, LoggedChange]]:
        """Each logged change with its shard, some of them repeatedly; parents before children."""
        for shard in sorted(self.lineage.parents, key=self.lineage.depth):
            for page in self.table.partition(log_key(self.run.id, shard)[PK]["S"]):
                for change in unpack_log(page[ROWS]["B"]):
                    yield shard, change

    def last_logged(self, shard: str, most: int) -> list[Any]:
        """The last pages that a shard has put into the log, without their rows."""
        return list(self.table.last_of(log_key(self.run.id, shard)[PK]["S"], most, ("created", "beats", "last")))

    def added(self) -> Iterator[tuple[str, LoggedChange]]:
        """Each change that a verification has logged, once; batches are delivered, and logged, again."""
        through: dict[str, str] = {}
        for shard, change in self.logged():
            if change.sequence > through.get(shard, ""):
                yield shard, change
                through[shard] = change.sequence


def first_changes(pages: Pages, part: int, parts: int) -> dict[str, tuple[str, LoggedChange]]:
    """The first change after the cut of each item that changed, and its shard, by the item's digest."""
    found: dict[str, tuple[tuple[int, str], str, LoggedChange]] = {}
    depths = {shard: pages.lineage.depth(shard) for shard in pages.lineage.parents}
    for shard, change in pages.logged():
        if not change.digest or part_of(change.digest, parts) != part:
            continue
        place = depths[shard], change.sequence
        if change.digest not in found or place < found[change.digest][0]:
            found[change.digest] = place, shard, change
    return {digest: (shard, change) for digest, (_, shard, change) in found.items()}


def contributions(pages: Pages, part: int, parts: int) -> Iterator[Sums]:
    """Contributions of each item of a part at the cut."""
    changed = first_changes(pages, part, parts)
    for item in pages.scanned():
        if item.digest not in changed and part_of(item.digest, parts) == part:
            yield item.sums
    for _, change in changed.values():
        yield change.old


def withheld(pages: Pages) -> Iterator[tuple[Key, Key | None]]:
    """The keys of the entries that hold what could not be folded of items as they were at the cut."""
    # Each with that of the scan for the same image or row: where the run let that one wait before it knew of a change
    # of the item, it stands for both.
    parts, found = _item_parts(pages), found_by(pages.run.id)
    for part in range(parts):
        changed, scanned = first_changes(pages, part, parts), dict[tuple[str, str], Key]()
        for item in pages.scanned():
            if item.entries and part_of(item.digest, parts) == part:
                keys = {(item.digest, _image(one)): quarantine_key(found, one) for one in item.entries}
                if item.digest in changed:
                    scanned |= keys
                else:
                    yield from ((key, None) for key in keys.values())
        for digest, (shard, change) in changed.items():
            yield from ((quarantine_key(shard, one), scanned.get((digest, _image(one)))) for one in change.entries)


def _image(entry: str) -> str:
    """The image, and the row of a chunk, that an entry holds."""
    return entry[entry.index(NEW) :]


def _item_parts(pages: Pages) -> int:
    return 1 + sum(1 for _ in pages.logged()) // MOST_HELD


def sum_up(contributed: Iterable[Sums], part: int, parts: int, place: Callable[[GroupRef], str]) -> Totals | None:
    """The sums of a part's groups; None if they do not fit into memory."""
    sums: Totals = {}
    with localcontext(EXACT):
        for each in contributed:
            for ref, measures in each.items():
                if parts > 1 and part_of(place(ref), parts) != part:
                    continue
                known = sums.setdefault(ref, {})
                if len(sums) > MOST_HELD:
                    return None
                for name, number in measures.items():
                    known[name] = known.get(name, 0) + number
    return sums


def part_of(text: str, parts: int) -> int:
    """Which of some equal parts; a part of four times as many lies within one of these."""
    return zlib.crc32(text.encode()) * parts >> 32


def baselines(
    pages: Pages, done: int, parts: int, place: Callable[[GroupRef], str] = repr
) -> Iterator[tuple[int, int, Totals]]:
    """The baselines of all groups, in so many parts that each fits into memory: part, parts, sums."""
    # Groups of one place are in one part.
    items = _item_parts(pages)
    part = done
    while part < parts:
        every = (each for number in range(items) for each in contributions(pages, number, items))
        sums = sum_up(every, part, parts, place)
        if sums is None:
            part, parts = part * _MORE, parts * _MORE
        else:
            yield part, parts, sums
            part += 1
