"""About how many units a backfill takes: from a sample of each table, in a Scan's order, that nothing else reads.

The Scan's units follow from the size of a table; what the run writes of it, from the sample: a page of each item's
contributions, and an update per group. The sample's halves say how groups go on. Where they have groups in common,
Lincoln and Petersen's estimate holds: the groups of one half, times those of the other, by those in both. Where they
have none, each further item brings as many as the sample's did.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._backfill.feeds import Scan, Source, units_of
from dynamodb_counters._control.run_items import ScannedItem, pack_scanned
from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._items.bookkeeping import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from dynamodb_counters._items.conditions import Image

SAMPLED: Final = 1000
"""Items of each table, at most."""

_PAGED_GROUP_BYTES: Final = 30
"""About how much of a page a group takes, and its update pays for."""


@dataclass(slots=True)
class Estimate:
    """Of a backfill: items and bytes of the tables as DynamoDB describes them, up to six hours ago, and units."""

    items: int = 0
    bytes: int = 0
    sampled: int = 0
    """Items that the sample has."""
    consumed: float = 0.0
    """Units that the sample took."""
    units: float = 0.0

    def document(self) -> dict[str, int]:
        return {"items": self.items, "bytes": self.bytes, "sampled": self.sampled, "units": math.ceil(self.units)}


def estimate(scan: Scan, declarations: Iterable[Declaration]) -> Estimate:
    """Estimate what a scan, and adding what it has found to groups of `declarations`, take."""
    found, by_name = Estimate(), {each.name: each for each in declarations}
    for source in scan.sources:
        described: Any = source.table.client.describe_table(TableName=source.table.name)["Table"]
        sample, is_whole = _sample(scan, source, found)
        size, items = described.get("TableSizeBytes", 0), described.get("ItemCount", 0)
        items = len(sample) if is_whole else max(items, len(sample))
        found.items, found.bytes = found.items + items, found.bytes + size
        found.sampled += len(sample)
        rows = list(scan.rows(source, sample, []))
        share = len(sample) / items if items else 1.0
        pages = max(scan.segments, items / scan.page_items)
        written = len(pack_scanned(rows)) / share / WRITE_UNIT_BYTES if rows else 0.0
        found.units += max(scan.segments, size / READ_UNIT_BYTES) + max(pages, written)
        found.units += sum(_groups(rows, name, share) * _units(each) for name, each in by_name.items())
    return found


def _sample(scan: Scan, source: Source, found: Estimate) -> tuple[list[Image], bool]:
    """Items from the beginning of each segment, and whether these are all."""
    items: list[Image] = []
    is_whole = True
    for segment in range(scan.segments):
        answer: Mapping[str, Any] = source.table.client.scan(
            TableName=source.table.name,
            Segment=segment,
            TotalSegments=scan.segments,
            Limit=max(1, SAMPLED // scan.segments),
            ReturnConsumedCapacity="TOTAL",
        )
        items += answer["Items"]
        found.consumed += units_of(answer)
        is_whole &= "LastEvaluatedKey" not in answer
    return items, is_whole


def _groups(rows: list[ScannedItem], name: str, share: float) -> float:
    """How many groups of a declaration all items have, of which the rows are a share."""
    middle = len(rows) // 2
    one, other = (
        {ref for row in half for ref in row.sums if ref[0] == name} for half in (rows[:middle], rows[middle:])
    )
    known, common = len(one | other), len(one & other)
    linear = known / share
    return max(known, min(linear, len(one) * len(other) / common)) if common else linear


def _units(declaration: Declaration) -> float:
    """About the write units of adding to a group: its item is new, and small."""
    if not isinstance(declaration, Aggregate):
        return 1.0
    if declaration.pages:
        return _PAGED_GROUP_BYTES / WRITE_UNIT_BYTES
    return 2.0 if declaration.ranking is not None else 1.0
