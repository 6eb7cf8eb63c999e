"""Switches each safety mechanism off in turn and shows which test notices: ``python -m simulation.mutations``.

A mutation is an edit of a copy of the project, and its test one that runs by day. One whose text is not found any more
is an error: the table must not claim what it has not tried.

``--generated`` makes mutations of the runtime's source, and tries each on the tests that reach its function, the
fastest ones first. Those of the table of guards must be noticed; which others are not is worth a look.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from simulation.mutations import GUARDS, MUTATIONS, RUNTIME, Mutation, generated, mutate, reach
from simulation.mutations.generated import Generated
from simulation.mutations.trial import run_tests

_ROOT: Final = Path(__file__).parents[2]
_TESTS: Final = "tests/exactly_once"
_IGNORED: Final = shutil.ignore_patterns("__pycache__", "*.pyc")
_IGNORED_TESTS: Final = (
    "exactly_once/test_mutations.py",
    "unit/benchmarks",
    "unit/demo",
    "unit/cli/test_dev.py",
    "unit/infra",
)
_TIMEOUT_SECONDS: Final = 1800

_FIRST: Final = 30
_PATIENCE: Final = 300.0
"""A generated mutation first meets so many of the fastest tests, for so many seconds."""

_MOST: Final = 300
"""One that passes so many has survived; a guard meets all tests that reach it."""

# Loaded once, as they take longer than most tests: nothing of ours, which each process loads as a mutation left it.
_SERVER: Final = multiprocessing.get_context("forkserver")
_PRELOADED: Final = ("boto3", "fastjsonschema", "hypothesis", "moto", "pytest", "xdist.scheduler")

_ENDLESS: Final = "ERROR: the tests do not end"
_UNUSABLE: Final = "ERROR: the tests cannot be imported"
CAUGHT: Final = "caught"
SURVIVED: Final = "SURVIVED"

Row = tuple[str, str, str]
"""A mutation, its tests, and the result."""


def copy_project(root: Path) -> None:
    """Copy all that tests read; once the tests have run there, a mutation recompiles only the file that it edits."""
    for name in ("benchmarks", "demo", "docs", "infra", "lambdas", "simulation", "tests"):
        shutil.copytree(_ROOT / name, root / name, ignore=_IGNORED)
    for name in ("LICENSE", "cdk.json", "pyproject.toml"):
        shutil.copy(_ROOT / name, root)


def run(mutation: Mutation | Generated, tests: Sequence[str], project: Path, seconds: float = _TIMEOUT_SECONDS) -> str:
    """Run the tests that must notice a mutation until one does; return what it noticed."""
    with tempfile.TemporaryDirectory(dir=project.parent) as folder:
        # Links keep their times, so that what is compiled stays valid.
        root = shutil.copytree(project, Path(folder) / "project", copy_function=os.link)
        try:
            mutate(mutation, root)
        except LookupError as error:
            return f"ERROR: {error}"
        return _run(root, ["-x", *tests], seconds)


def _run(root: Path, arguments: Sequence[str], seconds: float = _TIMEOUT_SECONDS, *, compiles: bool = False) -> str:
    output = root.parent / "output"
    process = _SERVER.Process(target=run_tests, args=(root, arguments, output, compiles))
    process.start()
    process.join(seconds)
    if process.exitcode in (None, -signal.SIGALRM):
        process.kill()
        return _ENDLESS
    if process.exitcode == pytest.ExitCode.INTERRUPTED:
        return _UNUSABLE
    printed = output.read_text(encoding="utf-8", errors="replace")
    if process.exitcode == 1:
        # The first line of the failure says what the test noticed.
        noticed = re.search(r"^E +(?:[\w.]+: )?(.*)$", printed, re.MULTILINE)
        return f"{CAUGHT}: {noticed[1]}" if noticed else f"ERROR: {printed[-500:]}"
    return SURVIVED if process.exitcode == 0 else f"ERROR: {printed[-1000:]}"


def reaches(project: Path, tests: Sequence[str]) -> dict[str, list[str]]:
    """Run tests on a copy; return those that reach each function of the runtime, the fastest first."""
    result = defaultdict[str, list[str]](list)
    with tempfile.TemporaryDirectory(dir=project.parent) as folder:
        root = shutil.copytree(project, Path(folder) / "project")
        reach.instrument(root / RUNTIME)
        plugins = ("xdist.plugin", "dynamodb_counters._pytest_plugin", reach.__name__)
        ignored = [f"--ignore=tests/{name}" for name in _IGNORED_TESTS]
        _run(root, [*(f"-p{name}" for name in plugins), f"-n{os.cpu_count()}", *ignored, *tests])
        for trace in sorted(reach.read(root), key=lambda trace: trace.seconds):
            for function in trace.functions:
                result[function].append(trace.test)
    return result


def attempt(mutation: Generated, tests: Sequence[str], project: Path) -> str:
    """Run tests until one notices a generated mutation: where they cannot be imported or do not end, they have."""
    result = f"{SURVIVED}: no test reaches it"
    others = tests[_FIRST : None if mutation.name in GUARDS else _MOST]
    for some, seconds in ((tests[:_FIRST], _PATIENCE), (others, _TIMEOUT_SECONDS)):
        if some and (result := run(mutation, some, project, seconds)) != SURVIVED:
            return result.replace("ERROR", CAUGHT) if result in (_ENDLESS, _UNUSABLE) else result
    return result


def named(mutations: Sequence[Mutation], project: Path, pool: Executor) -> Iterator[Row]:
    """Try mutations on their own tests."""
    unbroken = _run(project, sorted({f"{_TESTS}/{mutation.test}" for mutation in mutations}), compiles=True)
    if unbroken != SURVIVED:
        raise SystemExit(f"the tests do not pass on the runtime as it is: {unbroken}")
    results = pool.map(lambda mutation: run(mutation, [f"{_TESTS}/{mutation.test}"], project), mutations)
    for mutation, result in zip(mutations, results, strict=True):
        yield mutation.name, mutation.test, result


def trials(mutations: Sequence[Generated], options: argparse.Namespace, project: Path, pool: Executor) -> Iterator[Row]:
    """Try guards, and then others for as long as is given."""
    tests = reaches(project, options.tests)
    end = time.monotonic() + 60 * options.minutes

    def result(mutation: Generated) -> str:
        is_over = mutation.name not in GUARDS and time.monotonic() > end
        return "" if is_over else attempt(mutation, tests[mutation.reached], project)

    for mutation, noticed in zip(mutations, pool.map(result, mutations), strict=True):
        if noticed:
            yield mutation.name, f"{len(tests[mutation.reached])} tests", noticed


def tell(results: Iterable[Row]) -> tuple[int, list[str]]:
    """Print the rows of a table as they become known; return their number, and which mutations were not caught."""
    print("| mutation | caught by | result |\n|---|---|---|", flush=True)
    count, missed = 0, []
    for name, tests, result in results:
        count += 1
        print(f"| {name} | `{tests}` | {result} |", flush=True)
        if not result.startswith(CAUGHT):
            missed.append(name)
    return count, missed


def main() -> int:
    """Run the mutations whose names contain an argument; without arguments all of them."""
    parser = argparse.ArgumentParser(prog="python -m simulation.mutations")
    parser.add_argument("parts", nargs="*", help="of the names of mutations; default: all")
    parser.add_argument("--generated", action="store_true", help="those whose names are `file function: change`")
    parser.add_argument("--tests", nargs="+", default=[_TESTS, "tests/unit"], help="that may notice generated ones")
    parser.add_argument("--minutes", type=float, default=math.inf, help="for generated ones that are no guards")
    parser.add_argument("--seed", type=int, default=0, help="of the order of generated ones")
    options = parser.parse_args()
    candidates: Sequence[Any] = [*generated(_ROOT)] if options.generated else MUTATIONS
    mutations = [m for m in candidates if not options.parts or any(part in m.name for part in options.parts)]
    if not mutations:
        parser.error(f"no mutation has a name that contains one of {options.parts}")
    begun = time.monotonic()
    _SERVER.set_forkserver_preload([*_PRELOADED])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        copy_project(project := Path(folder) / "project")
        if options.generated:
            random.Random(options.seed).shuffle(mutations)
            mutations.sort(key=lambda mutation: mutation.name not in GUARDS)
            count, missed = tell(trials(mutations, options, project, pool))
            missed = [name for name in missed if name in GUARDS]
        else:
            count, missed = tell(named(mutations, project, pool))
    print(f"\n{count} mutations in {time.monotonic() - begun:.0f} s, {len(missed)} that must be noticed are not")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
