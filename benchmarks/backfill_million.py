"""``python -m benchmarks.backfill_million``: a million items backfilled in DynamoDB Local, killed on the way, exact.

The items are there before anything counts them. Then an aggregator follows the stream, writers go on, and the command's
own runner backfills; it is killed without warning, several times, and another process goes on with its run. In the end
every group is compared with the items.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

from botocore.exceptions import ClientError

PROJECT = Path(__file__).resolve().parents[1]

# A clone is enough: the runtime need not be installed.
sys.path[:0] = [str(PROJECT), str(PROJECT / "lambdas")]

from benchmarks.best_times import peak_bytes  # noqa: E402  # Needs the path set above.
from dynamodb_counters import Aggregate, Attr, Count, Counters, Items, Sum  # noqa: E402
from dynamodb_counters._backfill.backfill import Backfill  # noqa: E402
from dynamodb_counters._backfill.wiring import make_runner  # noqa: E402
from dynamodb_counters._commit.batch import Aggregator  # noqa: E402
from dynamodb_counters._table import Table  # noqa: E402
from dynamodb_counters.errors import CommitError  # noqa: E402
from simulation.delivery.stream_api import lambda_record  # noqa: E402
from simulation.engines import Engine, connect, dynamodb_local  # noqa: E402

NAME: Final = "orders"
CUSTOMERS: Final = 20_000
ORDER: Final = Items("order", where=Attr("customer").exists())
TOTAL: Final = Aggregate("total", ORDER, pk="ORDERS", sk="TOTAL", measures={"orders": Count(), "cents": Sum("cents")})
SPENT: Final = Aggregate("spent", ORDER, pk="CUSTOMER#{customer}", sk="SPENT", measures={"cents": Sum("cents")})

_PER_CALL: Final = 25
_SEGMENTS: Final = 8
_CHANGES_PER_SECOND: Final = 20


def order(number: int, cents: int) -> dict[str, Any]:
    """An item of some 250 bytes."""
    return {
        "pk": {"S": f"ORDER#{number}"},
        "sk": {"S": "ORDER"},
        "customer": {"S": f"c{number % CUSTOMERS}"},
        "cents": {"N": str(cents)},
        "note": {"S": "x" * 180},
    }


def load(engine: Engine, number: int) -> None:
    """Put the items into a table that has no stream yet, then enable it."""
    client = engine.client
    keys: Any = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    client.create_table(
        TableName=NAME,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=keys,
        BillingMode="PAY_PER_REQUEST",
    )

    def put(start: int) -> None:
        items = [order(each, each % 1000) for each in range(start, min(start + _PER_CALL, number))]
        client.batch_write_item(RequestItems={NAME: [{"PutRequest": {"Item": item}} for item in items]})

    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(put, range(0, number, _PER_CALL)):
            pass
    client.update_table(
        TableName=NAME, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )


def insist(call: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Call again what the engine refuses because it waits for a lock of its database."""
    for tries_left in range(20, 0, -1):
        try:
            call(*given, **named)
        except (ClientError, CommitError):
            if tries_left == 1:
                raise
            time.sleep(0.5)
        else:
            return


class Traffic:
    """The aggregator behind the stream, and writers that change what is there."""

    def __init__(self, engine: Engine, number: int, seed: int) -> None:
        self._engine = engine
        self._number = number
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self.changes = 0
        self.delivered = 0
        self._failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._count, self._write)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # Told by whoever joins the thread.
            self._failure = error

    def _write(self) -> None:
        client = self._engine.client
        while not self._stop.wait(1 / _CHANGES_PER_SECOND):
            number = self._random.randrange(self._number)
            if self._random.random() < 0.2:
                key = {name: order(number, 0)[name] for name in ("pk", "sk")}
                insist(client.delete_item, TableName=NAME, Key=key)
            else:
                insist(client.put_item, TableName=NAME, Item=order(number, self._random.randrange(1000)))
            self.changes += 1

    def _count(self) -> None:
        aggregator = Aggregator(Table(NAME, self._engine.client), (TOTAL, SPENT), quarantine_retention_seconds=86_400)
        aggregator.handle({})
        arn = self._engine.client.describe_table(TableName=NAME)["Table"]["LatestStreamArn"]
        streams: Any = self._engine.streams
        iterators: dict[str, str | None] = {}
        quiet = 0
        # What was written last is counted, too.
        while not self._stop.is_set() or quiet < 20:
            quiet += 1
            for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                name = shard["ShardId"]
                if name not in iterators:
                    asked: Any = {"StreamArn": arn, "ShardId": name, "ShardIteratorType": "TRIM_HORIZON"}
                    iterators[name] = streams.get_shard_iterator(**asked)["ShardIterator"]
                iterator = iterators[name]
                if iterator is None:
                    continue
                answer = streams.get_records(ShardIterator=iterator, Limit=1000)
                iterators[name] = answer.get("NextShardIterator")
                records = [lambda_record(dict(record), arn) for record in answer["Records"]]
                if records:
                    quiet = 0
                    insist(aggregator.handle, {"shardId": name, "Records": records})
                    self.delivered += len(records)
            time.sleep(0.2)


