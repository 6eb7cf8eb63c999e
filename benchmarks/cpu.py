"""CPU time and memory of the aggregator's handler on records, over HTTPS and of its own code alone."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType

from benchmarks.best_times import cpu_seconds, microseconds, peak_bytes, run_python
from benchmarks.designs.known import idempotent_counter
from benchmarks.designs.ours import PACKED_VIEW, SHARD, VIEW
from benchmarks.https import https_client
from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.commit import checkpoint_key
from dynamodb_counters._declarations import Aggregate, Count, Declaration, Sum
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.schema import SEQUENCE_DIGITS
from dynamodb_counters._registry import Registry, entries_of
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept_many
from dynamodb_counters.exactly_once import shard_digest
from simulation.memory.client_errors import EXCEPTIONS

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

CHECKPOINT: Final = {
    **checkpoint_key(shard_digest(SHARD)),
    "shard": {"S": SHARD},
    "applied_through": {"S": "1".zfill(SEQUENCE_DIGITS)},
    "at": {"N": "0"},
}


def stub_client() -> Any:
    """Leaves out the client: the goals compare the handler's own code with `json.loads`."""
    return SimpleNamespace(
        exceptions=EXCEPTIONS,
        update_item=lambda **_: {"ConsumedCapacity": {"CapacityUnits": 1.0}},
        batch_execute_statement=lambda **request: {"Responses": [{}] * len(request["Statements"])},
        put_item=lambda **_: {},
        get_item=lambda **_: {"Item": CHECKPOINT},
        query=lambda **_: {"Items": []},
    )


