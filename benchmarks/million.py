"""``python -m benchmarks.million``: a million packed events into DynamoDB Local, killed on the way, and still exact.

Its two processes (`benchmarks/million_processes.py`) are killed without warning, several times, and started anew: the
one repeats what it had not noted, the other reads the stream from its beginning. In the end every count is compared
with the events.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

PROJECT = Path(__file__).resolve().parents[1]

# A clone is enough: the runtime need not be installed.
sys.path[:0] = [str(PROJECT), str(PROJECT / "lambdas")]

from benchmarks.million_processes import (  # noqa: E402  # Needs the path set above.
    PAGES,
    SITE,
    TABLE_NAME,
    VIEW,
    VIEWS,
    accept,
    count,
    events,
    read_notes,
)
from dynamodb_counters import Counters  # noqa: E402
from simulation.engines import dynamodb_local  # noqa: E402
from simulation.engines.tables import create_table  # noqa: E402

_PATIENCE: Final = 120.0
"""Seconds without progress after which a run has failed."""

_POLL: Final = 0.05


def run(number: int, kills: int, seed: int) -> dict[str, Any]:
    """Do all of it; the report says whether every count is exact."""
    dice = random.Random(seed)
    with dynamodb_local.start() as engine, tempfile.TemporaryDirectory() as temporary:
        assert engine.endpoint_url is not None
        create_table(engine.client, TABLE_NAME)
        folder, start = Path(temporary), time.perf_counter()
        with _processes(engine.endpoint_url, folder, number) as processes:
            for kill in range(kills):
                _wait(folder / "accept", (kill + 1) * number // (kills + 1), processes)
                # In the midst of a call: they follow one another without a pause.
                time.sleep(dice.uniform(0, 0.2))
                processes.kill()
                processes.start()
            _wait(folder / "accept", number, processes)
            accepted = time.perf_counter() - start
            counters = Counters(TABLE_NAME, client=engine.client)
            _wait_until_counted(counters, number, processes)
            seconds = time.perf_counter() - start
        wrong = _wrong(counters, number)
        notes = {name: read_notes(folder / name) for name in ("accept", "count")}
    return {
        "events": number,
        "kills": kills,
        "exact": not wrong,
        "wrong": wrong[:10],
        "seconds_to_accept": round(accepted, 1),
        "seconds_to_count": round(seconds, 1),
        "events_per_second": round(number / accepted),
        "repeated": int(notes["accept"]["repeated"]),
        "write_units_per_event": {name: round(noted["write_units"] / number, 5) for name, noted in notes.items()},
        "read_units_per_event": {name: round(noted["read_units"] / number, 5) for name, noted in notes.items()},
        "peak_mb": {name: round(noted["peak_bytes"] / 1e6, 1) for name, noted in notes.items()},
    }


class _Processes:
    """The process that accepts and the one that counts."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._commands = commands
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._running = [subprocess.Popen(command, cwd=PROJECT) for command in self._commands]

    def kill(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGKILL)
        for process in self._running:
            process.wait()

    def require_well(self) -> None:
        for process in self._running:
            if process.poll():
                raise RuntimeError(f"{process.args!r} ended with status {process.returncode}")


@contextlib.contextmanager
def _processes(endpoint: str, folder: Path, number: int) -> Iterator[_Processes]:
    arguments = [sys.executable, "-m", "benchmarks.million", endpoint, str(folder), "--events", str(number), "--only"]
    processes = _Processes([[*arguments, "accept"], [*arguments, "count"]])
    processes.start()
    try:
        yield processes
    finally:
        processes.kill()


def _wait(notes: Path, number: int, processes: _Processes) -> None:
    """Wait until so many events are noted as accepted."""
    last, since = -1.0, time.monotonic()
    while (now := read_notes(notes).get("events", 0)) < number:
        last, since = _progressed(now, last, since, processes)
        time.sleep(_POLL)


def _wait_until_counted(counters: Counters, number: int, processes: _Processes) -> None:
    last, since = -1.0, time.monotonic()
    while (now := _counted(counters)) < number:
        last, since = _progressed(now, last, since, processes)
        time.sleep(_POLL)


def _progressed(now: float, last: float, since: float, processes: _Processes) -> tuple[float, float]:
    processes.require_well()
    if now != last:
        return now, time.monotonic()
    if time.monotonic() - since > _PATIENCE:
        raise TimeoutError(f"nothing has changed for {_PATIENCE:.0f} s: {now:,.0f}")
    return last, since


def _counted(counters: Counters) -> int:
    """How many events all aggregates have counted."""
    pages = counters.get_many([(VIEWS, {"url": f"/page-{page}"}) for page in range(PAGES)])
    return min(_site_views(counters), sum(int(page.measures["views"]) for page in pages))


def _site_views(counters: Counters) -> int:
    return int(counters.get(SITE).measures["site_views"])


def _wrong(counters: Counters, number: int) -> list[str]:
    """What differs from the events: counts of pages, of all, and the events read back."""
    truth = Counter(event["url"] for event in events(0, number))
    held = Counter(str(event["url"]) for event in counters.events(VIEW))
    pages = list(truth)
    counted = dict(zip(pages, counters.get_many([(VIEWS, {"url": page}) for page in pages]), strict=True))
    wrong = [
        f"{page}: counted {group.measures['views']}, must be {truth[page]}"
        for page, group in counted.items()
        if group.measures["views"] != truth[page]
    ]
    wrong += [
        f"{page}: {held[page]} events read back, must be {truth[page]}"
        for page in truth | held
        if held[page] != truth[page]
    ]
    total = _site_views(counters)
    return wrong + ([f"in all: counted {total}, must be {number}"] if total != number else [])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.million", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="decides when the processes are killed")
    parser.add_argument("--only", choices=("accept", "count"), help=argparse.SUPPRESS)
    parser.add_argument("place", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    # No request may reach an account.
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    if options.only:
        endpoint, folder = options.place
        if options.only == "accept":
            accept(endpoint, Path(folder), options.events)
        else:
            count(endpoint, Path(folder))
        return 0
    report = run(options.events, options.kills, options.seed)
    print(json.dumps(report, indent=2))
    return 0 if report["exact"] else 1


if __name__ == "__main__":
    sys.exit(main())
