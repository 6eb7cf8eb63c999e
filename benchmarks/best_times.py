"""The best of several rounds: a busy machine only ever makes a round slower."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

PROJECT: Final = Path(__file__).resolve().parents[1]

Seconds: TypeAlias = dict[str, float]


def best(contenders: Mapping[str, Callable[[], Seconds]], rounds: int) -> dict[str, Seconds]:
    """Return the lowest seconds of each, all interleaved, so that whatever else runs slows all of them alike."""
    lowest: dict[str, Seconds] = {}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds = run()
            minimum = lowest.setdefault(name, seconds)
            lowest[name] = {kind: min(minimum[kind], seconds[kind]) for kind in seconds}
    return lowest


def cpu_seconds(run: Callable[[], object]) -> Seconds:
    start = time.process_time()
    run()
    return {"cpu_seconds": time.process_time() - start}


def microseconds(contenders: Mapping[str, tuple[int, Callable[[], object]]], rounds: int) -> dict[str, float]:
    """Return the lowest CPU time of each per event, of which it handles so many."""

    def timed(run: Callable[[], object]) -> Seconds:
        # Or else each may collect the garbage of the one before.
        gc.collect()
        return cpu_seconds(run)

    lowest = best({name: partial(timed, run) for name, (_, run) in contenders.items()}, rounds)
    return {name: lowest[name]["cpu_seconds"] / events * 1e6 for name, (events, _) in contenders.items()}


def run_python(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Output of a fresh process that can import the project."""
    roots = os.pathsep.join(str(PROJECT / root) for root in ("lambdas", "infra", "."))
    command = [sys.executable, *arguments]
    environment = {**environment, "PYTHONPATH": roots}
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT, env=environment).stdout


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    # On Linux, a process inherits getrusage's peak from its parent.
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
