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
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]
_PAIRS_A_MINUTE: Final = 20
_MINUTES: Final = 30
_SCALE: Final = 20
"""How many times the seeds of a day the tests take in a night of so many minutes."""


class Part(NamedTuple):
    """Arguments of Python, and variables of its environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = {}


def parts(minutes: float) -> dict[str, Part]:
    """Return all parts by name, with so many seeds that a soak takes so many minutes."""
    cpus, seed = str(os.cpu_count() or 1), str(int(time.time()))
    night = {"NIGHT": str(max(1, round(_SCALE * minutes / _MINUTES)))}
    pairs = ("--count", str(round(minutes * _PAIRS_A_MINUTE)), "--seed", seed, "--processes", cpus)
    generated = ("--generated", "--minutes", str(minutes), "--seed", seed)
    integration = ("-m", "pytest", "-q", "tests/integration", "tests/unit/benchmarks")
    return {
        "tests": Part(("-m", "pytest", "-q", "-n", cpus), night),
        "mutations": Part(("-m", "simulation.mutations")),
        "generated": Part(("-m", "simulation.mutations", *generated)),
        "soak": Part(("-m", "simulation.pairs", "--swarm", "--minutes", str(minutes), "--processes", cpus)),
        "pairs": Part(("-m", "simulation.pairs", *pairs)),
        "spec": Part(("-m", "simulation.specification", "--traces", str(round(4 * minutes)))),
        "engines": Part(integration, {**night, "ENGINES": "all"}),
        "docs": Part(("-m", "sphinx", "-q", "-a", "-W", "--keep-going", "docs", "build/site")),
    }


def run(name: str, part: Part) -> tuple[bool, str]:
    """Run a part to its end, and repeat what it prints; return whether it passed, and its row."""
    begun, last = time.monotonic(), ""
    print(f"\n== {name}: {' '.join(part.command)}", flush=True)
    with subprocess.Popen(
        [sys.executable, *part.command],
        cwd=_ROOT,
        env=os.environ | part.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            print(line, end="", flush=True)
    verdict = "passed" if process.returncode == 0 else f"FAILED with status {process.returncode}"
    return process.returncode == 0, f"{name:<10} {time.monotonic() - begun:>6.0f} s  {verdict}  {last[:100]}"


def main(arguments: Sequence[str] | None = None, known: Mapping[str, Part] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.nightly", description=__doc__)
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="of the soak; all seeds are scaled alike")
    parser.add_argument("--parts", nargs="*", default=[], help="some of them, by name; default: all")
    given = parser.parse_args(arguments)
    known = parts(given.minutes) if known is None else known
    if unknown := {*given.parts} - known.keys():
        parser.error(f"invalid parts={' '.join(sorted(unknown))}: expected some of {[*known]}")
    results = [run(name, part) for name, part in known.items() if not given.parts or name in given.parts]
    print("", *(row for _, row in results), sep="\n")
    return int(not all(is_right for is_right, _ in results))


if __name__ == "__main__":
    sys.exit(main())
