"""Erase: the events of a declaration with certain key fields, from every place where copies of them lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dynamodb_counters._control.control import read_control
from dynamodb_counters._control.run_items import KEPT, RUN_SK_PREFIX, page_partitions
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._erase.matching import Wanted
from dynamodb_counters._erase.packed_erase import PackedEvents
from dynamodb_counters._erase.plain_erase import EventItems
from dynamodb_counters._erase.quarantine_erase import QuarantineCopies
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK, SK, TTL
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import EraseError

CountsOfErased: TypeAlias = Literal["keep", "take_back"]
Uncounted: TypeAlias = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class Erased:
    """How many copies of the events were found, by place; of those erased, nothing is left there, but for `left`.

    Parameters
    ----------
    events : int
        Items of their own.
    packed : int
        In chunks.
    quarantined : int
        In entries of the quarantine.
    uncounted : int
        Copies in quarantine that waited to be counted.
    pages : int
        Pages of backfills and verifications that are over. They name groups, whoever they are of.
    runs : int
        Backfills and verifications that are open, or ended less than an hour ago: their pages stay until then.
    left : int
        Copies that stay, because they wait to be counted: they came while the run went on, or a backfill has met them
        that goes on. Run it again.
    """

    events: int = 0
    packed: int = 0
    quarantined: int = 0
    uncounted: int = 0
    pages: int = 0
    runs: int = 0
    left: int = 0


class Eraser:
    """Erases events from one table."""

    def __init__(self, table: Table, event: object, values: object) -> None:
        wanted = Wanted(event, values)
        self._event = wanted.event
        self._items = EventItems(table, wanted)
        self._chunks = PackedEvents(table, wanted)
        self._quarantine = QuarantineCopies(table, wanted)
        self._table = table

    def find(self) -> Erased:
        """Copies to erase, by place."""
        return self._sweep(keeps_counts=True, writes=False)

    def erase(self, counts: CountsOfErased, uncounted: Uncounted = "refuse") -> Erased:
        """Erase; a run that ended halfway is completed by the next."""
        require_choice("counts", counts, get_args(CountsOfErased))
        require_choice("uncounted", uncounted, get_args(Uncounted))
        if uncounted == "refuse":
            _, waiting, _ = self._quarantine.sweep(writes=False)
            if waiting:
                raise EraseError(
                    f"{waiting} copies wait to be counted, in quarantine: redrive them first, or say that they are to "
                    "be dropped, if they cannot be counted or were counted after all"
                )
        return self._sweep(keeps_counts=counts == "keep", writes=True, drops=uncounted == "drop")

    def _sweep(self, *, keeps_counts: bool, writes: bool, drops: bool = False) -> Erased:
        # The quarantine last, where it may end, but what waits there before the items, which then show that they take
        # nothing back.
        dropped = self._quarantine.drop() if drops else 0
        events = self._items.sweep(keeps_counts=keeps_counts, writes=writes)
        packed = self._chunks.sweep(keeps_counts=keeps_counts, writes=writes)
        quarantined, waiting, staying = self._quarantine.sweep(writes=writes, drops=drops)
        pages, runs = _sweep_pages(self._table, writes=writes)
        return Erased(
            events=events,
            packed=packed,
            quarantined=quarantined,
            uncounted=dropped + waiting,
            pages=pages,
            runs=runs,
            left=staying if writes else 0,
        )


def _sweep_pages(table: Table, *, writes: bool) -> tuple[int, int]:
    """Delete the pages of runs that are over, which name groups; return how many, and of how many runs pages stay."""
    found = staying = 0
    runs = list(table.partition(CHECKPOINT_PREFIX, RUN_SK_PREFIX))
    is_open = {run.id for run in read_control(table).runs}
    for item in runs:
        run = item[SK]["S"].removeprefix(RUN_SK_PREFIX)
        parts = page_partitions(run, item)
        keys = [key for pk in parts for key in table.partition(pk, ProjectionExpression=f"{PK}, {SK}")]
        # A process that has not heard of the end writes and reads pages still.
        written = float(item[TTL]["N"]) - KEPT
        if run in is_open or table.clock() < written + HOUR:
            staying += bool(keys)
            continue
        found += len(keys)
        if writes:
            table.each(lambda key: table.client.delete_item(TableName=table.name, Key=key), keys)
    return found, staying
