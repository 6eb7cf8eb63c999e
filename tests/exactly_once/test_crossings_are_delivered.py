"""Crossings while EventBridge refuses: counting goes on, and each is delivered, in the order of its group."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Event, Threshold
from dynamodb_counters.handlers import notifier
from dynamodb_counters.testing import CountersInMemory, Faults, counters_in_memory
from simulation.handler_process import LAMBDA_CONTEXT

CALL = Event("call", key="id", version="revision")
USAGE = Aggregate("usage", CALL, pk="USAGE#{customer}", sk="USAGE")
PLAN = Threshold("plan", USAGE, at=[1, 2, 4, 7], direction="both")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAULTS = Faults(crash=0.2, redeliver=0.3, split=0.1)
_OUTAGE = timedelta(hours=1)
_MOST_TRIES = 10_000


class Bus:
    """EventBridge, which refuses all entries for an hour, and some at any time."""

    def __init__(self, rng: random.Random, now: Callable[[], datetime]) -> None:
        self.taken: list[dict[str, Any]] = []
        self.refused = 0
        self._rng, self._now = rng, now
        self.until = NOW

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        answers = []
        for entry in Entries:
            if self._now() < self.until or self._rng.random() < 0.2:
                self.refused += 1
                answers.append({"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"})
            else:
                self.taken.append(json.loads(entry["Detail"]))
                answers.append({"EventId": "1"})
        return {"FailedEntryCount": 0, "Entries": answers}


class Mapping:
    """The notifier's event source mapping: a batch of a shard is delivered again from the first failure on."""

    def __init__(self, counters: CountersInMemory, rng: random.Random) -> None:
        self._stream = counters._memory.tables[counters.table_name].stream
        self._rng, self._after = rng, dict[str, str]()

    def deliver(self) -> bool:
        """Deliver a batch of each shard; return whether anything is left."""
        left, unread = False, set[str | None]()
        for shard in self._stream.shards():
            records = self._stream.read(shard.id, self._after.get(shard.id), self._rng.choice((1, 5, 100))).records
            if records or shard.parent in unread:
                unread.add(shard.id)
            if shard.parent in unread:
                # A child waits for its parent.
                left = True
                continue
            batch = [
                {**each, "eventSourceARN": self._stream.arn}
                for each in records
                if each["eventName"] == "INSERT" and each["dynamodb"]["NewImage"]["_type"] == {"S": "_crossing"}
            ]
            failed = self._handle(batch) if batch else None
            done = [each["dynamodb"]["SequenceNumber"] for each in records]
            done = done if failed is None else done[: done.index(failed)]
            if done and self._rng.random() < 0.8:
                self._after[shard.id] = done[-1]
            left |= bool(records)
        return left

    @staticmethod
    def _handle(batch: list[dict[str, Any]]) -> str | None:
        failures = notifier.handler({"Records": batch}, LAMBDA_CONTEXT)["batchItemFailures"]
        return failures[0]["itemIdentifier"] if failures else None


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_an_outage_of_eventbridge_holds_up_no_count_and_loses_no_crossing(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "add_metrics", lambda *_: None)
    monkeypatch.setenv("EVENT_BUS", "default")
    for seed in range(first, first + 50):
        _check(seed, monkeypatch)


def _check(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    with counters_in_memory([USAGE, PLAN], now=NOW, seed=seed, faults=FAULTS) as counters:
        bus, mapping = Bus(rng, lambda: counters.clock.now), Mapping(counters, rng)
        monkeypatch.setattr(notifier, "eventbridge", lambda: bus)
        there = dict.fromkeys("ab", 0)
        for number in range(12):
            customer = rng.choice("ab")
            if number == 3:
                bus.until = counters.clock.now + _OUTAGE
            if there[customer] and rng.random() < 0.4:
                there[customer] -= 1
                counters.retract(CALL, {"id": f"{customer}{there[customer]}"})
            else:
                counters.accept(CALL, {"id": f"{customer}{there[customer]}", "customer": customer, "revision": number})
                there[customer] += 1
            mapping.deliver()
            assert counters.get(USAGE, customer=customer)["usage"] == there[customer], seed
        counters.clock.advance(_OUTAGE)
        assert any(not mapping.deliver() for _ in range(_MOST_TRIES)), seed
        stream = counters._memory.tables[counters.table_name].stream
        records = [record for shard in stream.shards() for record in stream.read(shard.id, None, 10**9).records]
        outbox = [item for item in counters._memory.items() if item["_type"] == {"S": "_crossing"}]
    assert {each["id"] for each in bus.taken} == {item["id"]["S"] for item in outbox}, seed
    for customer in ("a", "b"):
        taken = [each for each in bus.taken if each["group"]["customer"] == customer]
        sent = {each["id"]: (each["sequence"], each["level"]) for each in taken}
        assert [*sent.values()] == [*_due(records, customer)], (seed, customer)


def _due(records: list[dict[str, Any]], customer: str) -> Iterator[tuple[str, int]]:
    """Record and level of each crossing of a group, in the order in which its number went up and down."""
    for record in records:
        images = [record["dynamodb"].get(name) or {} for name in ("OldImage", "NewImage")]
        if images[1].get("_type") == {"S": "usage"} and record["dynamodb"]["Keys"]["pk"] == {"S": f"USAGE#{customer}"}:
            old, new = (int(image.get("usage", {"N": "0"})["N"]) for image in images)
            levels = [level for level in PLAN.at if min(old, new) < level <= max(old, new)]
            sequence = record["dynamodb"]["SequenceNumber"].zfill(40)
            yield from ((sequence, int(level)) for level in (levels if old < new else reversed(levels)))
