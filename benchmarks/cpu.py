"""CPU time and memory of the aggregator's handler on records, with the network stubbed out."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType

from benchmarks.best_times import cpu_seconds, microseconds, peak_bytes, run_python
from benchmarks.designs.known import idempotent_counter
from benchmarks.designs.ours import SHARD
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._commit.checkpoints import checkpoint_key
from dynamodb_counters._control.registry import Registry, entries_of
from dynamodb_counters._declarations import Aggregate, Count, Declaration, Event, Sum
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.table_schema import SEQUENCE_DIGITS
from dynamodb_counters._table import Table, make_client
from dynamodb_counters.exactly_once import shard_digest
from simulation.memory.client_errors import EXCEPTIONS

_VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
_AGENT: Final = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/32.0.1700.77 Safari/537.36"
)
_ENVELOPE: Final = {
    "eventName": "INSERT",
    "eventVersion": "1.1",
    "eventSource": "aws:dynamodb",
    "awsRegion": "us-east-1",
    "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/counters/stream/2026-11-20T00:00:00.000",
}
CREATED: Final = 1795168800.0
_CHANGE: Final = {"ApproximateCreationDateTime": CREATED, "StreamViewType": "NEW_AND_OLD_IMAGES"}

_CHECKPOINT: Final = {
    **checkpoint_key(shard_digest(SHARD)),
    "shard": {"S": SHARD},
    "applied_through": {"S": "1".zfill(SEQUENCE_DIGITS)},
}
"""Checkpoint of a shard that has been served before."""


def stub_client() -> Any:
    return SimpleNamespace(
        exceptions=EXCEPTIONS,
        update_item=lambda **_: {"ConsumedCapacity": {"CapacityUnits": 1.0}},
        put_item=lambda **_: {},
        get_item=lambda **_: {"Item": _CHECKPOINT},
        query=lambda **_: {"Items": []},
    )


@contextmanager
def botocore_without_network() -> Iterator[Any]:
    """A client that does all its work but sends nothing."""
    # Serves every request: a write's units, a query's items, a shard's checkpoint.
    found = {"ConsumedCapacity": {"TableName": "counters", "CapacityUnits": 1.0}, "Items": [], "Item": _CHECKPOINT}
    body = json.dumps(found).encode()
    headers = {"content-type": "application/x-amz-json-1.0"}
    answer = SimpleNamespace(status_code=200, headers=headers, content=body, raw=None, text="{}")
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
    with patch.dict(os.environ, keys), patch("botocore.httpsession.URLLib3Session.send", lambda *_: answer):
        yield make_client()


def measure(batches: tuple[int, ...], aggregates: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Microseconds of CPU per record, by ``<batch>_records.<what>``."""
    return {f"{batch}_records": _at(batch, aggregates, rounds) for batch in batches}


def _at(batch: int, aggregates: tuple[int, ...], rounds: int) -> dict[str, Any]:
    payload = json.dumps({"shardId": SHARD, "Records": records(batch)}, separators=(",", ":"))
    event = json.loads(payload)
    hot = of_few_groups(event)
    given = event["Records"]
    with botocore_without_network() as client:
        contenders: dict[str, Callable[[], object]] = {"decode": lambda: json.loads(payload)}
        for number in aggregates:
            contenders |= _of(number, event, hot, client if batch <= 1000 else None)
        if batch <= 1000:  # Its cost per record is the same at any size.
            contenders["powertools_looking"] = lambda: _process(given, lambda record: record.dynamodb.new_image)
            idempotent = partial(_count_view, idempotent_counter(stub_client()))
            contenders["powertools_idempotent"] = lambda: _process(given, idempotent)
        return microseconds({name: (batch, run) for name, run in contenders.items()}, rounds)


def _of(number: int, event: Any, hot: Any, client: Any) -> dict[str, Callable[[], object]]:
    declared = declarations(number)
    plan = Plan(declared)
    found: dict[str, Callable[[], object]] = {
        "fold": lambda: fold(plan, changes_of(event["Records"])),
        "handler": partial(_handler(declared, stub_client()), event),
    }
    if client is not None:
        found["handler_with_botocore"] = partial(_handler(declared, client), event)
    found["handler_of_few_groups"] = partial(_handler(declared, stub_client()), hot)
    return {f"aggregates_{number}.{name}": run for name, run in found.items()}


