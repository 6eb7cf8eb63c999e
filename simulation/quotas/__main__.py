"""Runs schedules of a shared quota: ``python -m simulation.quotas --count 2000 --seed 1``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from simulation.quotas.quota_schedule import QuotaOutcome, QuotaSchedule, WrongQuotaError


def _outcome(seed: int) -> QuotaOutcome:
    try:
        return QuotaSchedule(seed).run()
    except Exception as error:  # noqa: BLE001
        # The other schedules go on; the outcome has the seed.
        return QuotaOutcome(seed, [f"{type(error).__name__}: {error}"])


def main() -> int:
    """Run as many schedules as asked for, and print what they came to."""
    parser = argparse.ArgumentParser(prog="python -m simulation.quotas", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many schedules")
    options = parser.parse_args()
    begun, wrong = time.monotonic(), 0
    reached: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.count):
        outcome = _outcome(seed)
        reached += outcome.reached + outcome.faults
        if outcome.wrong:
            wrong += 1
            print(WrongQuotaError(outcome), flush=True)
    print(f"{options.count:,} schedules from seed {options.seed} in {time.monotonic() - begun:.0f} s")
    for name, number in reached.most_common():
        print(f"  {number:>9,}  {name}")
    print(f"{wrong} schedules with a limit exceeded or calls lost")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