def work(endpoint: str, run: str) -> None:
    """Backfill in this process, and tell each step in a line."""
    engine = connect("dynamodb_local", endpoint)
    runner = make_runner(Backfill, Table(NAME, engine.client), engine.streams, run=run, names=["total", "spent"])
    for step in runner.steps():
        told = {"phase": step.phase, "run": step.run, "done": step.done, "units": step.units, "peak": peak_bytes()}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def killed_and_resumed(endpoint: str, kills: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Run workers until one comes to the end; the steps of all of them, each with its worker's number and time."""
    run, worker = "", 0
    # While it scans, drains and adds; never twice at once.
    moments = sorted(dice.uniform(0, 1) for _ in range(kills))
    while True:
        command = [sys.executable, "-m", "benchmarks.backfill_million", "--endpoint", endpoint, "--run", run]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            steps, fuse = 0, 1 + int(moments[worker] * 60) if worker < kills else -1
            for line in process.stdout:
                step = json.loads(line)
                run = step["run"]
                yield {**step, "worker": worker, "at": time.monotonic()}
                steps += step["phase"] != "waiting"
                if steps == fuse:
                    process.send_signal(signal.SIGKILL)
                    break
        if step["phase"] == "complete" and worker >= kills:
            return
        if step["phase"] == "complete":
            raise RuntimeError(f"the backfill was complete after {worker} kills: give it more items")
        worker += 1


def differences(engine: Engine) -> list[str]:
    """What is read of each group, and is not what the items come to."""
    want: Counter[str] = Counter()
    orders = 0
    pages = engine.client.get_paginator("scan")
    # The engine takes minutes for a page of a large table that is scanned as one.
    for segment in range(_SEGMENTS):
        asked: Any = {"TableName": NAME, "ConsistentRead": True, "Segment": segment, "TotalSegments": _SEGMENTS}
        for item in (
            item for page in pages.paginate(**asked, PaginationConfig={"PageSize": 2000}) for item in page["Items"]
        ):
            if "customer" in item and "cents" in item:
                orders += 1
                want[item["customer"]["S"]] += int(item["cents"]["N"])
    counters = Counters(NAME, client=engine.client)
    wrong = []
    total = counters.get(TOTAL, consistent=True)
    if (total.measures["orders"], total.measures["cents"], total.complete) != (orders, want.total(), True):
        wrong.append(f"total: expected {orders} orders, {want.total()} cents, found {dict(total.measures)}")
    names = [f"c{number}" for number in range(CUSTOMERS)]
    for start in range(0, CUSTOMERS, 1000):
        groups = counters.get_many(
            [(SPENT, {"customer": name}) for name in names[start : start + 1000]], consistent=True
        )
        for group in groups:
            name = group.values["customer"]
            if group.measures["cents"] != want[name]:
                wrong.append(f"{name}: expected {want[name]}, found {group.measures['cents']}")
    return wrong


def measure(number: int, kills: int, seed: int) -> dict[str, Any]:
    """Do all of it; the report says whether every group is exact."""
    dice = random.Random(seed)
    with dynamodb_local.start() as engine:
        assert engine.endpoint_url is not None
        begun = time.monotonic()
        load(engine, number)
        loaded = time.monotonic() - begun
        with Traffic(engine, number, seed) as traffic:
            time.sleep(5)
            seconds: Counter[str] = Counter()
            units: Counter[int] = Counter()
            peak, before = 0, time.monotonic()
            for step in killed_and_resumed(engine.endpoint_url, kills, dice):
                seconds[step["phase"]] += step["at"] - before
                units[step["worker"]], peak, before = step["units"], max(peak, step["peak"]), step["at"]
            traffic.stop()
        wrong = differences(engine)
    return {
        "items": number,
        "kills": kills,
        "exact": not wrong,
        "wrong": wrong[:10],
        "changes_meanwhile": traffic.changes,
        "records_delivered": traffic.delivered,
        "seconds_to_load": round(loaded, 1),
        "seconds": {phase: round(spent, 1) for phase, spent in seconds.items()},
        "items_per_second_scanned": round(number / seconds["scanning"]),
        "units_per_item": round(sum(units.values()) / number, 4),
        "peak_mb": round(peak / 1e6, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backfill_million", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--run", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.endpoint:
        work(given.endpoint, given.run)
        return 0
    report = measure(given.items, given.kills, given.seed)
    print(json.dumps(report, indent=2))
    return 0 if report["exact"] else 1


if __name__ == "__main__":
    sys.exit(main())
