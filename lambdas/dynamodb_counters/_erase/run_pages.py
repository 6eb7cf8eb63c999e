"""Pages of backfills and verifications, which name the groups that events count in.

They go as a whole once their run is over: no process reads them any more.
"""

from __future__ import annotations

from dynamodb_counters._control.control import read_control
from dynamodb_counters._control.run_items import KEPT, RUN_SK_PREFIX, page_partitions
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK, SK, TTL
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR


def sweep_pages(table: Table, *, writes: bool) -> tuple[int, int]:
    """Delete the pages; return how many runs that are over have left, and of how many runs pages stay."""
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
