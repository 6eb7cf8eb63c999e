"""The whole bill of a million events for each way in: DynamoDB, Lambda at the measured CPU time, queue, HTTP API."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from benchmarks.best_times import microseconds, run_python
from benchmarks.cold_start import http_request, lambda_environment
from benchmarks.designs.ours import PACKED_VIEW, SHARD, VIEW, VIEWS
from benchmarks.queue_and_stream import chunks
from benchmarks.workloads import hot
from dynamodb_counters import Counters, Event
from dynamodb_counters._cost.functions import GB_PER_CPU
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._price_file import PRICES
from dynamodb_counters.testing._dynamodb.capacity import dollars_per_million
from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import lambda_record
from simulation.handler_process import LAMBDA_CONTEXT

STREAM_BATCH: Final = 1_000
"""Events in a batch of the stream."""

QUEUE_BATCH: Final = 100
"""Messages that the queue's consumer gets at once, by default."""

PACKED_BATCH: Final = 1_000
"""The same for packed events."""

POSTED: Final = 100
"""Events of a request that posts many."""


@dataclass(frozen=True)
class Way:
    """A way in.

    `accepts` names how events are written, `counted` says whether the stream counts them; `http` are requests and
    `messages` are messages per event, `receiver` and `consumer` name the measured CPU time of the functions before and
    behind the queue, `aggregator` that of the one on the stream. An invocation behind the queue gets `batch` messages,
    one on the stream the changes of `stream_batch` events.
    """

    title: str
    accepts: str
    counted: bool = True
    http: float = 0.0
    messages: float = 0.0
    receiver: str | None = None
    consumer: str | None = None
    aggregator: str = "aggregator"
    batch: float = QUEUE_BATCH
    stream_batch: float = STREAM_BATCH


INCREMENT_BEHIND_API: Final = Way(
    "increment in a function behind an API", "increment", counted=False, http=1, receiver="receiver_single"
)
_QUEUED: Final = Way(
    "EventIngest, straight to the queue", "accept_many", http=1, messages=1, consumer="consumer_single"
)
_POSTED: Final = replace(
    _QUEUED,
    title=f"EventIngest, {POSTED} events a request",
    http=1 / POSTED,
    messages=1 / POSTED,
    receiver="receiver_many",
    consumer="consumer_many",
)
PACKED: Final = Way("accept_many, packed", "packed", aggregator="packed_aggregator")
PACKED_SINGLE: Final = replace(
    PACKED,
    title="EventIngest, packed, straight to the queue",
    http=1,
    messages=1,
    consumer="packed_consumer_single",
    batch=PACKED_BATCH,
)
PACKED_MANY: Final = replace(
    _POSTED,
    title=f"EventIngest, packed, {POSTED} events a request",
    accepts="packed",
    consumer="packed_consumer_many",
    aggregator="packed_aggregator",
)
WAYS: Final = (
    Way("increment", "increment", counted=False),
    Way("record_once", "record_once", counted=False),
    Way("accept, one by one", "accept"),
    Way("accept_many", "accept_many"),
    _QUEUED,
    replace(_QUEUED, title="EventIngest, validated", receiver="receiver_single"),
    _POSTED,
    INCREMENT_BEHIND_API,
    PACKED,
    PACKED_SINGLE,
    PACKED_MANY,
)

MILLION: Final = 1e6
_PACKED_STREAM_BATCH: Final = 10_000
"""Events in a batch of the stream that has chunks."""

_MESSAGES_PER_CALL: Final = 10
"""Messages that Lambda receives from a queue, or deletes, at once."""

_PAGES: Final = 50


def measure(rounds: int, report: Mapping[str, Any]) -> dict[str, Any]:
    """The bill of a million views of few pages, counted per page, by the report's figures of the hot workload.

    Updates of a page take as many units as those of a hot total in a table of 4, and of 64 partitions.
    """
    hot = report["cost"]["hot"]
    aggregation = {
        way: hot["packed" if way.accepts == "packed" else "accept_and_watermark"]["aggregation_write_units"]
        for way in WAYS
    }
    units_per_update = {
        partitions: each["groups"]["hot total"]["updating"] + each["groups"]["hot total"]["pruning"]
        for partitions, each in report["partitions"].items()
        if partitions in ("4", "64")
    }
    cpu = _cpu(rounds)
    writes = {name: write_units(name) for name in dict.fromkeys(way.accepts for way in WAYS)}
    return {
        "cpu_microseconds": cpu,
        "ways": {way.title: bill_of(way, writes[way.accepts], cpu, aggregation[way], units_per_update) for way in WAYS},
    }


def bill_of(
    way: Way, events: float, cpu: Mapping[str, float], aggregation: float, units_per_update: Mapping[str, float]
) -> dict[str, Any]:
    functions = [cpu[name] for name in (way.receiver, way.consumer) if name]
    invocations = (way.http if way.receiver else 0.0) + (way.messages / way.batch if way.consumer else 0.0)
    if way.counted:
        functions.append(cpu[way.aggregator])
        invocations += 1 / way.stream_batch
    found = {
        "events": dollars_per_million(events, 0),
        "lambda": sum(functions) * GB_PER_CPU * PRICES.of("lambda.gb_second")
        + MILLION * invocations * PRICES.of("lambda.request"),
        # Sent one by one, received and deleted in tens.
        "queue": MILLION * way.messages * (1 + 2 / _MESSAGES_PER_CALL) * PRICES.of("sqs.request"),
        "http": MILLION * way.http * PRICES.of("http_api.request"),
    }
    way_in = sum(found.values())
    for partitions, units in units_per_update.items():
        aggregates = dollars_per_million(aggregation * units, 0) if way.counted else 0.0
        found |= {f"aggregates_{partitions}": aggregates, f"total_{partitions}": way_in + aggregates}
    return found


