"""What a cold start costs: imports and first invocation of the handler, beside a bare boto3 client; asset sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.designs.ours import SITE, VIEWS, VISITORS
from dynamodb_counters.wire import encode

_PROJECT: Final = Path(__file__).resolve().parents[1]

_CLOCK: Final = "import time; wall, cpu = time.perf_counter(), time.process_time()\n"
_PRINT: Final = "print(time.perf_counter() - wall, time.process_time() - cpu)\n"

_BARE: Final = f"{_CLOCK}import boto3\nboto3.client('dynamodb')\n{_PRINT}"
_INIT: Final = f"{_CLOCK}from dynamodb_counters.handlers import aggregator as module\nmodule.aggregator()\n{_PRINT}"
_FIRST: Final = f"""{_CLOCK}
from types import SimpleNamespace
from dynamodb_counters.handlers import aggregator as module
from botocore.httpsession import URLLib3Session
# The network is left out. A batch with nothing to count needs it for the look into quarantine alone.
nothing = SimpleNamespace(status_code=200, headers={{}}, content=b'{{"Items":[]}}', raw=None, text='')
URLLib3Session.send = lambda *_: nothing
context = SimpleNamespace(
    function_name='f', memory_limit_in_mb=512, invoked_function_arn='arn', aws_request_id='1',
    get_remaining_time_in_millis=lambda: 60000,
)
change = {{'SequenceNumber': '1' * 21, 'NewImage': {{'pk': {{'S': 'a'}}, 'sk': {{'S': 'b'}}}}}}
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    module.handler({{'shardId': 'shardId-1', 'Records': [{{'eventName': 'INSERT', 'dynamodb': change}}]}}, context)
{_PRINT}"""
_POWERTOOLS: Final = f"{_CLOCK}import aws_lambda_powertools, aws_lambda_powertools.metrics\n{_PRINT}"
_PROGRAMS: Final = {
    "bare_client": _BARE,
    "aggregator_init": _INIT,
    "aggregator_first_invocation": _FIRST,
    "powertools_import": _POWERTOOLS,
}


def measure(rounds: int) -> dict[str, Any]:
    """Measure each in fresh processes, in turn, and keep the best CPU time and its wall time.

    Parameters
    ----------
    rounds : int
        How often each is measured.

    Returns
    -------
    dict
        Seconds.
    """
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, program in _PROGRAMS.items():
            wall, cpu = _run(program)
            known = best.setdefault(name, {"wall_seconds": wall, "cpu_seconds": cpu})
            known["wall_seconds"] = min(known["wall_seconds"], wall)
            known["cpu_seconds"] = min(known["cpu_seconds"], cpu)
    return best


def asset_bytes() -> dict[str, Any]:
    """Measure what the function's asset weighs, unpacked."""
    from cdk_dynamodb_counters.runtime_code import _files  # noqa: PLC0415  # CDK is slow to import.

    sizes: dict[str, int] = {}
    for source, name in _files():
        sizes[name.parts[0]] = sizes.get(name.parts[0], 0) + source.stat().st_size
    return {"total_bytes": sum(sizes.values()), "parts": sizes}


def _run(program: str) -> tuple[float, float]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(_PROJECT / "lambdas"),
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_LAMBDA_FUNCTION_NAME": "aggregator",
        "TABLE_NAME": "counters",
        "QUARANTINE_RETENTION_DAYS": "30",
        "DECLARATIONS": encode((VIEWS, VISITORS, SITE)),
        "POWERTOOLS_METRICS_NAMESPACE": "DynamoDBCounters",
        "POWERTOOLS_SERVICE_NAME": "aggregator",
    }
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    wall, cpu = done.stdout.split()[-2:]
    return float(wall), float(cpu)


if __name__ == "__main__":
    print(json.dumps(measure(3), indent=2))
