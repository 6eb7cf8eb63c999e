"""Runs schedules in which features meet: ``python -m simulation.pairs --count 2000 --seed 1``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from simulation.engines import dynamodb_local
from simulation.pairs import features
from simulation.pairs.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.pairs.coverage import Outcome, WrongCountError
from simulation.pairs.quotas import QuotaSchedule
from simulation.pairs.schedule import PairSchedule
from simulation.pairs.swarm import KINDS, Swarm

ENGINES: Final = ("memory", "dynamodb-local")
_ALL: Final = 2000  # So many schedules cover every pair that can meet.


def _outcome(seed: int, options: argparse.Namespace, make_backend: MakeBackend) -> Outcome:
    try:
        if options.quotas:
            return QuotaSchedule(seed).run()
        swarm = None if options.swarm is None else Swarm.draw(seed, options.swarm)
        return PairSchedule(seed, make_backend, options.without, swarm).run()
    except Exception as error:  # noqa: BLE001
        # The other schedules go on; the outcome has the seed.
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(seed, [f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"])


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    until = time.monotonic() + options.minutes * 60 if options.minutes else None
    with ExitStack() as stack:
        make_backend: MakeBackend = MemoryBackend
        if options.engine == "dynamodb-local":
            make_backend = partial(LocalBackend, stack.enter_context(dynamodb_local.start()))
        run = partial(_outcome, options=options, make_backend=make_backend)
        seed, end, size = options.seed, options.seed + options.count, 25 * options.processes if until else options.count
        # Each process is replaced after some schedules: what they leave suspended is not collected.
        fork = multiprocessing.get_context("fork")
        pool = stack.enter_context(fork.Pool(options.processes, maxtasksperchild=50)) if options.processes > 1 else None
        while seed < end and (until is None or time.monotonic() < until):
            seeds, seed = range(seed, min(end, seed + size)), seed + size
            yield from map(run, seeds) if pool is None else pool.imap_unordered(run, seeds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as many schedules as asked for, and print what they came to."""
    parser = argparse.ArgumentParser(prog="python -m simulation.pairs", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="memory")
    parser.add_argument("--seed", type=int, help="first seed; default: 1, or by the clock if there are minutes")
    parser.add_argument("--count", type=int, help="how many; default: 2000, or as many as there are minutes for")
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument(
        "--swarm", nargs="?", const="", choices=("", *KINDS), help="a few actors each, perhaps of a kind"
    )
    parser.add_argument("--quotas", action="store_true", help="of processes that share a quota, and nothing else")
    parser.add_argument(
        "--without",
        type=lambda text: text.split(","),
        default=(),
        help="acts and declarations to leave out: erase,soon,...",
    )
    parser.add_argument("--processes", type=int, default=1, help="of an engine in memory")
    parser.add_argument("--page", type=Path, help="write the table of pairs there, as a page")
    options = parser.parse_args(arguments)
    options.count = options.count or (10**9 if options.minutes else _ALL)
    options.seed = options.seed if options.seed is not None else int(time.time()) * 1000 if options.minutes else 1
    how = " --quotas" if options.quotas else "" if options.swarm is None else f" --swarm {options.swarm}".rstrip()
    begun, count, wrong, records = time.monotonic(), 0, 0, 0
    pairs: Counter[features.Pair] = Counter()
    happened: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    for outcome in _outcomes(options):
        pairs, happened, faults = pairs + outcome.pairs, happened + outcome.happened, faults + outcome.faults
        reached += outcome.reached
        count, records = count + 1, records + outcome.records
        if outcome.wrong:
            wrong += 1
            print(WrongCountError(outcome, options.engine, options.without, how), flush=True)
    print(f"engine {options.engine}{how}, {count:,} schedules from seed {options.seed}", end=", ")
    print(f"{records:,} record deliveries, {faults.total():,} faults in {time.monotonic() - begun:.0f} s")
    for name in features.FEATURES:
        print(f"  {happened[name]:>9,}  {name}")
    for name, number in (faults + reached).most_common():
        print(f"  {number:>9,}  {name}")
    is_wanting = not how and _is_wanting(options, pairs)
    print(f"{count:,} schedules, {wrong} with wrong counts")
    return 1 if wrong or is_wanting else 0


def _is_wanting(options: argparse.Namespace, pairs: Counter[features.Pair]) -> bool:
    """Write the page if it is asked for; return whether pairs are missing that so many schedules cover."""
    rest = features.uncovered(pairs)
    for pair in rest[:20]:
        print(f"not covered: {' and '.join(pair)}")
    print(f"{len(rest)} pairs not covered")
    is_wanting = bool(rest) and not options.without and (bool(options.page) or options.count >= _ALL)
    if is_wanting:
        print("a run of so many schedules, or a page, has no empty cell without a reason")
    elif options.page:
        options.page.write_text(features.page(pairs, options.engine, options.seed, options.count))
    return is_wanting


if __name__ == "__main__":
    sys.exit(main())
