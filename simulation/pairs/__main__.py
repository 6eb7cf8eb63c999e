"""Runs schedules in which all features meet: ``python -m simulation.pairs --count 2000 --seed 1``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from simulation.engines import dynamodb_local
from simulation.pairs import features
from simulation.pairs.schedule import PairOutcome, PairSchedule, WrongPairError
from simulation.schedules.backend import DatedLocalBackend, MakeBackend, MemoryBackend

ENGINES: Final = ("memory", "dynamodb-local")
_ALL: Final = 2000
"""So many schedules cover every pair that can meet."""


def _outcome(seed: int, make_backend: MakeBackend, without: Collection[str]) -> PairOutcome:
    try:
        return PairSchedule(seed, make_backend, without).run()
    except Exception as error:  # noqa: BLE001
        # The other schedules go on; the outcome has the seed.
        where = traceback.extract_tb(error.__traceback__)[-1]
        return PairOutcome(seed, [f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"])


def _outcomes(options: argparse.Namespace) -> Iterator[PairOutcome]:
    with ExitStack() as stack:
        make_backend: MakeBackend = MemoryBackend
        if options.engine == "dynamodb-local":
            make_backend = partial(DatedLocalBackend, stack.enter_context(dynamodb_local.start()))
        run = partial(_outcome, make_backend=make_backend, without=options.without)
        seeds = range(options.seed, options.seed + options.count)
        if options.processes == 1:
            yield from map(run, seeds)
            return
        # Each process is replaced after some schedules: what they leave suspended is not collected.
        pool = stack.enter_context(multiprocessing.get_context("fork").Pool(options.processes, maxtasksperchild=50))
        yield from pool.imap_unordered(run, seeds)


def main() -> int:
    """Run as many schedules as asked for, and print what they came to."""
    parser = argparse.ArgumentParser(prog="python -m simulation.pairs", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="memory")
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many schedules")
    parser.add_argument(
        "--without",
        type=lambda text: text.split(","),
        default=(),
        help="acts and declarations to leave out: erase,soon,...",
    )
    parser.add_argument("--processes", type=int, default=1, help="of an engine in memory")
    parser.add_argument("--page", type=Path, help="write the table of pairs there, as a page")
    options = parser.parse_args()
    begun, wrong = time.monotonic(), 0
    pairs: Counter[features.Pair] = Counter()
    happened: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    for outcome in _outcomes(options):
        pairs, happened, faults = pairs + outcome.pairs, happened + outcome.happened, faults + outcome.faults
        reached += outcome.reached
        if outcome.wrong:
            wrong += 1
            print(WrongPairError(outcome, options.engine, options.without), flush=True)
    print(f"engine {options.engine}, {options.count:,} schedules from seed {options.seed}", end=", ")
    print(f"{faults.total():,} faults in {time.monotonic() - begun:.0f} s")
    for name in features.FEATURES:
        print(f"  {happened[name]:>9,}  {name}")
    for name, number in reached.most_common():
        print(f"  {number:>9,}  {name}")
    left = features.uncovered(pairs)
    for pair in left[:20]:
        print(f"not covered: {' and '.join(pair)}")
    print(f"{len(left)} pairs not covered")
    print(f"{wrong} schedules with wrong counts")
    is_wanting = bool(left) and not options.without and (bool(options.page) or options.count >= _ALL)
    if is_wanting:
        print("a run of so many schedules, or a page, has no empty cell without a reason")
    elif options.page:
        options.page.write_text(features.page(pairs, options.engine, options.seed, options.count))
    return 1 if wrong or is_wanting else 0


if __name__ == "__main__":
    sys.exit(main())
