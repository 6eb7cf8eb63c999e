"""CPU time of the functions per event, with botocore but without network, by way in."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
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
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._writes.chunk_log import ChunkLogs
from simulation.clock import VirtualClock
from simulation.delivery.stream_api import lambda_record
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.metered_table import MeteredTable

POSTED: Final = 100
"""Events of a request that posts many."""

_OFTEN: Final = 50
"""Requests that are timed together: the clock of CPU time may tick more seldom than one takes."""

_STREAM_BATCH: Final = 1_000
"""Events in a batch of the stream."""

_PACKED_STREAM_BATCH: Final = 10_000
"""The same where it has chunks."""

_QUEUE_BATCH: Final = 100
"""Messages that the queue's consumer gets at once, by default."""

_PACKED_BATCH: Final = 1_000
"""The same for packed events."""

_PAGES: Final = 50


def measure(rounds: int) -> dict[str, float]:
    """Microseconds of CPU per event of each function, with botocore but without network, in a process of its own."""
    found: dict[str, float] = {}
    for event in (PACKED_VIEW, VIEW):
        environment = lambda_environment((event,)) | {"PATH": os.environ["PATH"]}
        program = (
            f"from benchmarks import function_cpu; function_cpu.print_cpu({rounds}, packed={event is PACKED_VIEW})"
        )
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
        batch, streamed = (_PACKED_BATCH, _PACKED_STREAM_BATCH) if packed else (_QUEUE_BATCH, _STREAM_BATCH)
        views = [view.as_event() for view in hot(streamed, _PAGES)]
        consume = partial(_as_if_new, ingest_queue.handler, ingest_queue.consumer)
        records = _streamed(PACKED_VIEW if packed else VIEW, views)
        runs: dict[str, tuple[int, Callable[[], object]]] = {
            "receiver_single": (
                _OFTEN,
                partial(_often, partial(ingest_http.handler, _posted(views[0]), LAMBDA_CONTEXT)),
            ),
            "receiver_many": (
                POSTED * _OFTEN,
                partial(_often, partial(ingest_http.handler, _posted(views[:POSTED]), LAMBDA_CONTEXT)),
            ),
            "consumer_single": (batch, partial(consume, _queued(views[:batch], 1))),
            "consumer_many": (_STREAM_BATCH, partial(consume, _queued(views[:_STREAM_BATCH], POSTED))),
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
    memory = MeteredTable(VirtualClock(time.time()))
    for part in chunks(views, POSTED):
        Counters("counters", client=memory).accept_many(event, part)  # type: ignore[arg-type]
    records = [record for _, record in memory.stream.history()]
    kept = [record for record in records if event is VIEW or "_chunk" in record["dynamodb"]["NewImage"]]
    return [lambda_record(record, memory.stream.arn) for record in kept]


def _often(run: Callable[[], object]) -> None:
    for _ in range(_OFTEN):
        run()


_SEQUENCES: Final = itertools.count(10**22, 997)


def _as_if_new(
    handle: Callable[[dict[str, Any], Any], object], consumer: Callable[[], Any], event: dict[str, Any]
) -> None:
    """Deliver events as if they had not come before: the process would know those that it remembers."""
    for log in ChunkLogs.of_table(consumer()._table)._logs.values():
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
