"""``python -m benchmarks.million``: a million packed events into DynamoDB Local, killed on the way, and still exact.

Two processes, one that accepts events in order and one that counts what the stream brings, are killed without warning,
several times, and started again: the first repeats what it had not noted, the second reads the stream from its
beginning. In the end every count and every event is compared with the truth.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

PROJECT = Path(__file__).resolve().parents[1]

# A clone is enough: the runtime need not be installed.
sys.path[:0] = [str(PROJECT), str(PROJECT / "lambdas")]

from benchmarks.best_times import peak_bytes  # noqa: E402  # Needs the path set above.
from benchmarks.databases import EngineDatabase  # noqa: E402
from dynamodb_counters import Aggregate, Count, Counters, Event, Packed  # noqa: E402
from dynamodb_counters._commit.batch import Aggregator  # noqa: E402
from dynamodb_counters._table import Table  # noqa: E402
from dynamodb_counters._writes.accept import accept_many  # noqa: E402
from dynamodb_counters.testing._dynamodb.capacity import Usage  # noqa: E402
from simulation.delivery.stream_api import ApiSource, lambda_record  # noqa: E402
from simulation.engines import connect, dynamodb_local  # noqa: E402
from simulation.engines.tables import create_table  # noqa: E402

_TABLE: Final = "counters"
_RATE: Final = 1_000
"""Events per second of their own time, 10 seconds of which are a bucket; a call accepts as many."""

_CALLS_PER_NOTE: Final = 5
_PAGES: Final = 200
_CLIENTS: Final = 50_000
_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
_MOST_RECORDS: Final = 1_000
_BATCHING_WINDOW: Final = 0.5
_PATIENCE: Final = 120.0
"""Seconds without progress after which a run has failed."""

_VIEW: Final = Event(
    "view",
    pk="URL#{url}",
    sk="T#{time}#CID#{clientId}",
    packed=Packed("time", bucket=timedelta(seconds=10), future_tolerance=None),
)
_VIEWS: Final = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
_SITE: Final = Aggregate("site", _VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})


def events(second: int) -> list[dict[str, str]]:
    """The events of a second of their time, always the same."""
    dice, weights = random.Random(second), list(accumulate(1 / rank for rank in range(1, _PAGES + 1)))
    time_ = (_START + timedelta(seconds=second)).isoformat()
    return [
        {"url": f"/page-{page}", "time": time_, "clientId": f"client{number}-{dice.randrange(_CLIENTS)}"}
        for number, page in enumerate(dice.choices(range(_PAGES), cum_weights=weights, k=_RATE))
    ]


def accept(endpoint: str, notes: Path, seconds: int) -> None:
    """Accept events from where the last process noted that it was."""
    before, repeated = _read(notes), 0
    with EngineDatabase(connect("dynamodb_local", endpoint)) as database:
        table = Table(_TABLE, database.client)
        for call, second in enumerate(range(int(before.get("seconds", 0)), seconds), start=1):
            statuses = Counter(str(outcome.status) for outcome in accept_many(table, _VIEW, events(second)))
            assert set(statuses) <= {"accepted", "duplicate"}, statuses
            repeated += statuses["duplicate"]
            if call % _CALLS_PER_NOTE == 0 or second + 1 == seconds:
                more = {"seconds": second + 1, "repeated": before.get("repeated", 0) + repeated}
                _note(notes, database.usage, before, more)


def count(endpoint: str, notes: Path) -> None:
    """Count what the stream brings, from its beginning, until it is ended."""
    engine, before = connect("dynamodb_local", endpoint), _read(notes)
    arn = engine.client.describe_table(TableName=_TABLE)["Table"]["LatestStreamArn"]
    aggregator = Aggregator(Table(_TABLE, engine.client), (_VIEWS, _SITE), quarantine_retention_seconds=86_400)
    with EngineDatabase(engine) as database:
        for shard, records in _batches(engine.streams, arn):
            if records:
                assert not aggregator.handle({"shardId": shard, "Records": records}).quarantined
            _note(notes, database.usage, before, {})
            if len(records) < _MOST_RECORDS:
                time.sleep(_BATCHING_WINDOW)


def _batches(streams: Any, arn: str) -> Iterator[tuple[str, list[Any]]]:
    """The next records of each shard in turn, for ever; it keeps none, so that the memory is the aggregator's."""
    source, iterators = ApiSource(streams, arn), dict[str, str | None]()
    while True:
        for shard in source.shards():
            if shard.id not in iterators:
                started = streams.get_shard_iterator(StreamArn=arn, ShardId=shard.id, ShardIteratorType="TRIM_HORIZON")
                iterators[shard.id] = started["ShardIterator"]
            if iterators[shard.id] is not None:
                answer = streams.get_records(ShardIterator=iterators[shard.id], Limit=_MOST_RECORDS)
                iterators[shard.id] = answer.get("NextShardIterator")
                yield shard.id, [lambda_record(dict(record), arn) for record in answer["Records"]]


