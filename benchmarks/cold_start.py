"""Cold starts: imports and first invocation of each handler, beside a bare boto3 client; asset sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.best_times import keep_best
from benchmarks.designs.ours import SITE, VIEWS, VISITORS
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import encode
from examples.blog_declarations import VIEW

_PROJECT: Final = Path(__file__).resolve().parents[1]

_TIMED: Final = """
import contextlib, io, json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
{}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
_BARE: Final = _TIMED.format("import boto3\nboto3.client('dynamodb')")
_POWERTOOLS: Final = _TIMED.format("import aws_lambda_powertools, aws_lambda_powertools.metrics")
_INIT: Final = _TIMED.format("from dynamodb_counters.handlers import aggregator as module\nmodule.aggregator()")
_FIRST: Final = _TIMED.format(
    """
from types import SimpleNamespace
from dynamodb_counters.handlers import {module} as module
from botocore.httpsession import URLLib3Session
# Only the network is left out: every request gets this answer.
body = b'{{"Items":[],"Responses":[{{}}]}}'
URLLib3Session.send = lambda *_: SimpleNamespace(status_code=200, headers={{}}, content=body, raw=None, text='{{}}')
context = SimpleNamespace(
    function_name='f', memory_limit_in_mb=512, invoked_function_arn='arn', aws_request_id='1',
    get_remaining_time_in_millis=lambda: 60000,
)
with contextlib.redirect_stdout(io.StringIO()):
    answer = module.handler(json.loads(sys.argv[1]), context)
assert answer.get('statusCode', 200) < 300 and not answer.get('batchItemFailures'), answer
"""
)

_VIEW: Final = {"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": "c1"}
_CHANGE: Final = {"SequenceNumber": "1" * 21, "NewImage": {"pk": {"S": "a"}, "sk": {"S": "b"}}}


def _request(method: str, path: str, body: str = "") -> dict[str, Any]:
    context = {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": context,
        "isBase64Encoded": False,
        "body": body,
    }


_INVOCATIONS: Final[dict[str, dict[str, Any]]] = {
    # A batch with nothing to count: only the look into quarantine needs the network.
    "aggregator": {"shardId": "shardId-1", "Records": [{"eventName": "INSERT", "dynamodb": _CHANGE}]},
    "ingest_queue": {"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": json.dumps(_VIEW)}]},
    "ingest_http": _request("POST", "/events", json.dumps(_VIEW)),
    "api": _request("GET", "/v1/aggregates/site"),
}
_PROGRAMS: Final = {
    "bare_client": [_BARE],
    "powertools_import": [_POWERTOOLS],
    "aggregator_init": [_INIT],
    **{
        f"{module}_first_invocation": [_FIRST.format(module=module), json.dumps(event)]
        for module, event in _INVOCATIONS.items()
    },
}


def measure(rounds: int) -> dict[str, Any]:
    """Seconds of each, in fresh processes, in turn: the best of all rounds."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for name, program in _PROGRAMS.items():
            wall, cpu = _run(program, (VIEW,) if name.startswith("ingest") else (VIEWS, VISITORS, SITE))
            keep_best(best, name, wall, cpu)
    return best


def asset_bytes() -> dict[str, Any]:
    """Measure what the function's asset weighs, unpacked."""
    from cdk_dynamodb_counters.runtime_code import _files  # noqa: PLC0415  # CDK is slow to import.

    sizes: dict[str, int] = {}
    for source, name in _files():
        sizes[name.parts[0]] = sizes.get(name.parts[0], 0) + source.stat().st_size
    return {"total_bytes": sum(sizes.values()), "parts": sizes}


def _run(program: list[str], declarations: tuple[Declaration | Event, ...]) -> tuple[float, float]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(_PROJECT / "lambdas"),
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_NAME": "f",
        "TABLE_NAME": "counters",
        "QUARANTINE_RETENTION_DAYS": "30",
        "DECLARATIONS": encode(declarations),
        "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/events",
        "MAX_BODY_BYTES": "1000000",
        "POWERTOOLS_METRICS_NAMESPACE": "DynamoDBCounters",
        "POWERTOOLS_SERVICE_NAME": "counters",
    }
    done = subprocess.run([sys.executable, "-c", *program], check=True, capture_output=True, text=True, env=environment)
    wall, cpu = done.stdout.split()[-2:]
    return float(wall), float(cpu)


if __name__ == "__main__":
    print(json.dumps(measure(3), indent=2))
