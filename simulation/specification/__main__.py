"""Checks the whole specification with TLC, and traces of the real handler against it: ``make spec``.

Writes what it finds into docs/spec/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from simulation.engines import EngineUnavailableError
from simulation.specification.broken_handlers import BROKEN
from simulation.specification.configurations import CONFIGURATIONS, MODULE, REMOVALS, Configuration, Removal
from simulation.specification.tlc import MODULES, Verdict, check
from simulation.specification.traces import Trace, compare, trace_of

README: Final = MODULES / "README.md"
_BEGIN, _END = "<!-- what make spec found -->\n", "<!-- end -->\n"
_LONGEST_SECONDS: Final = 3600.0
_AT_ONCE: Final = 25
_SEEDS_OF_BROKEN: Final = range(40)


def holds(configuration: Configuration) -> tuple[bool, str]:
    """A row for a configuration, and whether it is as it must be."""
    verdict = _checked(configuration.text())
    right = isinstance(verdict, Verdict) and verdict.violated is None
    found = "holds" if right else _problem(verdict)
    return right, f"| {configuration.name} | {configuration.about} | {found} | {_size(verdict)} |"


def breaks(removal: Removal) -> tuple[bool, str]:
    """A row for a removed guard, and whether there is a counterexample, as there must be."""
    verdict = _checked(removal.text())
    right = isinstance(verdict, Verdict) and verdict.violated is not None
    steps = verdict.steps if isinstance(verdict, Verdict) and right else "none"
    found = verdict.violated if isinstance(verdict, Verdict) and right else _problem(verdict)
    return right, f"| {removal.about} | {removal.configuration} | {found} | {steps} | {_size(verdict)} |"


def follows(traces: Sequence[Trace]) -> tuple[bool, int, str]:
    """Whether the specification allows what handlers did, in how many steps, and if not, what it does not."""
    verdict, wrong = compare(traces, _LONGEST_SECONDS)
    return wrong is None, verdict.states, wrong or ""


def parts(name: str) -> tuple[bool, str]:
    """A row for a broken handler, and whether the specification does not allow what it does."""
    with BROKEN[name]():
        traces = [trace_of(seed) for seed in _SEEDS_OF_BROKEN]
    _, wrong = compare(traces, _LONGEST_SECONDS)
    return wrong is not None, f"| {name} | {_shown(wrong or 'accepted')} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.specification", description=__doc__)
    parser.add_argument("--traces", type=int, default=1000, help="how many schedules")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    begun = time.monotonic()
    try:
        right, text = _report(given.traces, given.processes)
    except EngineUnavailableError as missing:
        print(missing)
        return 1
    text += f"\nIn all {time.monotonic() - begun:.0f} s with {given.processes} processes.\n"
    print(text)
    _write(README, text)
    return 0 if right else 1


def _report(schedules: int, processes: int) -> tuple[bool, str]:
    with ThreadPoolExecutor(processes) as pool:
        configurations = _printed(pool.map(holds, CONFIGURATIONS))
        guards = _printed(pool.map(breaks, [removal for removal in REMOVALS if not removal.assumed]))
        assumptions = _printed(pool.map(breaks, [removal for removal in REMOVALS if removal.assumed]))
    right, steps, rejected = True, 0, ""
    for first in range(0, schedules, _AT_ONCE):
        followed, states, wrong = follows([trace_of(s) for s in range(first, min(first + _AT_ONCE, schedules))])
        right, steps, rejected = right and followed, steps + states, rejected or wrong
        print(f"{min(first + _AT_ONCE, schedules)} traces, {steps:,} steps {wrong}", flush=True)
    broken = _printed(map(parts, BROKEN))
    rows = [*configurations, *guards, *assumptions, *broken]
    text = "\n".join(
        [
            "| configuration | what takes part | verdict | distinct states | seconds |",
            "|---|---|---|---|---|",
            *(row for _, row in configurations),
            "\n| guard removed | from | violated | shortest trace, steps | states until then | seconds |",
            "|---|---|---|---|---|---|",
            *(row for _, row in guards),
            "\n| assumption dropped | from | violated | shortest trace, steps | states until then | seconds |",
            "|---|---|---|---|---|---|",
            *(row for _, row in assumptions),
            f"\n{schedules:,} schedules of the real handler, {steps:,} steps: "
            + (f"not a behavior: {_shown(rejected)}" if rejected else "each a behavior of the specification."),
            "\n| handler broken on purpose | where its trace and the specification part |",
            "|---|---|",
            *(row for _, row in broken),
        ]
    )
    return right and all(good for good, _ in rows), text + "\n"


def _printed(rows: Iterable[tuple[bool, str]]) -> list[tuple[bool, str]]:
    done = []
    for right, row in rows:
        print("ok   " if right else "WRONG", row, flush=True)
        done.append((right, row))
    return done


def _checked(configuration: str) -> Verdict | RuntimeError:
    try:
        return check(MODULE, configuration, seconds=_LONGEST_SECONDS)
    except RuntimeError as error:
        return error


def _problem(verdict: Verdict | RuntimeError) -> str:
    if isinstance(verdict, RuntimeError):
        return f"**{str(verdict).splitlines()[0]}**"
    return f"**violated: {verdict.violated}**" if verdict.violated else "**no counterexample**"


def _size(verdict: Verdict | RuntimeError) -> str:
    return f"{verdict.states:,} | {verdict.seconds:.0f}" if isinstance(verdict, Verdict) else "| "


def _shown(text: str) -> str:
    return f"`{text[:160]}`".replace("|->", "=").replace("\n", " ")


def _write(path: Path, text: str) -> None:
    before, _, rest = path.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    path.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}")


if __name__ == "__main__":
    sys.exit(main())
