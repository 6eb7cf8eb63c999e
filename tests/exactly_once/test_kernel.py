"""The kernel, and the page's aggregators on it: whatever is delivered again, cut, or dies, each record adds once."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections import Counter
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from dynamodb_counters.errors import CheckpointError, CommitError, InvalidArgumentError
from dynamodb_counters.exactly_once import LEAST_TIME, MAX_RECORD_AGE, PRUNED_AT, WATERMARK_KEPT, ExactlyOnce, Watermark
from simulation.clock import VirtualClock
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.faults.actors import Crashed
from simulation.faults.hooked_client import Dying
from simulation.memory_table import MemoryTable
from simulation.night import scaled
from simulation.pairs import coverage, kernel
from simulation.pairs.backend import LocalBackend
from simulation.pairs.kernel import KernelSchedule, plain_add
from tests.engines import start_moto

SCHEDULES = scaled(15)
KEYS = (("a", "b"),)
ARN = "arn:aws:dynamodb:eu-west-1:1:table/other/stream/1"
REACHED = (coverage.SPLIT, coverage.REPLAYED, coverage.OUTLIVED, coverage.HOURS, coverage.PRUNED, kernel.REFUSED)
PAGE = Path(__file__).parents[2] / "docs" / "your-aggregator.md"
DIFFS = [diff for diff in re.findall(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL) if "def handler" in diff]
ORDER = {"shop": {"S": "a"}, "day": {"S": "2026-11-20"}, "cents": {"N": "250"}}


def test_every_sum_is_exact_whatever_goes_wrong() -> None:
    reached: Counter[str] = Counter()
    for seed in (*range(SCHEDULES), 35):
        outcome = KernelSchedule(seed).run()
        assert outcome.wrong == [], f"seed {seed}"
        reached += outcome.reached
    assert all(reached[name] for name in REACHED)


def test_a_plain_add_is_wrong_nearly_always() -> None:
    wrong = sum(bool(KernelSchedule(seed, consumer=plain_add).run().wrong) for seed in range(SCHEDULES))
    assert wrong >= 0.95 * SCHEDULES


def test_every_sum_is_exact_in_dynamodb_local(dynamodb_local_engine: DynamoDBLocal) -> None:
    for seed in range(scaled(1)):
        assert KernelSchedule(seed, partial(LocalBackend, dynamodb_local_engine)).run().wrong == []


def test_every_sum_is_exact_in_moto() -> None:
    with start_moto() as moto:
        engine: Any = moto
        for seed in (*range(scaled(2)), 75):
            assert KernelSchedule(seed, partial(OneShard, engine)).run().wrong == [], f"seed {seed}"


class OneShard(LocalBackend):
    """A table in moto, whose stream never splits."""

    lag = 0.0

    def split(self, rng: random.Random) -> None: ...


class World:
    """A table, and a function that adds what tests tell it to."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.table = MemoryTable(self.clock)
        client: Any = self.table
        self.counted = ExactlyOnce("counters", client=client, clock=self.clock, **options)

    def count(self, *amounts: Any, first: int = 1, shard: str = "shardId-1", age: float = 0, **how: Any) -> Any:
        change = {"ApproximateCreationDateTime": self.clock() - age}
        records = [
            {"eventSourceARN": ARN, "dynamodb": {**change, "SequenceNumber": str(first + index), "amounts": amount}}
            for index, amount in enumerate(amounts)
        ]
        event = {"Records": records, "shardId": shard, "state": {"own": 1}}
        keys = how.get("keys", KEYS)
        adds = lambda record: [(key, record["dynamodb"]["amounts"]) for key in keys]  # noqa: E731
        return self.counted.handle(event, adds, how.get("context"))

    @property
    def item(self) -> Any:
        return self.table.get_item(TableName=self.table.name, Key={"pk": {"S": "a"}, "sk": {"S": "b"}})["Item"]


def test_a_function_returns_the_state_of_its_window() -> None:
    world = World()
    assert world.count({"n": 1}) == {"state": {"own": 1}}
    assert world.counted.handle({"Records": [], "isFinalInvokeForWindow": True}, lambda _: []) == {"state": {}}


def test_an_event_without_its_shard_is_refused_with_the_cure() -> None:
    with pytest.raises(CheckpointError, match="TumblingWindowInSeconds"):
        World().count({"n": 1}, shard="")
    with pytest.raises(CheckpointError, match="no eventSourceARN"):
        World().counted.handle({"Records": [{"dynamodb": {}}], "shardId": "shardId-1"}, lambda _: [])


@pytest.mark.parametrize("amounts", [{"n": 1.5}, {"n": "1"}, {"_w": 1}])
def test_amounts_are_exact_numbers(amounts: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="an int or Decimal"):
        World().count(amounts)


@pytest.mark.parametrize("keys", ["pk", (), ("a", "b", "c")])
def test_a_table_has_one_or_two_keys(keys: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="invalid keys="):
        World(keys=keys)
    with pytest.raises(InvalidArgumentError, match=r"invalid key=\('a',\): expected a tuple of pk, sk"):
        World().count({"n": 1}, keys=[("a",)])
    with pytest.raises(InvalidArgumentError, match="invalid key='ab': expected a tuple of pk, sk"):
        World().count({"n": 1}, keys=["ab"])