def measure(batches: tuple[int, ...], aggregates: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Microseconds of CPU per record, by ``<batch>_records.<what>``."""
    return {f"{batch}_records": _at(batch, aggregates, rounds) for batch in batches}


def _at(batch: int, aggregates: tuple[int, ...], rounds: int) -> dict[str, Any]:
    payload = json.dumps({"shardId": SHARD, "Records": records(batch)}, separators=(",", ":"))
    event = json.loads(payload)
    hot = of_few_groups(event)
    stream_records = event["Records"]
    contenders: dict[str, Callable[[], object]] = {"decode": lambda: json.loads(payload)}
    for number in aggregates:
        name, plan = f"aggregates_{number}", Plan(declarations(number))
        contenders[f"{name}.fold"] = lambda plan=plan: fold(plan, changes_of(stream_records))  # type: ignore[misc]
        contenders[f"{name}.handler"] = partial(_handler(number, stub_client()), event)
        contenders[f"{name}.handler_of_few_groups"] = partial(_handler(number, stub_client()), hot)
    if batch <= 1000:  # Its cost per record is the same at any size.
        contenders["powertools_looking"] = lambda: _process(stream_records, lambda record: record.dynamodb.new_image)
        idempotent = partial(_count_view, idempotent_counter(stub_client()))
        contenders["powertools_idempotent"] = lambda: _process(stream_records, idempotent)
    return microseconds({name: (batch, run) for name, run in contenders.items()}, rounds)


def over_https(batches: tuple[int, ...], aggregates: tuple[int, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of CPU per record with all that a client does, and records that a second of CPU is enough for."""
    figures = {}
    with https_client(CHECKPOINT) as client:
        for batch in batches:
            contenders = {name: (batch, run) for name, run in _reaching(client, batch, aggregates)}
            costs = figures[f"{batch} records: microseconds each"] = microseconds(contenders, rounds)
            figures[f"{batch} records: ceiling per second"] = {name: 1e6 / cpu for name, cpu in costs.items()}
    return figures


def _reaching(client: Any, batch: int, aggregates: tuple[int, ...]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what counts the records, and accepts their events."""
    event: dict[str, Any] = {"shardId": SHARD, "Records": records(batch)}
    for number in aggregates:
        yield f"aggregates: {number}, recent items", partial(_handler(number, client), event)
        yield f"aggregates: {number}, other items", partial(_handler(number, client, is_recent=False), event)
    images = [record["dynamodb"]["NewImage"] for record in event["Records"]]
    views, table = [{name: image[name]["S"] for name in VIEW.fields} for image in images], Table("counters", client)
    yield "accept", partial(accept_many, table, VIEW, views)
    yield "accept packed, a flush", partial(accept_many, table, PACKED_VIEW, views)


def _handler(aggregates: int, client: Any, *, is_recent: bool = True) -> Callable[[Any], object]:
    """Return a handler that reads the shard's checkpoint for each batch: else it would drop one that it had before."""
    aggregator = warm_aggregator(Table("counters", client, clock=lambda: CREATED), declarations(aggregates))

    def handle(event: Any) -> object:
        aggregator._checkpoints._read.clear()
        if not is_recent:
            aggregator._checkpoints.looks._looked_at.clear()
        return aggregator.handle(event)

    return handle


def warm_aggregator(table: Table, declared: tuple[Declaration, ...]) -> Aggregator:
    """Return an aggregator that knows its registry: it reads it once a minute, which is no cost of a batch."""
    aggregator = Aggregator(table, declared, quarantine_retention_seconds=1)
    aggregator._names.registry = Registry(entries={entry.name: entry for entry in entries_of(declared)})
    aggregator._names._read_at = CREATED
    return aggregator


def of_few_groups(event: Any) -> Any:
    """Return the same batch with 50 pages and 50 clients, as in a hot workload."""
    copied = json.loads(json.dumps(event))
    for index, record in enumerate(copied["Records"]):
        image = record["dynamodb"]["NewImage"]
        image["url"], image["clientId"] = {"S": f"/page-{index * 7 % 50}"}, {"S": f"10.0.0.{index * 11 % 50}"}
    return copied


def _process(stream_records: Any, handler: Callable[[Any], Any]) -> None:
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams)
    with processor(records=stream_records, handler=handler):
        processor.process()


def _count_view(count: Callable[..., Any], record: Any) -> None:
    image = record.dynamodb.new_image
    count(view={"url": image["url"], "time": image["time"], "client": image["clientId"]})


def peak_memory(batch: int, aggregates: int) -> dict[str, float]:
    """Peak memory and CPU seconds of one whole batch, and those of decoding it, in a process of its own."""
    program = f"from benchmarks import cpu; cpu.print_peak({batch}, {aggregates})"
    figures: dict[str, float] = json.loads(run_python(["-c", program], os.environ))
    return figures


def print_peak(batch: int, aggregates: int) -> None:
    payload = json.dumps({"shardId": SHARD, "Records": records(batch)})
    handle = _handler(aggregates, stub_client())
    before = peak_bytes() / 1e6
    spent = cpu_seconds(lambda: handle(json.loads(payload)))
    figures = {"peak_mb": peak_bytes() / 1e6, "before_mb": before, **spent}
    decode = min(cpu_seconds(lambda: json.loads(payload))["cpu_seconds"] for _ in range(3))
    print(json.dumps({**figures, "decode_seconds": decode}))


def declarations(number: int) -> tuple[Aggregate, ...]:
    """Return counts and sums per page, client and status and of the site, with and without a filter."""
    kinds: list[dict[str, Any]] = [
        {"pk": "URL#{url}", "measures": {"views": Count()}},
        {"pk": "SITE", "measures": {"views": Count(), "bytes": Sum("bytes")}},
        {"pk": "CLIENT#{clientId}", "measures": {"views": Count()}},
        {"pk": "STATUS#{status}", "measures": {"views": Count()}, "where": Attr("bytes").gt(1000)},
    ]
    return tuple(
        Aggregate(f"aggregate-{index}", VIEW, sk=f"STATISTICS#{index}", **kinds[index % len(kinds)])
        for index in range(number)
    )


def records(count: int) -> list[dict[str, Any]]:
    """Return the same records each time, as in a Lambda event."""
    chance = random.Random(4)
    result = []
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
        result.append({"eventID": f"{index:032x}", **_ENVELOPE, "dynamodb": change})
    return result
