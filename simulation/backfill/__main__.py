"""Runs schedules of backfills and verifications: ``python -m simulation.backfill --count 2000 --seed 1``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from simulation.backfill.backfill_schedule import BackfillSchedule, WrongBackfillError
from simulation.backfill.local_table import DatedLocalBackend
from simulation.backfill.verification_schedule import VerificationSchedule
from simulation.engines import dynamodb_local
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.outcome import Outcome

ENGINES: Final = ("memory", "dynamodb-local")
KINDS: Final = {"backfill": BackfillSchedule, "verify": VerificationSchedule}


def _outcome(kind: str, seed: int, make_backend: MakeBackend) -> Outcome:
    try:
        return KINDS[kind](seed, make_backend).run()
    except Exception as error:  # noqa: BLE001
        # The others go on; the seed tells.
        return Outcome(seed, [f"{type(error).__name__}: {error}"], 0, 0)


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    with ExitStack() as stack:
        make_backend: MakeBackend = MemoryBackend
        if options.engine == "dynamodb-local":
            make_backend = partial(DatedLocalBackend, stack.enter_context(dynamodb_local.start()))
        for seed in range(options.seed, options.seed + options.count):
            yield _outcome(options.kind, seed, make_backend)


def main() -> int:
    """Run as many schedules as asked for, and tell what they came to."""
    parser = argparse.ArgumentParser(prog="python -m simulation.backfill", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="memory")
    parser.add_argument("--kind", choices=sorted(KINDS), default="backfill")
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many schedules")
    options = parser.parse_args()
    begun, wrong, deliveries, records = time.monotonic(), 0, 0, 0
    reached: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for outcome in _outcomes(options):
        deliveries, records = deliveries + outcome.deliveries, records + outcome.records
        reached, faults = reached + outcome.reached, faults + outcome.faults
        if outcome.wrong:
            wrong += 1
            print(WrongBackfillError(outcome, options.engine, options.kind), flush=True)
    print(f"engine {options.engine}, {options.kind}, seeds {options.seed} to {options.seed + options.count - 1}")
    print(
        f"{options.count:,} schedules, {deliveries:,} deliveries, {records:,} record deliveries, "
        f"{faults.total():,} faults in {time.monotonic() - begun:.0f} s"
    )
    for name, number in (reached + faults).most_common():
        print(f"  {number:>9,}  {name}")
    print(f"{wrong} schedules with wrong counts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
