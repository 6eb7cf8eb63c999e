"""The command as a process, over AWS's own engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

import dynamodb_counters
from counters_lambda.counting.batch import Aggregator
from counters_lambda.counting.feeds import StreamReader
from dynamodb_counters import Aggregate, Count, Counters, Event, Sum, Window
from dynamodb_counters._table import Table
from simulation.delivery.stream_api import lambda_record
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table

SALE = Event("sale", pk="SHOP#{shop}", sk="SALE#{id}")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count(), "taken": Sum("price")})
PACE = Window("pace", SALE, pk="PACE#{shop}", time="at")
AT = "2026-11-20T10:00:00Z"


class Shop:
    def __init__(self, engine: DynamoDBLocal) -> None:
        self.engine, self.name = engine, f"sales-{uuid.uuid4().hex[:12]}"
        self.arn = create_table(engine.client, self.name)
        self.counters = Counters(self.name, client=engine.client)

    def sell(self, first: int, last: int) -> None:
        sales = [{"shop": "a", "id": number, "price": 2, "at": AT} for number in range(first, last)]
        assert {outcome.status for outcome in self.counters.accept_many(SALE, sales)} == {"accepted"}

    def deliver(self) -> None:
        assert self.engine.streams is not None
        reader = StreamReader(self.engine.streams, self.arn, sleep=lambda _: None)
        aggregator = Aggregator(Table(self.name, self.engine.client), (SHOPS, PACE), quarantine_retention_seconds=1e7)
        for shard in (entry.id for entry in reader.shards()):
            records = [lambda_record(dict(record), self.arn) for record in reader.records(shard)]
            batch: dict[str, Any] = {"shardId": shard, "Records": records}
            state = aggregator.handle(batch).state(batch)
            aggregator.handle({"shardId": shard, "Records": [], "state": state, "isFinalInvokeForWindow": True})

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(Path(dynamodb_counters.__file__).parents[1])}
        shared = ("--table", self.name, "--endpoint-url", str(self.engine.endpoint_url), "--region", "us-east-1")
        command = [sys.executable, "-m", "counters_cli.main", *arguments, *shared]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, *arguments: str) -> Any:
        process = self.start(*arguments, "--json")
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def shop(dynamodb_local_engine: DynamoDBLocal) -> Shop:
    return Shop(dynamodb_local_engine)


def test_counts_and_how_far_they_are(shop: Shop) -> None:
    shop.sell(0, 5)
    shop.deliver()
    shop.sell(5, 6)
    assert "groups have not counted all" in shop.start("wait", "--timeout", "1").communicate(timeout=60)[1]
    shop.deliver()
    assert shop.run("wait", "--timeout", "5") == {"counted": True}
    assert shop.run("get", "shops", "shop=a")["measures"] == {"sales": 6, "taken": 12}
    assert shop.run("get", "pace", "shop=a", "--since", "2026-11-20", "--until", "2026-11-21")["count"] == 6
    span = ("--since", "2026-11-20T09:00Z", "--until", "2026-11-20T12:00Z", "--step", "1h")
    assert [point["count"] for point in shop.run("get", "pace", "shop=a", *span)["series"]] == [0, 6, 0]
    assert len(shop.run("events", "sale", "shop=a", "--all")["events"]) == 6
    facts = shop.run("describe")
    assert (facts["table"]["ttl"], facts["table"]["stream"]) == ("ttl", shop.arn)
    counted = [shard for shard in facts["shards"] if shard["checkpoint moved"] is not None]
    assert counted
    assert all(shard["state"] == "open" for shard in counted)


@pytest.mark.night
def test_ctrl_c_and_a_reader_that_has_enough_end_it_without_a_traceback(shop: Shop, tmp_path: Path) -> None:
    shop.sell(0, 500)
    shop.deliver()
    sales = ({"shop": "b", "id": f"x{number}", "price": 2, "at": AT} for number in range(100_000))
    (file := tmp_path / "sales.jsonl").write_text("".join(f"{json.dumps(sale)}\n" for sale in sales))
    accepting = shop.start("accept", "sale", "--file", str(file))
    until = time.monotonic() + 60
    while not any(shop.counters.events(SALE, shop="b")):
        assert time.monotonic() < until
        time.sleep(0.05)
    accepting.send_signal(signal.SIGINT)
    _, err = accepting.communicate(timeout=60)
    assert (accepting.returncode, err.strip().rpartition("\n")[2]) == (130, "error: interrupted")
    listing = shop.start("events", "sale", "shop=a", "--all")
    assert listing.stdout is not None
    listing.stdout.readline()
    listing.stdout.close()
    assert listing.stderr is not None
    assert listing.stderr.read() == ""
    assert listing.wait(timeout=60) in (0, 1)
