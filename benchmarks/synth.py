"""Seconds to synthesize the example app, and the same resources in plain L2 constructs."""

from __future__ import annotations

import json
import os
import resource
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.best_times import PROJECT, Seconds, best, run_python

_TEMPLATE: Final = ".template.json"

# Without cdk-nag, which would check either app.
_EXAMPLE: Final = """
from aws_cdk import App
from examples import stacks
app = App()
for name, stack in stacks().items():
    stack(app, name)
app.synth()
"""


def measure(rounds: int) -> dict[str, Any]:
    """Synthesize both in turn, in fresh processes; ValueError unless both have the same resources."""
    from cdk_dynamodb_counters._staging import stage  # noqa: PLC0415  # CDK is slow to import.

    asset = str(stage(""))
    with tempfile.TemporaryDirectory() as folder:
        outputs = {name: Path(folder, name) for name in ("example", "plain_l2")}

        def plain() -> Seconds:
            stacks = json.dumps(_stacks(outputs["example"]))
            return _run(["-m", "benchmarks.plain_l2", asset, stacks], outputs["plain_l2"])

        # In this order: the plain stacks have as many rules and alarms as the example's have.
        seconds = best({"example": partial(_run, ["-c", _EXAMPLE], outputs["example"]), "plain_l2": plain}, rounds)
        resources = {name: sum(_stacks(output).values(), Counter()) for name, output in outputs.items()}
    example, other = resources.values()
    if example != other:
        raise ValueError(f"not the same resources: only in example {example - other}, in plain L2 {other - example}")
    return {name: {**seconds[name], "resources": dict(sorted(resources[name].items()))} for name in resources}


def _run(arguments: list[str], output: Path) -> Seconds:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    context = json.loads((PROJECT / "cdk.json").read_text())["context"]
    # Node's CPU time counts too: it is a child of the child.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    run_python(arguments, {**environment, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(output)})
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": wall, "cpu_seconds": cpu}


def _stacks(output: Path) -> dict[str, Counter[str]]:
    """How many resources of each type the stacks have."""
    return {
        path.name.removesuffix(_TEMPLATE): Counter(
            part["Type"] for part in json.loads(path.read_text())["Resources"].values()
        )
        for path in output.glob(f"*{_TEMPLATE}")
    }
