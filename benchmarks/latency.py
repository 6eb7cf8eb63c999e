"""Latency: seconds of a call on DynamoDB Local, as multiples of a bare PutItem of the same event in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import count
from statistics import quantiles
from typing import Any, Final

from benchmarks.databases import TABLE
from benchmarks.designs.ours import VIEW, VIEWS
from dynamodb_counters import Counters
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table

_BARE: Final = "PutItem"


def measure(engine: DynamoDBLocal, calls: int) -> dict[str, dict[str, float]]:
    """Median and 99th percentile of each call; calls take turns, so that all meet the same moments."""
    create_table(engine.client, TABLE, expires=False, keys=("pk", "sk"))
    counters = Counters(TABLE, client=engine.client)
    numbers = count()

    def view() -> dict[str, Any]:
        return {"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": f"c{next(numbers)}"}

    def put(event: Mapping[str, Any]) -> None:
        item = {name: {"S": text} for name, text in {"pk": event["url"], "sk": event["clientId"], **event}.items()}
        engine.client.put_item(TableName=TABLE, Item=item)

    timed: dict[str, Callable[[dict[str, Any]], object]] = {
        _BARE: put,
        "accept": lambda event: counters.accept(VIEW, event),
        "record_once": lambda event: counters.record_once(VIEW, event, [VIEWS]),
        "accept_many, 25 events": lambda event: counters.accept_many(VIEW, [event, *(view() for _ in range(24))]),
        "get": lambda event: counters.get(VIEWS, url=event["url"]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(-calls // 10, calls):
        for name, call in timed.items():
            event, start = view(), time.perf_counter()
            call(event)
            # The first tenth warms the engine up.
            if turn >= 0:
                seconds[name].append(time.perf_counter() - start)
    engine.client.delete_table(TableName=TABLE)
    percentiles = {name: quantiles(times, n=100) for name, times in seconds.items()}
    bare = percentiles[_BARE]
    return {
        name: {"p50": values[49], "p50_ratio": values[49] / bare[49], "p99_ratio": values[98] / bare[98]}
        for name, values in percentiles.items()
    }
