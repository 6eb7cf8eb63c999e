"""The bar of AWS's event-driven lab, raised: https://github.com/aws-samples/amazon-dynamodb-labs (event-driven).

Messages, a fifth of them twice, corrections out of order, a fifth of all invocations failing at a random point, sums on
three levels: exact. The lab gives a minute to send and 30 seconds to settle; both are printed, not asserted.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, TypeAlias

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Count, Event, Sum
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept
from dynamodb_counters.errors import CommitError
from simulation.delivery.event_source_mapping import EventSourceMapping, Settings
from simulation.engines.dynamodb_local import DynamoDBLocal
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.schedules.backend import LocalBackend

MESSAGES = 10_000
DUPLICATES = 0.2
CORRECTIONS = 0.1
FAILURES = 0.2
DOOMED = 0.35  # Some are to die after more calls than they make, and live.
DISTURBED = 0.01
PASSING = (Fault.LOST_ACK, Fault.THROTTLED)
WRITERS = 8
PATIENCE_SECONDS = 600.0

FIELDS = {
    "region": ("emea", "apac", "amer"),
    "desk": ("rates", "credit", "metals", "grains"),
    "type": ("swap", "bond", "future"),
}

Counts: TypeAlias = dict[tuple[str, ...], tuple[int, int]]
"""Path of one to three levels: trades and value."""

TRADE = Event("trade", pk="TRADE#{id}", sk="TRADE", version="version")
MEASURES: dict[str, Count | Sum] = {"trades": Count(), "value": Sum("value")}
LEVELS = (
    Aggregate("region", TRADE, pk="REGION#{region}", sk="TOTAL", measures=MEASURES),
    Aggregate("desk", TRADE, pk="REGION#{region}", sk="DESK#{desk}", measures=MEASURES),
    Aggregate("type", TRADE, pk="REGION#{region}", sk="DESK#{desk}#TYPE#{type}", measures=MEASURES),
)


def _messages(rng: random.Random) -> list[dict[str, Any]]:
    """Messages in the order they are sent: some twice, and versions of one trade in any order."""
    messages: list[dict[str, Any]] = []
    while len(messages) < MESSAGES * (1 - DUPLICATES):
        trade: dict[str, Any] = {"id": len(messages), **{name: rng.choice(found) for name, found in FIELDS.items()}}
        for version in range(1 + (rng.random() < CORRECTIONS)):
            messages.append({**trade, "version": version, "value": rng.randint(-1000, 1000)})
            if rng.random() < 0.3:
                trade["desk"] = rng.choice(FIELDS["desk"])
    messages += rng.sample(messages, MESSAGES - len(messages))
    rng.shuffle(messages)
    return messages


def _truth(messages: list[dict[str, Any]]) -> Counts:
    newest: dict[int, dict[str, Any]] = {}
    for message in messages:
        if message["version"] >= newest.get(message["id"], message)["version"]:
            newest[message["id"]] = message
    trades, values = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for message in newest.values():
        path = tuple(message[name] for name in FIELDS)
        for depth in (1, 2, 3):
            trades[path[:depth]] += 1
            values[path[:depth]] += message["value"]
    return {path: (trades[path], values[path]) for path in trades}


def _counts(counters: Counters) -> Counts:
    """Read every group there can be: a scan would take the engine's time from the writers."""
    paths = [path for depth in (1, 2, 3) for path in product(*list(FIELDS.values())[:depth])]
    asked = [(LEVELS[len(path) - 1], dict(zip(FIELDS, path, strict=False))) for path in paths]
    found = {
        path: (int(group.measures["trades"]), int(group.measures["value"]))
        for path, group in zip(paths, counters.get_many(asked, consistent=True), strict=True)
    }
    return {path: numbers for path, numbers in found.items() if any(numbers)}


class _Pump(threading.Thread):
    """Delivers the stream, and lets a fifth of the invocations die at a random store call."""

    def __init__(self, backend: LocalBackend, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._random = rng
        self._calls_left = 0
        self._counted = threading.Lock()
        client: Any = FaultyClient(backend.client, self._decide, rng)
        table = Table(backend.name, client)
        self._aggregator = Aggregator(table, LEVELS, quarantine_retention_seconds=86_400)
        self._mapping = EventSourceMapping(
            backend.stream, time.time, Settings(batch_size=500, bisect=True, window_seconds=900)
        )
        self.stopping = False
        self.invocations = self.failures = 0

    def run(self) -> None:
        while not self.stopping:
            for shard in self._mapping.shards():
                delivery = self._mapping.poll(shard)
                if delivery is None:
                    time.sleep(0.05)
                    continue
                self.invocations += 1
                # A batch updates some fifty items: a number of calls it reaches, in most cases.
                self._calls_left = self._random.randint(1, 40) if self._random.random() < DOOMED else 10**9
                try:
                    self._aggregator.handle(delivery.event)
                except (CommitError, ClientError, BotoCoreError, Crashed):
                    self.failures += 1
                    self._mapping.fail(delivery)
                else:
                    self._mapping.settle(delivery, {"state": {}})

    def _decide(self, _operation: str) -> Fault:
        with self._counted:
            self._calls_left -= 1
            if self._calls_left:
                # Faults that an invocation waits out.
                return self._random.choice(PASSING) if self._random.random() < DISTURBED else Fault.NONE
        return self._random.choice((Fault.CRASH_BEFORE, Fault.CRASH_AFTER))


@pytest.mark.night
def test_thousands_of_messages_aggregate_exactly(
    dynamodb_local_engine: DynamoDBLocal, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(20_261_120)
    backend = LocalBackend(dynamodb_local_engine)
    messages, pump = _messages(rng), _Pump(backend, random.Random(1))
    truth = _truth(messages)
    table, counters = Table(backend.name, backend.client), Counters(backend.name, client=backend.client)
    pump.start()
    begun = time.monotonic()
    with ThreadPoolExecutor(WRITERS) as pool:
        outcomes = Counter(outcome.status for outcome in pool.map(lambda m: accept(table, TRADE, m), messages))
    sent = time.monotonic()
    assert not {"failed", "rejected"} & outcomes.keys()
    while (counts := _counts(counters)) != truth and time.monotonic() < sent + PATIENCE_SECONDS:
        time.sleep(0.2)
    settled = time.monotonic()
    pump.stopping = True
    pump.join(10)
    record_property("sending_seconds", round(sent - begun, 1))
    record_property("settling_seconds", round(settled - sent, 1))
    record_property("invocations", pump.invocations)
    record_property("failures", pump.failures)
    print(f"sent in {sent - begun:.1f} s, exact {settled - sent:.1f} s later")
    print(f"{pump.failures} of {pump.invocations} invocations failed")
    backend.drop()
    assert counts == truth
    assert pump.failures >= FAILURES * pump.invocations
