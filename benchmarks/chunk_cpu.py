"""CPU time of parsing and folding events that come in chunks, beside events that are a record each."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from benchmarks.best_times import Seconds, best, cpu_seconds
from benchmarks.cpu import of_few_groups
from benchmarks.log_records import declarations, records
from benchmarks.queue_and_stream import chunks
from dynamodb_counters._declarations import Aggregate, Event, Packed
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.chunks import Row, chunk_key, encode_chunk
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.table_schema import CHUNK, PACK_SUFFIX, PK, SK, TTL, TYPE
from simulation.delivery.stream_api import lambda_record

PER_CHUNK: Final = 64
_AGGREGATES: Final = 3
_ALL: Final = Attr("url").exists()
"""A condition that all events meet, so that they are looked at one by one."""


def measure(events: int, rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds per event, where events share few groups and where nearly each has groups of its own."""
    given = {"Records": records(events)}
    return {
        "few_groups": _measure(of_few_groups(given)["Records"], rounds),
        "many_groups": _measure(given["Records"], rounds),
    }


def _measure(single: Sequence[dict[str, Any]], rounds: int) -> dict[str, float]:
    """Parsing JSON and folding, by columns and event by event; last, what chunks take of what records take."""
    payloads = {"record": json.dumps({"Records": single}), "chunk": json.dumps({"Records": _packed(single)})}
    contenders: dict[str, Callable[[], object]] = {}
    for kind, payload in payloads.items():
        contenders[f"{kind}.decode"] = partial(json.loads, payload)
        for path, where in (("columns", None), ("rows", _ALL)):
            plan = Plan(tuple(_declared(each, where, packed=kind == "chunk") for each in declarations(_AGGREGATES)))
            assert _folded(plan, payload) == len(single)
            contenders[f"{kind}.{path}"] = partial(_folded, plan, payload)
    found = best({name: partial(_cpu_seconds, run) for name, run in contenders.items()}, rounds)
    each = {name: seconds["cpu_seconds"] / len(single) * 1e6 for name, seconds in found.items()}
    return {**each, **{path: each[f"chunk.{path}"] / each[f"record.{path}"] for path in ("columns", "rows")}}


def _cpu_seconds(run: Callable[[], object]) -> Seconds:
    # Else who runs next would collect the garbage of who ran before.
    gc.collect()
    return cpu_seconds(run)


def _declared(aggregate: Aggregate, where: Any, *, packed: bool) -> Aggregate:
    source = aggregate.source
    assert isinstance(source, Event)
    if packed:
        source = replace(source, packed=Packed("time", bucket=timedelta(minutes=10)))
    return replace(aggregate, source=source, where=where)


def _folded(plan: Plan, payload: str) -> int:
    """Parse and fold; return how many events that were."""
    found = fold(plan, changes_of(json.loads(payload)["Records"]))
    assert not found.unfoldable
    return found.events


def _packed(single: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same events, in the records of chunks."""
    found = []
    for number, part in enumerate(chunks(single, PER_CHUNK)):
        rows = [
            Row("+", {name: value for name, value in image.items() if name not in (PK, SK, TYPE, TTL)})
            for image in (record["dynamodb"]["NewImage"] for record in part)
        ]
        pk, sk = chunk_key("view", "0", 0, number)
        keys = {PK: {"S": pk}, SK: {"S": sk}}
        image = {**keys, TYPE: {"S": "view" + PACK_SUFFIX}, CHUNK: {"B": encode_chunk(rows, "batch")}}
        change = {**part[0]["dynamodb"], "Keys": keys, "NewImage": image}
        found.append(lambda_record({**part[0], "dynamodb": change}, part[0]["eventSourceARN"]))
    return found
