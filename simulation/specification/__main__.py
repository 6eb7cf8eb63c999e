"""Checks the whole specification with TLC, and traces of the real handler against it: ``make spec``.

Prints the tables of docs/spec/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from simulation.engines import EngineUnavailableError
from simulation.specification.explorations import EXPLORATIONS, Configuration, Removal, Verdict, check
from simulation.specification.traces import BROKEN, compare, trace_of

_LONGEST_SECONDS: Final = 3600.0
_AT_ONCE: Final = 25
_SEEDS_OF_BROKEN: Final = range(24)

Row = tuple[bool, str]
"""A row of a table, and whether it is as it must be."""


def holds(configuration: Configuration, seconds: float) -> Row:
    """A row for a configuration, and whether it is as it must be."""
    verdict = _checked(configuration.specification.module, configuration.text(), seconds)
    right = isinstance(verdict, Verdict) and verdict.violated is None
    found = "holds" if right else _problem(verdict)
    return right, f"| {configuration.name} | {configuration.about} | {found} | {_size(verdict)} |"


def breaks(removal: Removal, seconds: float) -> Row:
    """A row for a removed guard, and whether there is a counterexample, as there must be."""
    verdict = _checked(removal.configuration.specification.module, removal.text, seconds)
    right = isinstance(verdict, Verdict) and verdict.violated is not None
    steps = verdict.steps if isinstance(verdict, Verdict) and right else "none"
    found = verdict.violated if isinstance(verdict, Verdict) and right else _problem(verdict)
    return right, f"| {removal.about} | {removal.configuration.name} | {found} | {steps} | {_size(verdict)} |"


def parts(name: str) -> Row:
    """A row for a broken handler, and whether the specification does not allow what it does."""
    with BROKEN[name]():
        traces = [trace_of(seed) for seed in _SEEDS_OF_BROKEN]
    _, wrong = compare(traces, _LONGEST_SECONDS)
    return wrong is not None, f"| {name} | {_shown(wrong or 'accepted')} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.specification", description=__doc__)
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=list(_PARTS), help="which parts")
    parser.add_argument("--traces", type=int, default=1000, help="how many schedules")
    parser.add_argument("--seconds", type=float, default=3600.0, help="the longest that one run of TLC may take")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    count, wrong = 0, 0
    for part in given.only:
        begun, head = time.monotonic(), _HEADS[part]
        print(f"\n{part}\n\n{head}\n{'|---' * (head.count('|') - 1)}|", flush=True)
        try:
            for is_right, row in _PARTS[part](given):
                count, wrong = count + 1, wrong + (not is_right)
                print(row if is_right else f"{row} WRONG", flush=True)
        except EngineUnavailableError as missing:
            print(missing)
            return 1
        print(f"\nAll of this: {time.monotonic() - begun:.0f} s, {given.processes} at a time.", flush=True)
    print(f"\n{count} rows, {wrong} wrong")
    return 1 if wrong else 0


def _checks(check_one: Callable[..., Row], all_of_them: Iterable[Any], given: argparse.Namespace) -> Iterator[Row]:
    with ThreadPoolExecutor(given.processes) as pool:
        yield from pool.map(partial(check_one, seconds=given.seconds), all_of_them)


def _traces(given: argparse.Namespace) -> Iterator[Row]:
    steps, recorded, rejected = 0, 0, ""
    for first in range(0, given.traces, _AT_ONCE):
        last = min(first + _AT_ONCE, given.traces)
        traces = [trace_of(seed) for seed in range(first, last)]
        verdict, wrong = compare(traces, _LONGEST_SECONDS)
        steps, rejected = steps + verdict.states, rejected or wrong or ""
        recorded += sum(bool(each.log) for each in traces)
        print(f"{last} traces, {steps:,} steps {wrong or ''}", flush=True)
    found = f"not a behavior: {_shown(rejected)}" if rejected else "each a behavior of the specification."
    yield not rejected, f"| {recorded:,} of {given.traces:,} schedules of the real handler, {steps:,} steps: {found} |"


def _broken(_: argparse.Namespace) -> Iterator[Row]:
    yield from map(parts, BROKEN)


_GROUPS: Final = {group.specification.name: group for group in EXPLORATIONS}
_PARTS: Final[dict[str, Callable[[argparse.Namespace], Iterator[Row]]]] = {
    **{name: partial(_checks, holds, group.configurations) for name, group in _GROUPS.items()},
    **{f"{name}-guards": partial(_checks, breaks, group.removals) for name, group in _GROUPS.items()},
    "traces": _traces,
    "broken": _broken,
}
_HEAD: Final = "| configuration | what takes part | verdict | distinct states | seconds |"
_HEAD_OF_GUARDS: Final = "| guard removed | from | violated | shortest trace, steps | states until then | seconds |"
_HEADS: Final = {
    **dict.fromkeys(_GROUPS, _HEAD),
    **{f"{name}-guards": _HEAD_OF_GUARDS for name in _GROUPS},
    "traces": "| traces |",
    "broken": "| handler broken on purpose | where its trace and the specification part |",
}


def _checked(module: str, configuration: str, seconds: float) -> Verdict | RuntimeError:
    try:
        return check(module, configuration, seconds=seconds)
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


if __name__ == "__main__":
    sys.exit(main())
