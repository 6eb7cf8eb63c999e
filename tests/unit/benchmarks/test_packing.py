from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from benchmarks import chunk_cpu, flushing, packing, workloads, writers
from benchmarks.designs.base import TABLE
from benchmarks.log_records import declarations, records
from benchmarks.ways import PACKED_MANY, PACKED_SINGLE
from dynamodb_counters import Counters
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters.testing._dynamodb.capacity import item_bytes, write_units

EVENTS = [view.as_event() for view in workloads.hot(640)]


def test_accepting_costs_the_chunks_it_writes() -> None:
    database = packing.memory()

    found = packing._accepting(database, EVENTS, 64, 65_536)

    chunks = [item for item in database.items(TABLE) if "_chunk" in item]
    layout = 1
    assert len(chunks) == 10
    assert found["write_units"] * 640 == sum(write_units(item_bytes(chunk)) for chunk in chunks) + layout
    assert found["units"] == found["write_units"] + 0.2 * found["read_units"]


def test_repeated_events_come_soon_after_themselves() -> None:
    numbered = [{"number": number} for number in range(5_000)]

    sent = packing._repeated(random.Random(1), numbered, 0.2)

    first = {event["number"]: index for index, event in reversed(list(enumerate(sent)))}
    again = [index - first[event["number"]] for index, event in enumerate(sent) if index != first[event["number"]]]
    assert len(again) == 1_000
    # A fifth of them are repeated themselves.
    assert 0 < max(again) <= 1.3 * packing._NEAR
    assert min(again) > 0


def test_a_new_process_per_call_reads_the_log_each_time() -> None:
    found = packing._duplicates(EVENTS)

    assert found["20% at the end, same process"] == found["none"]
    assert found["none"] < found["20% at the end, a new process"] < found["20% at the end, a new process per call"]


def test_a_late_event_costs_a_chunk_of_its_own() -> None:
    assert packing._late([view.as_event() for view in workloads.hot(3_000)])["per late event"] == pytest.approx(1, 0.2)


@pytest.mark.parametrize("case", ["shared", "own parts"])
def test_each_event_is_accepted_once_however_many_write(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = packing.memory()
    databases = iter([database])
    monkeypatch.setattr(writers, "memory", lambda: next(databases, None) or packing.memory())
    event = packing.of(timedelta(days=1), parts=1 if case == "shared" else 4)

    found = writers._units(EVENTS, 4, event, 0.0, own_parts=case != "shared")

    held = list(Counters(TABLE, client=database.client).events(event))
    assert sorted(map(repr, held)) == sorted(map(repr, EVENTS))
    alone = writers._units(EVENTS, 1, packing.of(timedelta(days=1)), 0.0)
    assert found["units"] > alone["units"]


def test_a_month_is_priced_by_its_events() -> None:
    units = {"events_per_call": 5.0, "accept": 0.02, "aggregate": 0.01, "units": 0.03}
    cpu = dict.fromkeys(
        ("receiver_single", "receiver_many", "packed_consumer_single", "packed_consumer_many", "packed_aggregator"), 0.0
    )

    month = flushing._month(1_000, 5, units, cpu)

    millions = 1_000 * 730 * 3.6e3 / 1e6
    assert month["dynamodb"]["increments"] == pytest.approx(millions * 0.625)
    assert month["dynamodb"]["packed"] == pytest.approx(millions * 0.03 * 0.625)
    # An API call and a message of its own cost each event more than all else.
    single, many = (month["whole"][way.title] for way in (PACKED_SINGLE, PACKED_MANY))
    assert single == pytest.approx(millions * (1 + 0.48 + 0.2 / 5 + 0.2 / 5_000 + 0.03 * 0.625))
    assert many < single / 10


def test_units_fall_with_the_interval() -> None:
    short, long = (flushing._units(10, interval, 600) for interval in (1, 20))

    assert (short["events_per_call"], long["events_per_call"]) == (10, 200)
    assert long["accept"] < short["accept"] < 0.2
    assert long["aggregate"] < short["aggregate"]
    assert short["units"] == pytest.approx(short["accept"] + short["aggregate"])


@pytest.mark.parametrize("where", [None, chunk_cpu._ALL])
def test_chunks_and_records_of_the_same_events_add_up_to_the_same(where: Any) -> None:
    single = records(200)
    deltas = []
    for packed, streamed in ((False, single), (True, chunk_cpu._packed(single))):
        plan = Plan(tuple(chunk_cpu._declared(each, where, packed=packed) for each in declarations(3)))
        found = fold(plan, changes_of(streamed)).deltas
        deltas.append({delta.ref: delta.measures for delta in found})
    assert deltas[0] == deltas[1]
