"""Runs by night what a day has no time for, part by part: ``python -m simulation.nightly --parts mutations spec``.

A part that fails stops no other. A table at the end says what was run, and what went wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
_PAIRS_A_MINUTE: Final = 20
_MINUTES: Final = 30
_SCALE: Final = 20
"""How many times the seeds of a day the tests take in a night of so many minutes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Arguments of Python, and expressions for seeds or cases, and for wrong ones, in what it prints.

    An expression with a group finds the number itself, the last one counts; one without is counted.
    """

    name: str
    command: Sequence[str]
    cases: str | None
    wrong: str
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a part; its cases are None where its output does not have them."""

    name: str
    cases: int | None
    wrong: int
    status: int
    seconds: float

    @property
    def row(self) -> str:
        cases = "-" if self.cases is None else f"{self.cases:,}"
        verdict = "passed" if self.status == 0 else f"FAILED with status {self.status}"
        return f"{self.name:<10} {cases:>9} {self.wrong:>6,} {self.seconds:>8.0f}  {verdict}"


def parts(minutes: float) -> list[Part]:
    """Return all parts, with so many seeds that a soak takes so many minutes."""
    pytest = ("-m", "pytest", "-q", "-n", str(os.cpu_count() or 1))
    tests = {"cases": r"(\d+) passed", "wrong": r"(\d+) (?:failed|errors?)"}
    mutations = r"(\d+) mutations in", r"(\d+) that must be noticed are not"
    night = ("NIGHT", str(max(1, round(_SCALE * minutes / _MINUTES))))
    schedules, seed = str(round(minutes * _PAIRS_A_MINUTE)), str(int(time.time()))
    return [
        Part("tests", pytest, **tests, environment=(night,)),
        Part("mutations", ("-m", "simulation.mutations"), *mutations),
        Part(
            "generated",
            ("-m", "simulation.mutations", "--generated", "--minutes", str(minutes), "--seed", seed),
            *mutations,
        ),
        Part(
            "soak",
            ("-m", "simulation.soak", "--minutes", str(minutes)),
            r"([\d,]+) schedules from",
            r"(\d+) schedules with",
        ),
        Part(
            "pairs",
            ("-m", "simulation.pairs", "--count", schedules, "--seed", seed, "--processes", str(os.cpu_count() or 1)),
            r"([\d,]+) schedules from",
            r"(\d+) schedules with",
        ),
        Part(
            "spec",
            ("-m", "simulation.specification", "--no-page", "--traces", str(round(4 * minutes))),
            r"^(?:ok   |WRONG) ",
            r"^WRONG ",
        ),
        Part(
            "engines",
            ("-m", "pytest", "-q", "tests/integration", "tests/unit/benchmarks"),
            **tests,
            environment=(("ENGINES", "all"), night),
        ),
        Part("docs", ("-m", "sphinx", "-q", "-a", "-W", "--keep-going", "docs", "build/site"), None, r"WARNING|ERROR"),
    ]


def run(part: Part) -> Result:
    """Run a part to its end, and repeat what it prints."""
    begun, printed = time.monotonic(), list[str]()
    command = [sys.executable, *part.command]
    print(f"\n== {part.name}: {' '.join(part.command)}", flush=True)
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env=os.environ | dict(part.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            print(line, end="", flush=True)
    text, seconds = "".join(printed), time.monotonic() - begun
    cases = None if part.cases is None else _number(part.cases, text)
    return Result(part.name, cases, _number(part.wrong, text), process.returncode, seconds)


def _number(expression: str, text: str) -> int:
    found = list(re.finditer(expression, text, re.MULTILINE))
    return int(found[-1][1].replace(",", "")) if found and found[-1].groups() else len(found)


def table(results: Iterable[Result]) -> str:
    lines = [f"{'part':<10} {'seeds':>9} {'wrong':>6} {'seconds':>8}"]
    return "\n".join([*lines, *(result.row for result in results)])


def main(arguments: Sequence[str] | None = None, known: Sequence[Part] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.nightly", description=__doc__)
    parser.add_argument("--minutes", type=float, default=_MINUTES, help="of the soak; all seeds are scaled alike")
    parser.add_argument("--parts", nargs="*", default=[], help="some of them, by name; default: all")
    given = parser.parse_args(arguments)
    known = parts(given.minutes) if known is None else known
    if unknown := {*given.parts} - {part.name for part in known}:
        parser.error(f"invalid parts={' '.join(sorted(unknown))}: expected some of {[part.name for part in known]}")
    results = [run(part) for part in known if not given.parts or part.name in given.parts]
    print(f"\n{table(results)}")
    return int(any(result.status for result in results))


if __name__ == "__main__":
    sys.exit(main())
