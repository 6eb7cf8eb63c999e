"""Threads of an invocation that fails: Lambda freezes them with it, and thaws them in one that comes much later."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import exactly_once
from dynamodb_counters._commit import commit
from dynamodb_counters._declarations import Aggregate, Count, Event
from simulation.aws.sandboxes import FrozenThreads
from simulation.faults.hooked_client import HookedClient
from simulation.workbench import Workbench

SALE = Event("sale", pk="SALE#{id}", sk="SALE", retention=timedelta(days=300))
TAGGED = Aggregate("tagged", SALE, pk="TAG#{tags[]}", sk="ALL", measures={"n": Count()})
TAGS = [f"tag-{number}" for number in range(40)]
HOUR = 3600.0


def _sell(bench: Workbench, number: int, tags: list[str]) -> str:
    """Accept an event; return the shard of its record."""
    assert bench.counters.accept(SALE, {"id": number, "tags": tags}).status == "accepted"
    [shard] = [shard for shard in bench.shards() if any(_id(record) == number for record in bench.records(shard))]
    return shard


def _id(record: Any) -> int:
    return int(record["dynamodb"].get("NewImage", {}).get("id", {"N": "-1"})["N"])


@pytest.mark.parametrize("error", [KeyError, MemoryError])
def test_no_thread_outlives_an_invocation_that_fails(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    monkeypatch.setattr(exactly_once, "PRUNED_EVERY", 0)
    for name, value in (("PRUNED_AT", 1), ("_SPARE_BYTES", 1024)):
        monkeypatch.setattr(commit, name, value)
    bench = Workbench([TAGGED], shards=2)
    shard = _sell(bench, 0, TAGS)
    batch = [record for record in bench.records(shard) if _id(record) == 0]
    threads = FrozenThreads("update_item", error)
    process = bench.process(HookedClient(bench.table, threads))

    def invoke() -> None:
        with suppress(error):
            bench.deliver(batch, shard, process)

    invocation = threading.Thread(target=invoke)
    invocation.start()
    # One that ends now leaves its threads behind; one that waits for them does not end before they do.
    invocation.join(0.3)
    if invocation.is_alive():
        threads.thaw()
        invocation.join(10)
    # The batch is counted by its next delivery; once its checkpoint has settled, its watermarks are pruned.
    bench.deliver(batch, shard)
    bench.end_window(batch, shard)
    bench.clock.advance(HOUR)
    other, number = shard, 0
    while other == shard:
        number += 1
        other = _sell(bench, number, TAGS)
    bench.deliver([record for record in bench.records(other) if _id(record) == number], other)
    threads.thaw()
    process._committer._table.pool.shutdown()

    groups = bench.counters.get_many([(TAGGED, {"tags[]": tag}) for tag in TAGS])
    assert sum(int(group.measures["n"]) for group in groups) == 2 * len(TAGS)
