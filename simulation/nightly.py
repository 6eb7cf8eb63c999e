"""Runs by night what a day has no time for, part by part: ``python -m simulation.nightly --parts mutations spec``.

A part that fails stops no other. A table at the end says what was run, and the last line that each part printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]
_PAIRS_A_MINUTE: Final = 20
_MINUTES: Final = 30
_SCALE: Final = 20
"""How many times the seeds of a day the tests take in a night of so many minutes."""


def parts(minutes: float) -> dict[str, Sequence[str]]:
    """Return arguments of Python for all parts, with so many seeds that a soak takes so many minutes."""
    cpus, seed = str(os.cpu_count() or 1), str(int(time.time()))
    pairs = ("--count", str(round(minutes * _PAIRS_A_MINUTE)), "--seed", seed, "--processes", cpus)
    generated = ("--generated", "--minutes", str(minutes), "--seed", seed)
    return {
        "tests": ("-m", "pytest", "-q", "-n", cpus),
        "mutations": ("-m", "simulation.mutations"),
        "generated": ("-m", "simulation.mutations", *generated),
        "soak": ("-m", "simulation.pairs", "--swarm", "--minutes", str(minutes), "--processes", cpus),
        "pairs": ("-m", "simulation.pairs", *pairs),
        "spec": ("-m", "simulation.specification", "--traces", str(round(4 * minutes))),
        "engines": ("-m", "pytest", "-q", "tests/integration", "tests/unit/benchmarks"),
        "docs": ("-m", "sphinx", "-q", "-a", "-W", "--keep-going", "docs", "build/site"),
    }


def variables(name: str, minutes: float) -> dict[str, str]:
    """Return what the environment of a part has besides."""
    night = {"NIGHT": str(max(1, round(_SCALE * minutes / _MINUTES)))} if name in ("tests", "engines") else {}
    return night | ({"ENGINES": "all"} if name == "engines" else {})


def run(name: str, command: Sequence[str], environment: Mapping[str, str]) -> tuple[bool, str]:
    """Run a part to its end, and repeat what it prints; return whether it passed, and its row."""
    begun, last = time.monotonic(), ""
    print(f"\n== {name}: {' '.join(command)}", flush=True)
    options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([sys.executable, *command], cwd=_ROOT, env=os.environ | environment, **options) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            print(line, end="", flush=True)
    status = "passed" if process.returncode == 0 else f"FAILED with status {process.returncode}"
    return process.returncode == 0, f"{name:<10} {time.monotonic() - begun:>6.0f} s  {status}  {last[:100]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.nightly", description=__doc__)
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="of the soak; all seeds are scaled alike")
    parser.add_argument("--parts", nargs="*", default=[], choices=[*parts(1)], help="some of them; default: all")
    options = parser.parse_args()
    choice = {name: part for name, part in parts(options.minutes).items() if not options.parts or name in options.parts}
    results = [run(name, part, variables(name, options.minutes)) for name, part in choice.items()]
    print("", *(row for _, row in results), sep="\n")
    return int(not all(is_right for is_right, _ in results))


if __name__ == "__main__":
    sys.exit(main())