@pytest.mark.parametrize("spoiled", [{"S": "text"}, {"N": "5"}, {"B": b"\x09\x01"}, {"NULL": True}])
def test_a_watermark_that_other_code_has_written_is_an_error_that_says_so(spoiled: Any) -> None:
    world = World()
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, Watermark(f"shardId-1@{ARN}").name: spoiled}
    world.table.put_item(TableName="counters", Item=item)
    with pytest.raises(CommitError, match="invalid watermark"):
        world.count({"n": 1})


def test_sums_have_38_digits_and_no_more() -> None:
    world = World()
    world.count({"n": 10**37}, {"n": Decimal("0.5")}, {"n": -Decimal("0.5")}, {"n": 3})
    assert world.item["n"] == {"N": str(10**37 + 3)}
    with pytest.raises(CommitError, match="up to 38 digits"):
        world.count({"n": 10**37}, {"n": Decimal("0.55")}, first=5)


def test_a_sum_of_zero_keeps_out_a_part_of_its_batch() -> None:
    world = World()
    world.count({"n": 1}, {"n": -1})
    world.count({"n": 1})
    assert world.item["n"] == {"N": "0"}


def test_a_record_that_is_too_old_ends_where_the_caller_says() -> None:
    with pytest.raises(CheckpointError, match="record 1 is older than 26 hours"):
        World().count({"n": 1}, age=MAX_RECORD_AGE + 1)
    refused: list[Any] = []
    world = World(too_old=refused.append)
    world.count({"n": 1}, age=MAX_RECORD_AGE + 1)
    world.count({"n": 1}, first=2, age=MAX_RECORD_AGE)
    assert [record["dynamodb"]["SequenceNumber"] for record in refused] == ["1"]
    assert world.item["n"] == {"N": "1"}


def test_old_watermarks_are_pruned_once_they_are_worth_a_write() -> None:
    world = World()
    for number in range(PRUNED_AT):
        world.count({"n": 1}, shard=f"old {number}")
    world.clock.advance(WATERMARK_KEPT - 1)
    world.count({"n": 1}, shard="young")
    assert len(world.item) == 3 + PRUNED_AT + 1
    world.clock.advance(3600)
    world.count({"n": 1}, shard="new")
    assert len(world.item) == 3 + 2
    assert Watermark(f"new@{ARN}").name in world.item


def test_no_update_begins_in_the_last_second() -> None:
    world = World()
    with pytest.raises(CommitError, match="time is nearly up"):
        world.count({"n": 1}, context=SimpleNamespace(get_remaining_time_in_millis=lambda: LEAST_TIME - 1))
    assert list(world.table.items()) == []


@pytest.mark.parametrize("created", [0.0, 1.0, 3599.0, 3600.0, 1_795_168_801.0])
def test_a_watermark_is_no_older_than_its_record(created: float) -> None:
    assert 0 <= Watermark.read(Watermark.value(7, created))[1] - created < 3600 or created == 0


def test_one_item_that_fails_holds_up_no_other() -> None:
    world = World()
    world.table.put_item(TableName=world.table.name, Item={"pk": {"S": "x"}, "sk": {"S": "b"}, "n": {"S": "text"}})
    with pytest.raises(CommitError, match="1 item"):
        world.count({"n": 1}, keys=[("x", "b"), ("a", "b")])
    assert world.item["n"] == {"N": "1"}


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def test_the_page_has_three_aggregators_of_five_changed_lines_each() -> None:
    assert [sum(line.startswith("+") for line in diff.splitlines()) for diff in DIFFS] == [5, 5, 5]


@pytest.mark.parametrize("diff", DIFFS)
@pytest.mark.parametrize("requests", [1, 2])
def test_a_batch_that_died_halfway_and_comes_again_is_counted_once(
    diff: str, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _counts(diff, "+", requests, monkeypatch)["SHOP"] > 3
    assert set(_counts(diff, "-", requests, monkeypatch).values()) == {3}


def _counts(diff: str, without: str, requests: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return what is counted of three orders, whose batch dies after so many requests and comes again."""
    table: Any = MemoryTable(VirtualClock(), name="totals")
    source = "\n".join(line[1:] for line in diff.splitlines() if not line.startswith(without))
    change = {"ApproximateCreationDateTime": time.time(), "NewImage": ORDER}
    common = {"eventName": "INSERT", "eventSource": "aws:dynamodb", "eventSourceARN": "arn:aws:dynamodb:::table/orders"}
    records = [{**common, "dynamodb": {**change, "SequenceNumber": str(number)}} for number in range(1, 4)]

    def invoke(client: Any) -> None:
        monkeypatch.setattr(boto3, "client", lambda _: client)
        names: dict[str, Any] = {}
        exec(source, names)
        names["handler"]({"Records": records, "shardId": "shardId-1"}, Context())

    with contextlib.suppress(Crashed):
        invoke(Dying(table, requests, after=False))
    invoke(table)
    return {item["pk"]["S"]: int(item["orders"]["N"]) for item in table.items()}
