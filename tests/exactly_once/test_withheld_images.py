"""Images that a backfill withholds wait once, whichever process of the run has seen what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dynamodb_counters._backfill.feeds import Shard
from dynamodb_counters._backfill.runner import Lineage, withheld
from dynamodb_counters._control.run_items import LoggedChange, ScannedItem
from dynamodb_counters._quarantine.quarantine import confirm
from simulation.workbench import Workbench


def test_an_image_waits_once_though_the_run_learns_of_a_change_of_its_item_afterward() -> None:
    bench = Workbench([])
    lineage = Lineage()
    lineage.meet([Shard("shard", "", is_open=True)])
    scanned = [ScannedItem("d1", {}, ("1#d1#NewImage#1", "1#d1#NewImage#2"))]
    logged: list[tuple[str, LoggedChange]] = []
    pages: Any = SimpleNamespace(
        scanned=lambda: scanned, logged=lambda: logged, lineage=lineage, run=SimpleNamespace(id="1r0")
    )
    early = [*withheld(pages)]
    logged.append(("shard", LoggedChange("d1", f"{7:040}", {}, entries=("7#1r0#NewImage#1", "7#1r0#NewImage#2"))))
    late = [*withheld(pages)]
    for key, _ in (*early, *late):
        bench.table.put_item(TableName=bench.table.name, Item={**key, "state": {"S": "provisional"}})
    # The process that knew of no change dies after the first of two.
    assert confirm(bench.store, *early[0])
    assert [confirm(bench.store, *one) for one in late] == [False, True]