def _note(notes: Path, usage: Usage, before: Mapping[str, float], more: Mapping[str, float]) -> None:
    """Note what this process and those before it have taken."""
    noted = {
        "write_units": before.get("write_units", 0) + usage.writes,
        "read_units": before.get("read_units", 0) + usage.reads,
        "peak_bytes": max(before.get("peak_bytes", 0), peak_bytes()),
        **more,
    }
    # In one step: a process that is killed leaves the old notes or the new ones.
    new = notes.with_suffix(".new")
    new.write_text(json.dumps(noted))
    new.replace(notes)


def _read(notes: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(notes.read_text()) if notes.exists() else {}
    return found


class _Processes:
    """The process that accepts and the one that counts."""

    def __init__(self, endpoint: str, folder: Path, number: int) -> None:
        command = [sys.executable, "-m", "benchmarks.million", endpoint, str(folder), "--events", str(number), "--only"]
        self._commands = [[*command, "accept"], [*command, "count"]]
        self.start()

    def start(self) -> None:
        self._running = [subprocess.Popen(command, cwd=PROJECT) for command in self._commands]

    def kill(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def wait(self, progress: Callable[[], float], number: float) -> None:
        """Wait until the progress is so large, as long as it grows."""
        last, since = -1.0, time.monotonic()
        while (now := progress()) < number:
            if failed := [process for process in self._running if process.poll()]:
                raise RuntimeError(f"{failed[0].args!r} ended with status {failed[0].returncode}")
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                raise TimeoutError(f"nothing has changed for {_PATIENCE:.0f} s: {now:,.0f}")
            time.sleep(0.05)


def run(number: int, kills: int, seed: int) -> dict[str, Any]:
    """Do all of it; the report says whether every count is exact."""
    dice, seconds = random.Random(seed), number // _RATE
    with dynamodb_local.start() as engine, tempfile.TemporaryDirectory() as temporary:
        assert engine.endpoint_url is not None
        create_table(engine.client, _TABLE)
        folder, start = Path(temporary), time.perf_counter()
        counters = Counters(_TABLE, client=engine.client)
        processes = _Processes(engine.endpoint_url, folder, number)

        def accepted() -> float:
            return _read(folder / "accept").get("seconds", 0)

        try:
            for kill in range(kills):
                processes.wait(accepted, (kill + 1) * seconds // (kills + 1))
                # In the midst of a call: they follow one another without a pause.
                time.sleep(dice.uniform(0, 0.2))
                processes.kill()
                processes.start()
            processes.wait(accepted, seconds)
            to_accept = time.perf_counter() - start
            processes.wait(lambda: _counted(counters), number)
            to_count = time.perf_counter() - start
        finally:
            processes.kill()
        wrong = _wrong(counters, seconds)
        notes = {name: _read(folder / name) for name in ("accept", "count")}
    return {
        "events": number,
        "kills": kills,
        "exact": not wrong,
        "wrong": wrong[:10],
        "seconds_to_accept": round(to_accept, 1),
        "seconds_to_count": round(to_count, 1),
        "events_per_second": round(number / to_accept),
        "repeated": int(notes["accept"]["repeated"]),
        "write_units_per_event": {name: round(noted["write_units"] / number, 5) for name, noted in notes.items()},
        "read_units_per_event": {name: round(noted["read_units"] / number, 5) for name, noted in notes.items()},
        "peak_mb": {name: round(noted["peak_bytes"] / 1e6, 1) for name, noted in notes.items()},
    }


def _pages(counters: Counters) -> dict[str, int]:
    names = [f"/page-{page}" for page in range(_PAGES)]
    groups = counters.get_many([(_VIEWS, {"url": name}) for name in names])
    return {name: int(group.measures["views"]) for name, group in zip(names, groups, strict=True)}


def _site(counters: Counters) -> int:
    return int(counters.get(_SITE).measures["site_views"])


def _counted(counters: Counters) -> int:
    """How many events all aggregates have counted."""
    return min(_site(counters), sum(_pages(counters).values()))


def _wrong(counters: Counters, seconds: int) -> list[str]:
    """Counts of pages, the count of all, and events read back that differ from the truth."""
    truth = Counter(event["url"] for second in range(seconds) for event in events(second))
    held, counted = Counter(str(event["url"]) for event in counters.events(_VIEW)), Counter(_pages(counters))
    wrong = [
        f"{page}: {what} {found[page]}, must be {truth[page]}"
        for what, found in (("counted", counted), ("events read back", held))
        for page in sorted(truth | found)
        if found[page] != truth[page]
    ]
    total = _site(counters)
    return wrong + ([f"in all: counted {total}, must be {truth.total()}"] if total != truth.total() else [])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.million", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help=f"a multiple of {_RATE:,}; default: a million")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="decides when the processes are killed")
    parser.add_argument("--only", choices=("accept", "count"), help=argparse.SUPPRESS)
    parser.add_argument("place", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.events % _RATE:
        parser.error(f"invalid events={options.events}: expected a multiple of {_RATE:,}")
    # No request may reach an account.
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    if options.only:
        endpoint, folder = options.place
        notes = Path(folder, options.only)
        if options.only == "accept":
            accept(endpoint, notes, options.events // _RATE)
        else:
            count(endpoint, notes)
        return 0
    report = run(options.events, options.kills, options.seed)
    print(json.dumps(report, indent=2))
    return 0 if report["exact"] else 1


if __name__ == "__main__":
    sys.exit(main())