def write_units(way: str) -> float:
    memory = MemoryTable(VirtualClock())
    counters = Counters("counters", client=memory)  # type: ignore[arg-type]
    together = {"accept_many": VIEW, "packed": PACKED_VIEW}
    views = [view.as_event() for view in hot(PACKED_BATCH if way == "packed" else QUEUE_BATCH)]
    if way in together:
        counters.accept_many(together[way], views)
    for view in views if way not in together else ():
        if way == "increment":
            counters.increment(VIEWS, url=view["url"])
        elif way == "record_once":
            counters.record_once(VIEW, view, [VIEWS])
        else:
            counters.accept(VIEW, view)
    return memory.usage.writes / len(views)


def _cpu(rounds: int) -> dict[str, float]:
    """Microseconds of CPU per event of each function, with botocore but without network, in a process of its own."""
    found: dict[str, float] = {}
    for event in (PACKED_VIEW, VIEW):
        environment = lambda_environment((event,)) | {"PATH": os.environ["PATH"]}
        program = f"from benchmarks import bill; bill.print_cpu({rounds}, packed={event is PACKED_VIEW})"
        measured = json.loads(run_python(["-c", program], environment).splitlines()[-1])
        found |= {f"packed_{name}": each for name, each in measured.items()} if event is PACKED_VIEW else measured
    return found


def print_cpu(rounds: int, *, packed: bool) -> None:
    send = patch("botocore.httpsession.URLLib3Session.send", lambda _, request: _answer(request))
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), send:  # noqa: PTH123
        # They log to what is the standard output when they are imported.
        from dynamodb_counters.handlers import aggregator, ingest_http, ingest_queue  # noqa: PLC0415

        counted = replace(VIEWS, source=PACKED_VIEW) if packed else VIEWS
        with patch.dict(os.environ, DECLARATIONS=encode((counted,))):
            aggregator.aggregator()
        batch, streamed = (PACKED_BATCH, _PACKED_STREAM_BATCH) if packed else (QUEUE_BATCH, STREAM_BATCH)
        views = [view.as_event() for view in hot(streamed, _PAGES)]
        consume = partial(_as_if_new, ingest_queue.handler, ingest_queue.consumer)
        records = _streamed(PACKED_VIEW if packed else VIEW, views)
        runs: dict[str, tuple[int, Callable[[], object]]] = {
            "receiver_single": (1, partial(ingest_http.handler, _posted(views[0]), LAMBDA_CONTEXT)),
            "receiver_many": (POSTED, partial(ingest_http.handler, _posted(views[:POSTED]), LAMBDA_CONTEXT)),
            "consumer_single": (batch, partial(consume, _queued(views[:batch], 1))),
            "consumer_many": (STREAM_BATCH, partial(consume, _queued(views[:STREAM_BATCH], POSTED))),
            "aggregator": (streamed, partial(_next_batch, aggregator.handler, records)),
        }
        for _, run in runs.values():
            run()  # Clients and caches are those of a process, not of an invocation.
        found = microseconds(runs, 3 * rounds)
    sys.stdout.write(json.dumps(found))


def _posted(body: object) -> dict[str, Any]:
    return http_request("POST", "/events", json.dumps(body))


def _queued(views: Sequence[Mapping[str, str]], each: int) -> dict[str, Any]:
    """A batch of messages with so many events each."""
    bodies = [json.dumps(part[0] if each == 1 else part) for part in chunks(views, each)]
    return {
        "Records": [
            {"messageId": str(index), "eventSource": "aws:sqs", "body": body} for index, body in enumerate(bodies)
        ]
    }


def _streamed(event: Event, views: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """The stream records of new events, or of their chunks."""
    memory = MemoryTable(VirtualClock(time.time()))
    for part in chunks(views, POSTED):
        Counters("counters", client=memory).accept_many(event, part)  # type: ignore[arg-type]
    records = [record for _, record in memory.stream.history()]
    kept = [record for record in records if event is VIEW or "_chunk" in record["dynamodb"]["NewImage"]]
    return [lambda_record(record, memory.stream.arn) for record in kept]


_SEQUENCES: Final = itertools.count(10**22, 997)


def _as_if_new(
    handle: Callable[[dict[str, Any], Any], object], consumer: Callable[[], Any], event: dict[str, Any]
) -> None:
    """Deliver events as if they had not come before: the process would know those that it remembers."""
    for log in consumer()._table.remembered.get("chunk logs", SimpleNamespace(_logs={}))._logs.values():
        log.places.clear()
    handle(event, LAMBDA_CONTEXT)


def _next_batch(handle: Callable[[dict[str, Any], Any], object], records: list[dict[str, Any]]) -> None:
    """Deliver records as if they were new: what lies below the shard's checkpoint would be dropped."""
    for record in records:
        record["dynamodb"]["SequenceNumber"] = str(next(_SEQUENCES))
    handle({"shardId": SHARD, "Records": records, "state": {}}, LAMBDA_CONTEXT)


def _answer(request: Any) -> SimpleNamespace:
    """Answer of the service when all goes well."""
    target = request.headers["X-Amz-Target"]
    found: dict[str, Any] = {"ConsumedCapacity": {"TableName": "counters", "CapacityUnits": 1.0}}
    if b"BatchExecuteStatement" in target:
        found = {"Responses": [{} for _ in json.loads(request.body)["Statements"]]}
    elif b"Query" in target:
        found = {"Items": []}
    elif b"TransactWriteItems" in target:
        found = {}
    elif b"DescribeTable" in target:
        found = {"Table": {}}
    headers = {"content-type": "application/x-amz-json-1.0"}
    return SimpleNamespace(status_code=200, headers=headers, content=json.dumps(found).encode(), raw=None, text="{}")
