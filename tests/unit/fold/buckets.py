"""A table of window buckets in memory: written by the fold, read by `Counters`."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, cast

from dynamodb_counters import Counters, Event, Window
from dynamodb_counters._fold.fold import Folded
from dynamodb_counters._fold.fold import fold as fold_changes
from dynamodb_counters._fold.layouts import Update
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from simulation.memory_table import MemoryTable
from tests.unit.fold.streams import image, record

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
JOBS = Window("jobs", JOB, pk="CUSTOMER#{customer}", time="at", future_tolerance=None)
Number = int | Decimal


class Buckets(MemoryTable):
    """A table that is written by the fold alone; `now` is the clock of the table and its reader."""

    def __init__(self, now: float = 0.0) -> None:
        super().__init__(lambda: self.now, name="table")
        self.now = now
        self.queries: list[dict[str, Any]] = []
        self.counters = Counters(self.name, client=cast("Any", self), clock=lambda: self.now)
        # Starting threads for each example would take half of the tests' time.
        vars(self.counters._table)["threads"] = 1

    def write(self, folded: Folded) -> None:
        """Add what a batch comes to."""
        for delta in folded.deltas:
            self.update_item(**Update(delta.layout, delta.group, delta.measures, "shard").request(self.name))

    def query(self, **request: Any) -> dict[str, Any]:
        self.queries.append(request)
        return super().query(**request)


def fold(window: Window, happened: Iterable[tuple[int, Number]], created: float | None = None) -> Folded:
    """One new event of customer ``c`` per moment and number, folded."""
    images = [image("job", customer="c", at=second, amount=number) for second, number in happened]
    records = [record(10**20 + index, new, created=created) for index, new in enumerate(images)]
    return fold_changes(Plan((window,)), changes_of(records))
