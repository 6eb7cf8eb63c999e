"""Switches each safety mechanism off in turn and shows which test notices: ``python -m simulation.mutations``.

A mutation is an edit of a copy of the project, and its test one that runs by day. One whose text is not found any more
is an error: the table must not claim what it has not tried.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from simulation.mutations import MUTATIONS, Mutation, mutate
from simulation.mutations.trial import run_tests

_ROOT: Final = Path(__file__).parents[2]
_TIMEOUT_SECONDS: Final = 1800
_IGNORED: Final = shutil.ignore_patterns("__pycache__", "*.pyc")

# Loaded once, as they take longer than most tests: nothing of ours, which each process loads as a mutation left it.
_SERVER: Final = multiprocessing.get_context("forkserver")
_PRELOADED: Final = ("boto3", "fastjsonschema", "hypothesis", "moto", "pytest", "xdist.scheduler")

CAUGHT: Final = "caught"


def copy_project(root: Path) -> None:
    """Copy all that tests read; once the tests have run there, a mutation recompiles only the file that it edits."""
    for name in ("benchmarks", "demo", "docs", "infra", "lambdas", "simulation", "tests"):
        shutil.copytree(_ROOT / name, root / name, ignore=_IGNORED)
    for name in ("LICENSE", "cdk.json", "pyproject.toml"):
        shutil.copy(_ROOT / name, root)


def run(mutation: Mutation, project: Path) -> str:
    """Run the test that must notice a mutation; return what it noticed."""
    with tempfile.TemporaryDirectory(dir=project.parent) as folder:
        # Links keep their times, so that what is compiled stays valid.
        root = shutil.copytree(project, Path(folder) / "project", copy_function=os.link)
        try:
            mutate(mutation, root)
        except LookupError as error:
            return f"ERROR: {error}"
        return _run(root, [mutation.test])


def _run(root: Path, tests: Sequence[str], *, compiles: bool = False) -> str:
    output = root.parent / "output"
    process = _SERVER.Process(target=run_tests, args=(root, tests, output, compiles))
    process.start()
    process.join(_TIMEOUT_SECONDS)
    if process.exitcode is None:
        process.kill()
        return "ERROR: the test does not end"
    printed = output.read_text(encoding="utf-8", errors="replace")
    if process.exitcode == 1:
        # The first line of the failure says what the test noticed.
        noticed = re.search(r"^E +(?:[\w.]+: )?(.*)$", printed, re.MULTILINE)
        return f"{CAUGHT}: {noticed[1]}" if noticed else f"ERROR: {printed[-500:]}"
    return "SURVIVED" if process.exitcode == 0 else f"ERROR: {printed[-1000:]}"


def tell(results: Iterable[tuple[Mutation, str]]) -> bool:
    """Print the rows of a table as they become known; return whether all mutations were caught."""
    print("| mutation | caught by | result |\n|---|---|---|", flush=True)
    caught = True
    for mutation, result in results:
        print(f"| {mutation.name} | `{mutation.test}` | {result} |", flush=True)
        caught &= result.startswith(CAUGHT)
    return caught


def main() -> int:
    """Run the mutations whose names contain an argument; without arguments all of them."""
    wanted = [m for m in MUTATIONS if not sys.argv[1:] or any(part in m.name for part in sys.argv[1:])]
    if not wanted:
        print(f"no mutation has a name that contains one of {sys.argv[1:]}")
        return 1
    begun = time.monotonic()
    _SERVER.set_forkserver_preload([*_PRELOADED])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        copy_project(project := Path(folder) / "project")
        unbroken = _run(project, sorted({mutation.test for mutation in wanted}), compiles=True)
        if unbroken != "SURVIVED":
            print(f"the tests do not pass on the runtime as it is: {unbroken}")
            return 1
        are_caught = tell(zip(wanted, pool.map(partial(run, project=project), wanted), strict=True))
    print(f"\n{len(wanted)} mutations in {time.monotonic() - begun:.0f} s")
    return 0 if are_caught else 1


if __name__ == "__main__":
    sys.exit(main())
