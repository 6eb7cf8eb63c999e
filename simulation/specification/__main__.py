"""Checks the specification by TLC, and traces of the handler against it; prints the tables of docs/spec/README.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from simulation.engines import EngineUnavailableError
from simulation.specification.explorations import SPECIFICATIONS, Exploration
from simulation.specification.traces import BROKEN, compare, trace_of

_LONGEST_SECONDS: Final = 3600.0
_AT_ONCE: Final = 25
_SEEDS_OF_BROKEN: Final = range(24)

Row = tuple[bool, str]
"""A row of a table, and whether it is as it must be."""


def explored(exploration: Exploration, seconds: float, *, removal: bool) -> Row:
    """Return a row for a configuration, or for a removed guard, of which there must be a counterexample."""
    try:
        result = exploration.check(seconds)
    except RuntimeError as error:
        cell, size, is_right, steps = f"**{str(error).splitlines()[0]}**", "| ", False, 0
    else:
        is_right = (result.violated is not None) is removal
        cell = result.violated or "holds"
        cell = cell if is_right else f"**{cell}**"
        size, steps = f"{result.states:,} | {result.seconds:.0f}", len(result.trace) - 1
    module = exploration.specification.name
    if removal:
        return is_right, f"| {module} | {exploration.about} | {exploration.name} | {cell} | {steps} | {size} |"
    return is_right, f"| {module} | {exploration.name} | {exploration.about} | {cell} | {size} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.specification", description=__doc__)
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=list(_PARTS), help="which parts")
    parser.add_argument("--traces", type=int, default=1000, help="how many schedules")
    parser.add_argument("--seconds", type=float, default=3600.0, help="the longest that one run of TLC may take")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    count, wrong, last, took = 0, 0, "", ""
    for part in options.only:
        begun, (head, rows) = time.monotonic(), _PARTS[part]
        if head != last:
            print(f"\n{head}\n{'|---' * (head.count('|') - 1)}|", flush=True)
        try:
            for is_right, row in rows(options):
                count, wrong = count + 1, wrong + (not is_right)
                print(row if is_right else f"{row} WRONG", flush=True)
        except EngineUnavailableError as missing:
            print(missing)
            return 1
        last, took = head, f"{took} {part} {time.monotonic() - begun:.0f} s,"
    print(f"\nTook{took} {options.processes} at a time.\n\n{count} rows, {wrong} wrong")
    return 1 if wrong else 0


def _explored(these: Iterable[Exploration], options: argparse.Namespace, *, removal: bool = False) -> Iterator[Row]:
    with ThreadPoolExecutor(options.processes) as pool:
        yield from pool.map(partial(explored, seconds=options.seconds, removal=removal), these)


def _traces(options: argparse.Namespace) -> Iterator[Row]:
    steps, recorded, rejected = 0, 0, ""
    for first in range(0, options.traces, _AT_ONCE):
        last = min(first + _AT_ONCE, options.traces)
        traces = [trace_of(seed) for seed in range(first, last)]
        result, wrong = compare(traces, _LONGEST_SECONDS)
        steps, rejected = steps + result.states, rejected or wrong or ""
        recorded += sum(bool(trace.log) for trace in traces)
        print(f"{last} traces, {steps:,} steps {wrong or ''}", flush=True)
    text = f"not a behavior: {_code(rejected)}" if rejected else "each a behavior of the specification."
    yield not rejected, f"| {recorded:,} of {options.traces:,} schedules of the real handler, {steps:,} steps: {text} |"


def _broken(_options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each broken handler, and whether the specification does not allow what it does."""
    for name, broken in BROKEN.items():
        with broken():
            traces = [trace_of(seed) for seed in _SEEDS_OF_BROKEN]
        _, wrong = compare(traces, _LONGEST_SECONDS)
        yield wrong is not None, f"| {name} | {_code(wrong or 'accepted')} |"


def _code(text: str) -> str:
    return f"`{text[:160]}`".replace("|->", "=").replace("\n", " ")


_CONFIGURATIONS: Final = "| module | configuration | what takes part | result | distinct states | seconds |"
_REMOVALS: Final = "| module | guard removed | from | violated | shortest trace, steps | states until then | seconds |"
_PARTS: Final[dict[str, tuple[str, Callable[[argparse.Namespace], Iterator[Row]]]]] = {
    **{of.name: (_CONFIGURATIONS, partial(_explored, of.configurations)) for of in SPECIFICATIONS},
    **{f"{of.name}-guards": (_REMOVALS, partial(_explored, of.removals, removal=True)) for of in SPECIFICATIONS},
    "traces": ("| traces |", _traces),
    "broken": ("| handler broken on purpose | where its trace and the specification part |", _broken),
}


if __name__ == "__main__":
    sys.exit(main())
