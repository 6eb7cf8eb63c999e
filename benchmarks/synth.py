"""How long the example app takes to synthesize, beside the same resources in plain L2 constructs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from benchmarks.best_times import keep_best

_PROJECT: Final = Path(__file__).resolve().parents[1]

# Without cdk-nag, which would check either app.
_EXAMPLE: Final = """
from aws_cdk import App
from examples.blog.stack import BlogStack
from examples.jobs.stack import JobsStack
from examples.leaderboard.stack import LeaderboardStack
from examples.pages.stack import PagesStack
app = App()
BlogStack(app, "CountersBlog")
JobsStack(app, "CountersJobs")
LeaderboardStack(app, "CountersLeaderboard")
PagesStack(app, "CountersPages")
app.synth()
"""
_STAGE: Final = "from cdk_dynamodb_counters._staging import stage; import shutil, sys; {}"


def measure(rounds: int) -> dict[str, Any]:
    """Synthesize both in turn, in fresh processes; ValueError unless both have the same resources."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        asset = Path(folder) / "asset"
        _stage(asset)
        programs = {"example": ["-c", _EXAMPLE], "plain_l2": ["-m", "benchmarks.plain_l2", str(asset)]}
        for number in range(rounds):
            for name, arguments in programs.items():
                out = Path(folder) / f"{name}-{number}"
                wall, cpu = _run(arguments, out)
                keep_best(found, name, wall, cpu)
                found[name]["resources"] = _resources(out)
    example, plain = (found[name]["resources"] for name in programs)
    if example != plain:
        differing = {kind: (example.get(kind, 0), plain.get(kind, 0)) for kind in {*example, *plain}}
        raise ValueError(f"not the same resources: { ({k: n for k, n in differing.items() if n[0] != n[1]}) }")
    return found


def _environment() -> dict[str, str]:
    roots = [str(_PROJECT / root) for root in ("infra", "lambdas", ".")]
    context = json.loads((_PROJECT / "cdk.json").read_text())["context"]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))},
        "PYTHONPATH": os.pathsep.join(roots),
        "CDK_CONTEXT_JSON": json.dumps(context),
    }


def _stage(asset: Path) -> None:
    program = _STAGE.format("shutil.copytree(stage(''), sys.argv[1])")
    subprocess.run([sys.executable, "-c", program, str(asset)], check=True, env=_environment(), cwd=_PROJECT)


def _run(arguments: list[str], out: Path) -> tuple[float, float]:
    # Node's CPU time counts too: it is a child of the child.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        cwd=_PROJECT,
        env={**_environment(), "CDK_OUTDIR": str(out)},
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _resources(out: Path) -> dict[str, int]:
    types: Counter[str] = Counter()
    for template in out.glob("*.template.json"):
        types.update(part["Type"] for part in json.loads(template.read_text())["Resources"].values())
    return dict(sorted(types.items()))


if __name__ == "__main__":
    print(json.dumps(measure(1), indent=2))
