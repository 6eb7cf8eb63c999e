"""Cold starts: imports and first invocation of each handler, and of a bare boto3 client; asset sizes."""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import partial
from typing import Any, Final

from benchmarks.best_times import Seconds, best, run_python
from benchmarks.designs.ours import SITE, VIEWS, VISITORS
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._registry import DECLARED, entries_of, header_key
from examples.blog import VIEW

_TIMED: Final = """
import contextlib, io, json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
{}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
_FIRST_INVOCATION: Final = """
from types import SimpleNamespace
from counters_lambda.handlers import {module} as module
from botocore.httpsession import URLLib3Session
# Only the network is left out: every request gets this answer.
body = sys.argv[2].encode()
URLLib3Session.send = lambda *_: SimpleNamespace(status_code=200, headers={{}}, content=body, raw=None, text='{{}}')
context = SimpleNamespace(
    function_name='f', memory_limit_in_mb=512, invoked_function_arn='arn', aws_request_id='1',
    get_remaining_time_in_millis=lambda: 60000,
)
with contextlib.redirect_stdout(io.StringIO()):
    answer = module.handler(json.loads(sys.argv[1]), context)
assert answer.get('statusCode', 200) < 300 and not answer.get('batchItemFailures'), answer
"""

_VIEW: Final = {"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": "c1"}
_CHANGE: Final = {"SequenceNumber": "1" * 21, "NewImage": {"pk": {"S": "a"}, "sk": {"S": "b"}}}


def http_request(method: str, path: str, body: str = "") -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"},
        "isBase64Encoded": False,
        "body": body,
    }


_INVOCATIONS: Final[dict[str, dict[str, Any]]] = {
    # A batch with nothing to count: only the shard's checkpoint and the table's registry need the network.
    "aggregator": {"shardId": "shardId-1", "Records": [{"eventName": "INSERT", "dynamodb": _CHANGE}]},
    "ingest_queue": {"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": json.dumps(_VIEW)}]},
    "ingest_http": http_request("POST", "/events", json.dumps(_VIEW)),
    "api": http_request("GET", "/v1/site"),
}
_PROGRAMS: Final = {
    "bare_client": ["import boto3\nboto3.client('dynamodb')"],
    "powertools_import": ["import aws_lambda_powertools, aws_lambda_powertools.metrics"],
    "aggregator_init": ["from counters_lambda.handlers import aggregator as module\nmodule.aggregator()"],
} | {
    f"{module}_first_invocation": [_FIRST_INVOCATION.format(module=module), json.dumps(event)]
    for module, event in _INVOCATIONS.items()
}


def measure(rounds: int) -> dict[str, Any]:
    """Wall and CPU seconds of each, in fresh processes."""
    return best({name: partial(_run, name, *program) for name, program in _PROGRAMS.items()}, rounds)


def asset_bytes() -> dict[str, Any]:
    from cdk_dynamodb_counters._staging import runtime_files  # noqa: PLC0415  # CDK is slow to import.

    sizes = Counter[str]()
    for source, name in runtime_files():
        sizes[name.parts[0]] += source.stat().st_size
    return {"total_bytes": sum(sizes.values()), "parts": sizes}


def _run(name: str, program: str, *event: str) -> Seconds:
    declared: tuple[Event | Declaration, ...] = (VIEW,) if name.startswith("ingest") else (VIEWS, VISITORS, SITE)
    environment = {
        "PATH": os.environ["PATH"],
        **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_NAME": "f",
        "TABLE_NAME": "counters",
        "QUARANTINE_RETENTION_DAYS": "30",
        "DECLARATIONS": encode(declared),
        "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/events",
        "DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/dead-letters",
        "MAX_BODY_BYTES": "1000000",
        "POWERTOOLS_METRICS_NAMESPACE": "DynamoDBCounters",
        "POWERTOOLS_SERVICE_NAME": "counters",
    }
    # A registry that has all names.
    header = header_key() | {DECLARED: {"S": encode(declared, attributes=True)}}
    items = [header, *(entry.item() for entry in entries_of((VIEWS, VISITORS, SITE)))]
    answer = json.dumps({"Items": items if name.startswith("aggregator") else [], "Responses": [{}], "Table": {}})
    wall, cpu = run_python(["-c", _TIMED.format(program), *event, answer], environment).split()[-2:]
    return {"wall_seconds": float(wall), "cpu_seconds": float(cpu)}
