from __future__ import annotations

from typing import Any

import pytest

from benchmarks import bill, partitions, redelivered
from benchmarks.partitioned_table import PartitionedTable
from benchmarks.scale import TRAITS, counter_units
from benchmarks.ways import WAYS
from dynamodb_counters._stream.pruning import Pruner


@pytest.fixture(scope="module")
def sixteen() -> dict[str, Any]:
    return partitions.busy(16, 0.25, staggered=True)


def test_counts_are_exact_and_metered_as_the_table_bills_them() -> None:
    table = PartitionedTable(2, label=lambda pk, _: pk)
    for _ in range(40):
        table.clock.advance(600)
        for partition in range(2):
            table.view(partition, "a")
            table.score(partition, "best", 3)
        table.deliver()

    assert table.item("TOTAL")["views"] == {"N": "80"}
    assert table.item("PLAYER#best")["points"] == {"N": "240"}
    meter = table.meter
    of_items = sum(each.updating + each.refused + each.pruning for each in meter.groups.values())
    assert of_items + sum(meter.housekeeping.values()) == table.memory.usage.writes
    assert sum(meter.reads.values()) == table.memory.usage.reads
    assert {name: each.updates for name, each in meter.groups.items()} == dict.fromkeys(
        ("TOTAL", "PAGE#a", "PLAYER#best"), 80
    ) | {"TRAFFIC": 240}
    # The first score puts an entry, each other one replaces it.
    assert meter.groups["PLAYER#best"].index == 1 + 2 * 79


def test_what_watermarks_cost_shows_when_they_are_not_pruned(
    sixteen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pruner, "wants", lambda *_: False)
    unpruned = partitions.busy(16, 0.34, staggered=True)["groups"]["hot total"]

    total = sixteen["groups"]["hot total"]
    assert total["updating"] == total["not_exact"] == unpruned["not_exact"] == 1.0
    assert unpruned["updating"] > 1.2
    assert unpruned["peak_bytes"] > 1024 > total["peak_bytes"]


def test_figures_of_an_update_add_up(sixteen: dict[str, Any]) -> None:
    for each in sixteen["groups"].values():
        parts = [each[part] for part in ("updating", "refused", "pruning", "index", "shards")]
        assert each["write_units"] == pytest.approx(sum(parts))
    assert sixteen["groups"]["leaderboard"]["index"] == 2.0
    assert 20 <= sixteen["watermark_bytes"] <= 28


def test_the_simulation_bills_a_hot_counter_as_measured(sixteen: dict[str, Any]) -> None:
    ours = TRAITS["accept_and_watermark"]
    total = sixteen["groups"]["hot total"]
    assert counter_units(ours, 16, 16) == total["updating"]
    # In between pruning, the item grows up to its next unit.
    assert counter_units(ours, 100, 100) == pytest.approx(100 * sixteen["watermark_bytes"] * 1.2 / 1024, abs=1)


def test_a_long_tail_is_pruned_as_it_is_touched() -> None:
    for each in partitions.long_tail(100, 0.0, 2).values():
        assert each["updating"] == 1.0
        assert 0 <= each["pruning"] < 0.1


def test_a_batch_delivered_again_costs_a_read_or_refusals() -> None:
    found = redelivered.measure(1)
    assert (found["200_items"]["read_units"], found["200_items"]["write_units"]) == (1.0, 0.0)
    assert found["20_items"]["write_units"] == 20.0
    assert all(each["wrong"] == 0 for each in found.values())


def test_wrong_counts_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionedTable, "view", _viewed_twice)
    assert redelivered.measure(1)["200_items"]["wrong"] == 200


def _viewed_twice(table: PartitionedTable, partition: int, page: str) -> None:
    table.views[page] += 2
    table._put(partition, {"_type": {"S": "view"}, "page": {"S": page}, "at": {"N": "0"}})


def test_a_bill_has_every_part_once() -> None:
    cpu = dict.fromkeys(("receiver_single", "consumer_single", "aggregator"), 100.0)
    [way] = [way for way in WAYS if way.receiver == "receiver_single" and way.consumer]

    found = bill.bill_of(way, 1.0, cpu, 0.05, {"4": 1.0, "64": 2.0})

    assert found["events"] == pytest.approx(0.625)
    assert found["http"] == pytest.approx(1.0)
    assert found["queue"] == pytest.approx(1.2 * 0.4)
    # 300 s of CPU at 1,769 MB; a request per event, per 100 messages and per 1,000 records.
    assert found["lambda"] == pytest.approx(300 * 1769 / 1024 * 0.0000133334 + 0.2 * (1 + 0.01 + 0.001))
    assert found["aggregates_64"] == 2 * found["aggregates_4"] == pytest.approx(0.0625)
    parts = found["events"] + found["http"] + found["queue"] + found["lambda"]
    assert found["total_64"] == pytest.approx(parts + found["aggregates_64"])


def test_calls_cost_what_the_docs_say() -> None:
    found = {name: bill.write_units(name) for name in ("increment", "record_once", "accept", "accept_many")}
    assert found == {"increment": 1.0, "record_once": 4.0, "accept": 1.0, "accept_many": 1.0}
