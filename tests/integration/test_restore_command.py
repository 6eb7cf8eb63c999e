"""The command over AWS's own engine: traffic, a lagging aggregator, a copy, the command killed and repeated."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dynamodb_counters
from dynamodb_counters import Aggregate, Count, Counters, Event, Histogram, Sum, Window
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._streams import StreamReader
from dynamodb_counters._table import Table
from simulation.delivery.stream_api import lambda_record
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.engines.tables import create_table
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying
from simulation.schedules.restored_tables import copied_on_engine
from tests.unit.cli.in_process import Done, run

pytestmark = pytest.mark.night

SALE = Event("sale", pk="SALE#{id}", sk="SALE", retention=timedelta(days=3))
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"sales": Count(), "taken": Sum("price")})
SIZES = Aggregate("sizes", SHOPS, pk="SIZES", sk="ALL", measures={"by": Histogram("sales", exactly=(1, 2, 3, 4, 5))})
PACE = Window("pace", SALE, pk="PACE#{shop}", time="at")
DECLARED = (SHOPS, SIZES, PACE)


class World:
    def __init__(self, engine: DynamoDBLocal, seed: int) -> None:
        self.engine, self.random = engine, random.Random(seed)
        self.name = f"sales-{uuid.uuid4().hex[:12]}"
        self.arn = create_table(engine.client, self.name, expires=False)
        self.counters = Counters(self.name, client=engine.client)
        self.sold: list[dict[str, Any]] = []

    def sell(self, times: int) -> None:
        for _ in range(times):
            sale: dict[str, Any] = {
                "id": len(self.sold),
                "shop": self.random.choice("abcdef"),
                "at": datetime.now(UTC).isoformat(),
            }
            if self.random.random() < 0.8:
                sale["price"] = self.random.randint(1, 9)  # Without one, it cannot be counted by shop.
            self.sold.append(sale)
            assert self.counters.accept(SALE, sale).status == "accepted"

    def deliver(self, name: str, arn: str, share: float = 1.0) -> None:
        """Deliver each shard from its beginning, as far as given; die on the way if that is not all."""
        assert self.engine.streams is not None
        reader = StreamReader(self.engine.streams, arn, sleep=lambda _: None)
        for shard in (each.id for each in reader.shards()):
            records = [lambda_record(dict(record), arn) for record in reader.records(shard)]
            if batch := records[: int(len(records) * share)]:
                client = self.engine.client if share == 1 else Dying(self.engine.client, 12, after=True)
                try:
                    aggregator(client, name).handle({"shardId": shard, "Records": batch})
                except Crashed:
                    continue

    def items(self, name: str) -> Iterator[dict[str, Any]]:
        for page in self.engine.client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            yield from page["Items"]


def aggregator(client: Any, name: str) -> Aggregator:
    return Aggregator(Table(name, client), DECLARED, quarantine_retention_seconds=14 * 86_400.0, name=f"Stack/{name}")


def counts(counters: Counters) -> dict[str, Any]:
    shops = {shop: counters.get(SHOPS, {"shop": shop}).measures for shop in "abcdef"}
    sizes = counters.get(SIZES, {}).measures
    soon = datetime.now(UTC) + timedelta(minutes=2)
    pace = {shop: counters.window(PACE, shop=shop).last(hours=1, as_of=soon).count for shop in "abcdef"}
    return {
        "sales": {shop: found["sales"] for shop, found in shops.items() if found["sales"]},
        "taken": {shop: found["taken"] for shop, found in shops.items() if found["taken"]},
        "sizes": {size: number for size, number in sizes["by"].items() if number},
        "pace": {shop: number for shop, number in pace.items() if number},
    }


def truth(sold: list[dict[str, Any]]) -> dict[str, Any]:
    priced = [sale for sale in sold if "price" in sale]
    sales = Counter(sale["shop"] for sale in priced)
    return {
        "sales": dict(sales),
        "taken": {shop: sum(sale["price"] for sale in priced if sale["shop"] == shop) for shop in sales},
        "sizes": {size: n for size, n in Counter(sales.values()).items() if size <= 5},
        "pace": dict(Counter(sale["shop"] for sale in sold)),
    }


def command(world: World, table: str, *more: str) -> subprocess.CompletedProcess[str]:
    source = Path(dynamodb_counters.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "dynamodb_counters.cli.main", "restore", "--table", table, world.arn, *more],
        env=os.environ | {"PYTHONPATH": str(source), "AWS_ENDPOINT_URL": str(world.engine.endpoint_url)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def restore(table: str, stream: str, engine: DynamoDBLocal, client: Any = None) -> Done:
    clients = {"dynamodb": client or engine.client, "dynamodbstreams": engine.streams}
    return run("restore", "--table", table, stream, client=engine.client, clients=clients, sleep=lambda _: None)


def test_a_restored_table_counts_what_it_contains(dynamodb_local_engine: DynamoDBLocal) -> None:
    world, engine = World(dynamodb_local_engine, 1), dynamodb_local_engine
    client = engine.client
    world.sell(8)
    world.deliver(world.name, world.arn)
    engine.rollover()
    world.sell(8)
    world.deliver(world.name, world.arn, share=0.5)
    world.sell(4)

    in_copy, copy_items = list(world.sold), list(world.items(world.name))
    time.sleep(1.1)  # The next record has another second.
    world.sell(6)
    world.deliver(world.name, world.arn)
    restored = f"restored-{uuid.uuid4().hex[:12]}"
    arn = copied_on_engine(client, restored, copy_items)
    counters = Counters(restored, client=client)
    assert counts(counters) != truth(in_copy), "nothing was left to count"

    # Disabled, its shards close.
    client.update_table(TableName=world.name, StreamSpecification={"StreamEnabled": False})
    before = sorted(map(str, world.items(restored)))
    told = command(world, restored, "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "records to hand over" in told.stdout
    assert sorted(map(str, world.items(restored))) == before

    for calls in (3, 40, 60, 70):
        dying: Any = Dying(client, calls, after=world.random.random() < 0.5)
        with pytest.raises(Crashed):
            restore(restored, world.arn, engine, dying)
    done = command(world, restored)
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    assert "nothing to do" in command(world, restored).stdout

    # Another aggregator may take over, and counts what changes from now on.
    assert counters.accept(SALE, in_copy[0]).status == "duplicate"
    new = {"id": 1000, "shop": "a", "price": 2, "at": datetime.now(UTC).isoformat()}
    assert counters.accept(SALE, new).status == "accepted"
    for _ in range(2):  # Counts by shop come first, then counts of shops.
        world.deliver(restored, arn)
    now_sold = [*in_copy, new]
    assert counts(counters) == truth(now_sold)
    waiting = list(counters.quarantined())
    assert len(waiting) == sum("price" not in sale for sale in in_copy)


def test_the_command_says_what_it_cannot_do(dynamodb_local_engine: DynamoDBLocal) -> None:
    engine = dynamodb_local_engine
    world = World(engine, 1)
    world.sell(2)
    world.deliver(world.name, world.arn)
    gone = world.arn.replace(world.arn.rpartition("/")[2], "2020-01-01T00:00:00.000")
    restored = f"restored-{uuid.uuid4().hex[:12]}"
    copied_on_engine(engine.client, restored, world.items(world.name))
    assert "the stream is gone" in restore(restored, gone, engine).err
    assert "the table's own" in restore(world.name, world.arn, engine).err
    engine.client.update_table(TableName=restored, StreamSpecification={"StreamEnabled": False})
    refused = command(world, restored)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "enable it first" in refused.stderr
