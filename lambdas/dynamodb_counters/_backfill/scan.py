"""The scan: each item's contribution, page by page, each page sealed before the next is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dynamodb_counters._backfill.pace import Pace, paid_write, units_of
from dynamodb_counters._control.run_items import (
    MOST_BYTES,
    ROWS,
    Run,
    ScannedItem,
    found_by,
    is_bookkeeping,
    item_digest,
    pack_scanned,
    run_item,
    scan_key,
)
from dynamodb_counters._control.run_logs import Held, folded_alone, is_filled, sums_of
from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.item_layout import group_items, group_of_item
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import PK, TYPE
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._quarantine.quarantine_items import PROVISIONAL
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_END: Final = "end"
_ITEMS: Final = "items"


@dataclass(slots=True)
class _Segment:
    number: int
    page: int = 0
    start: dict[str, Any] | None = None
    is_done: bool = False
    items: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is scanned; `is_foreign` as of a `Change`."""

    table: Table
    key_names: tuple[str, ...]
    is_foreign: bool | None = None


def page_values(number: int, rows: bytes, items: int = 0) -> dict[str, Any]:
    """A page of a segment, with the number of items up to it; its last one unless it says where that ends."""
    return {"page": number, _ITEMS: items, ROWS: rows}


@dataclass(slots=True)
class Scan:
    """Scans a source in parallel segments, strongly consistent, for one run."""

    table: Table
    sources: tuple[Source, ...]
    run: Run
    plan: Plan
    segments: int
    pace: Pace
    page_items: int
    quarantine: Quarantine
    _segments: list[_Segment] = field(default_factory=list)

    def rounds(self) -> Iterator[int]:
        """Read a page of each segment at a time, side by side; yield how many items were read."""
        count = self.segments * len(self.sources)
        self._segments = [_Segment(number, limit=self.page_items) for number in range(count)]
        self.table.each(self._resume, self._segments)
        left = self._segments
        while left:
            left = [segment for segment in left if not segment.is_done]
            yield sum(segment.items for segment in self._segments)
            self.table.each(self._advance, left)

    def _resume(self, segment: _Segment) -> None:
        """Go on after the last page that stands."""
        pk = scan_key(self.run.id, segment.number, 0)[PK]["S"]
        for last in self.table.last_of(pk, 1, ("page", _END, _ITEMS)):
            self._adopt(segment, last)

    def _adopt(self, segment: _Segment, page: Image) -> None:
        segment.page = int(page["page"]["N"]) + 1
        segment.items = int(page[_ITEMS]["N"])
        segment.start = dict(page[_END]["M"]) if _END in page else None
        segment.is_done = _END not in page

    def _advance(self, segment: _Segment) -> None:
        source = self.sources[segment.number // self.segments]
        request: Any = {
            "TableName": source.table.name,
            "Segment": segment.number % self.segments,
            "TotalSegments": self.segments,
            "ConsistentRead": True,
            "Limit": segment.limit,
            "ReturnConsumedCapacity": "TOTAL",
        }
        if segment.start is not None:
            request["ExclusiveStartKey"] = segment.start
        answer = source.table.client.scan(**request)
        units = units_of(answer)
        if "LastEvaluatedKey" in answer and not source.is_foreign and all(map(is_bookkeeping, answer["Items"])):
            # Not sealed: the scan would meet the page, seal that, and so on without end.
            segment.start = answer["LastEvaluatedKey"]
            self.pace.spend(units)
            return
        unfoldable: list[Unfoldable] = []
        rows = pack_scanned(self._rows(source, answer["Items"], unfoldable))
        if len(rows) > MOST_BYTES:
            if segment.limit == 1:
                raise BackfillError(f"an item contributes to too many groups: {len(rows)} bytes")
            segment.limit = max(1, segment.limit // 2)
            return
        for image in unfoldable if self.run.kind == "backfill" else ():
            # Before the page that names them.
            self.quarantine.keep_one(found_by(self.run.id), image, PROVISIONAL)
            self.pace.spend(1.0)
        values = page_values(segment.page, rows, segment.items + len(answer["Items"]))
        item = run_item(scan_key(self.run.id, segment.number, segment.page), values, self.table.clock())
        if "LastEvaluatedKey" in answer:
            item[_END] = {"M": answer["LastEvaluatedKey"]}
        # Everybody goes on from the page that stands: two workers, or one that was killed and its successor.
        is_first, written = paid_write(self.table, "put_item", **put_as_seen(self.table.name, item, {}, ()))
        self.pace.spend(units + written)
        if is_first:
            self._adopt(segment, item)
        else:
            self._resume(segment)

    def _rows(self, source: Source, items: Sequence[Image], unfoldable: list[Unfoldable]) -> Iterator[ScannedItem]:
        names = frozenset(self.run.names)
        for item in items:
            if not source.is_foreign and (is_bookkeeping(item) or is_filled(self.run, item)):
                continue
            keys = {name: item[name] for name in source.key_names}
            held = Held(keys, source.is_foreign, source.table.name)
            folded = folded_alone(self.plan, names, item, self.run.since, held)
            digest = item_digest(keys, is_foreign=bool(source.is_foreign))
            lacking = [
                replace(image, image_name=f"{digest}#{image.image_name}")
                for image in folded.unfoldable
                if self.run.kind != "verify"
            ]
            unfoldable += lacking
            if (sums := sums_of(folded)) or lacking:
                yield ScannedItem(digest, sums, tuple(image.entry_id for image in lacking))
            if source.is_foreign:
                continue
            if self.run.kind == "verify" and item.get(TYPE, {}).get("S") in names:
                # A group is compared though nothing may contribute to it.
                declaration = self.plan.programs[item[TYPE]["S"]].layout.declaration
                groups = [group_of_item(declaration, one) for one in group_items(declaration, item)]
                yield from (ScannedItem("", {(declaration.name, group): {}}) for group in groups if group is not None)