def _handler(declared: tuple[Aggregate, ...], client: Any) -> Callable[[Any], object]:
    """A handler that reads the shard's checkpoint again for each batch: else it would drop one that it had before."""
    aggregator = warm_aggregator(Table("counters", client, clock=lambda: CREATED), declared)

    def handle(event: Any) -> object:
        aggregator._checkpoints._read.clear()
        return aggregator.handle(event)

    return handle


def warm_aggregator(table: Table, declared: tuple[Declaration, ...]) -> Aggregator:
    """An aggregator that knows its registry: it reads it once a minute, which is no cost of a batch."""
    aggregator = Aggregator(table, declared, quarantine_retention_seconds=1)
    aggregator._names.registry = Registry(entries={each.name: each for each in entries_of(declared)})
    aggregator._names._read_at = CREATED
    return aggregator


def of_few_groups(event: Any) -> Any:
    """The same batch with 50 pages and 50 clients, as in a hot workload."""
    copied = json.loads(json.dumps(event))
    for index, record in enumerate(copied["Records"]):
        image = record["dynamodb"]["NewImage"]
        image["url"], image["clientId"] = {"S": f"/page-{index * 7 % 50}"}, {"S": f"10.0.0.{index * 11 % 50}"}
    return copied


def _process(given: Any, handler: Callable[[Any], Any]) -> None:
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams)
    with processor(records=given, handler=handler):
        processor.process()


def _count_view(count: Callable[..., Any], record: Any) -> None:
    image = record.dynamodb.new_image
    count(view={"url": image["url"], "time": image["time"], "client": image["clientId"]})


def peak_memory(batch: int, aggregates: int) -> dict[str, float]:
    """Peak memory and CPU seconds of one whole batch, and those of decoding it, in a process of its own."""
    program = f"from benchmarks import cpu; cpu.print_peak({batch}, {aggregates})"
    peak, before, seconds, decode = map(float, run_python(["-c", program], os.environ).split())
    return {"peak_mb": peak / 1e6, "before_mb": before / 1e6, "cpu_seconds": seconds, "decode_seconds": decode}


def print_peak(batch: int, aggregates: int) -> None:
    payload = json.dumps({"shardId": SHARD, "Records": records(batch)})
    handle = _handler(declarations(aggregates), stub_client())
    before = peak_bytes()
    spent = cpu_seconds(lambda: handle(json.loads(payload)))
    peak = peak_bytes()
    decode = min(cpu_seconds(lambda: json.loads(payload))["cpu_seconds"] for _ in range(3))
    print(peak, before, spent["cpu_seconds"], decode)


def declarations(number: int) -> tuple[Aggregate, ...]:
    """Counts and sums per page, client and status and of the site, with and without a filter."""
    kinds: list[dict[str, Any]] = [
        {"pk": "URL#{url}", "measures": {"views": Count()}},
        {"pk": "SITE", "measures": {"views": Count(), "bytes": Sum("bytes")}},
        {"pk": "CLIENT#{clientId}", "measures": {"views": Count()}},
        {"pk": "STATUS#{status}", "measures": {"views": Count()}, "where": Attr("bytes").gt(1000)},
    ]
    return tuple(
        Aggregate(f"aggregate-{index}", _VIEW, sk=f"STATISTICS#{index}", **kinds[index % len(kinds)])
        for index in range(number)
    )


def records(count: int) -> list[dict[str, Any]]:
    """The same records each time, as in a Lambda event."""
    chance = random.Random(4)
    made = []
    for index in range(count):
        url = f"/blog/{min(chance.randint(1, 300), chance.randint(1, 300))}/post.html"
        client = ".".join(str(chance.randint(1, 99)) for _ in range(4))
        moment = f"2015-05-17T10:{index // 60 % 60:02d}:{index % 60:02d}+00:00"
        key = {"pk": {"S": f"URL#{url}"}, "sk": {"S": f"T#{moment}#CID#{client}"}}
        image = {
            **key,
            "_type": {"S": "view"},
            "url": {"S": url},
            "time": {"S": moment},
            "clientId": {"S": client},
            "status": {"N": chance.choice(["200", "200", "200", "304", "404"])},
            "bytes": {"N": str(chance.randint(0, 99_999))},
            "referrer": {"S": "http://semicomplete.com/presentations/logstash-monitorama-2013/"},
            "userAgent": {"S": _AGENT},
            "ttl": {"N": "1795773600"},
        }
        number = str(10**24 + index * 997)
        change = {**_CHANGE, "Keys": key, "NewImage": image, "SequenceNumber": number, "SizeBytes": 520}
        made.append({"eventID": f"{index:032x}", **_ENVELOPE, "dynamodb": change})
    return made
