"""Pages of backfills and verifications, which name the groups that events count in.

They go as a whole once their run is over: no process reads them any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dynamodb_counters._control.control import read_control
from dynamodb_counters._control.run_items import KEPT, RUN_SK_PREFIX, page_partitions
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, PK, SK, TTL
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR


def sweep_pages(table: Table, *, writes: bool) -> tuple[int, int]:
    """Delete the pages; return how many runs that are over have left, and of how many runs pages stay."""
    found = staying = 0
    names = {PK: {"S": CHECKPOINT_PREFIX}, SK: {"S": RUN_SK_PREFIX}}
    runs = list(_query(table, f"{PK} = :pk AND begins_with({SK}, :sk)", names))
    is_open = {run.id for run in read_control(table).runs}
    for item in runs:
        run = item[SK]["S"].removeprefix(RUN_SK_PREFIX)
        keys = [key for pk in page_partitions(run, item) for key in _query(table, f"{PK} = :pk", {PK: pk}, keys=True)]
        # A process that has not heard of the end writes and reads pages still.
        written = float(item[TTL]["N"]) - KEPT
        if run in is_open or table.clock() < written + HOUR:
            staying += bool(keys)
            continue
        found += len(keys)
        if writes:
            for _, done in table.side_by_side(
                lambda key: table.client.delete_item(TableName=table.name, Key=key), keys
            ):
                if isinstance(done, Exception):
                    raise done
    return found, staying


def _query(
    table: Table, condition: str, values: Mapping[str, Any], *, keys: bool = False
) -> Iterator[Mapping[str, Any]]:
    request: Any = {
        "TableName": table.name,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
        "ConsistentRead": True,
        **({"ProjectionExpression": f"{PK}, {SK}"} if keys else {}),
    }
    for page in table.client.get_paginator("query").paginate(**request):
        yield from page["Items"]
