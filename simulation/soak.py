"""Runs schedules until time is up: ``python -m simulation.soak --minutes 30``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from simulation.engines import dynamodb_local
from simulation.schedules.backend import LocalBackend, MakeBackend, MemoryBackend
from simulation.schedules.coverage import Outcome, WrongCountError
from simulation.schedules.function import LONGEST_BACKOFF
from simulation.schedules.kinds import Kind
from simulation.schedules.schedule import Schedule

ENGINES: Final = ("memory", "dynamodb-local")
_CHUNK: Final = {"memory": 50, "dynamodb-local": 2}
_PROGRESS_SECONDS: Final = 10.0
_MOST_SHOWN: Final = 20

_make_backend: MakeBackend = MemoryBackend
_drawn: dict[str, bool] = {}
_for_life: Final = ExitStack()


@dataclass
class Totals:
    """Results of a soak; `wrong` counts schedules with a count that is not exact, or a shard that stood still.

    `paused` is the longest that an invocation without a fault has waited, in seconds.
    """

    engine: str
    first_seed: int
    schedules: int = 0
    deliveries: int = 0
    records: int = 0
    accepts: int = 0
    wrong: int = 0
    seconds: float = 0.0
    paused: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.deliveries += outcome.deliveries
        self.records += outcome.records
        self.accepts += outcome.accepts
        self.faults += outcome.faults
        self.reached += outcome.reached
        self.paused = max(self.paused, outcome.paused)
        if outcome.wrong:
            self.wrong += 1
            self.failures.append(str(WrongCountError(outcome, self.engine)))

    def text(self) -> str:
        lines = [
            f"engine {self.engine}, seeds {self.first_seed} to {self.first_seed + self.schedules - 1}",
            (
                f"{self.schedules:,} schedules, {self.deliveries:,} deliveries, {self.records:,} record deliveries, "
                f"{self.accepts:,} accepts of packed events "
                f"in {self.seconds:.0f} s ({self.records / max(self.seconds, 0.001):,.0f} records a second)"
            ),
            f"{self.faults.total():,} faults injected:",
            *(f"  {number:>9,}  {name}" for name, number in self.faults.most_common()),
            "came across:",
            *(f"  {number:>9,}  {name}" for name, number in self.reached.most_common()),
            (
                f"without a fault, no invocation waited longer than {self.paused:.2f} s "
                f"(the longest backoff is {LONGEST_BACKOFF:.0f} s)"
            ),
            f"{self.wrong} schedules with wrong counts",
            *self.failures[:_MOST_SHOWN],
        ]
        return "\n".join(lines)


def soak(
    engine: str,
    first_seed: int,
    *,
    minutes: float,
    schedules: int | None,
    processes: int,
    only: str = "",
) -> Totals:
    """Run schedules, with seeds counting up, until time is up or enough are done; `only` those of a kind."""
    begun = shown = time.monotonic()
    totals = Totals(f"{engine} --{only}" if only else engine, first_seed)
    spawn = multiprocessing.get_context("spawn")
    stop = None if schedules is None else first_seed + schedules
    with ProcessPoolExecutor(processes, spawn, _prepare, (engine, only)) as pool:
        chunks = _chunks(first_seed, stop, _CHUNK[engine], begun + minutes * 60)
        # Twice as many chunks as processes: none waits for work, and none is left over when time is up.
        running = {pool.submit(_run, chunk) for chunk in islice(chunks, 2 * processes)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(_run, chunk) for chunk in islice(chunks, len(finished))}
            for outcome in (outcome for chunk in finished for outcome in chunk.result()):
                totals.add(outcome)
            now = time.monotonic()
            totals.seconds = now - begun
            if now > shown + _PROGRESS_SECONDS:
                shown = now
                print(
                    f"{totals.seconds:6.0f} s  {totals.schedules:,} schedules  {totals.records:,} record deliveries  "
                    f"{totals.accepts:,} accepts  {totals.faults.total():,} faults  {totals.wrong} wrong",
                    flush=True,
                )
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulation.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--schedules", type=int, help="stop after this many")
    parser.add_argument("--engine", choices=ENGINES, default="memory")
    parser.add_argument("--seed", type=int, help="first seed; default: from the clock")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--packed", action="store_true", help="only schedules of packed events")
    only.add_argument("--apart", action="store_true", help="only schedules of items in a table of other code")
    parser.add_argument("--json", type=Path, help="write the report there")
    only.add_argument("--mended", action="store_true", help="only schedules of code that is mended while it counts")
    given = parser.parse_args()
    seed = int(time.time()) * 1000 if given.seed is None else given.seed
    totals = soak(
        given.engine,
        seed,
        minutes=given.minutes,
        schedules=given.schedules,
        processes=given.processes,
        only=next((name for name in ("packed", "apart", "mended") if getattr(given, name)), ""),
    )
    print(totals.text())
    if given.json:
        given.json.write_text(json.dumps(vars(totals), indent=2) + "\n")
    return 1 if totals.wrong else 0


def _chunks(first: int, stop: int | None, size: int, until: float) -> Iterator[range]:
    while time.monotonic() < until and (stop is None or first < stop):
        yield range(first, first + size if stop is None else min(first + size, stop))
        first += size


def _run(seeds: range) -> list[Outcome]:
    return [_outcome(seed) for seed in seeds]


def _outcome(seed: int) -> Outcome:
    try:
        kind = Kind.draw(random.Random(seed), **_drawn) if _drawn else None
        return Schedule(seed, _make_backend, kind).run()
    except Exception as error:  # noqa: BLE001
        # One that breaks must not end the soak, nor go unnoticed.
        return Outcome(seed, [f"{type(error).__name__}: {error}"], 0, 0)


def _prepare(engine: str, only: str) -> None:
    global _make_backend, _drawn  # noqa: PLW0603
    _drawn = {only: True} if only else {}
    if engine == "dynamodb-local":
        _make_backend = partial(LocalBackend, _for_life.enter_context(dynamodb_local.start()))


if __name__ == "__main__":
    sys.exit(main())
