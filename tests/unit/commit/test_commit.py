"""Each record is applied once, whatever is delivered and fails; checkpoints only move forward, settle, and cover."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Event, Sum
from dynamodb_counters._assumptions import SETTLED_AFTER
from dynamodb_counters._commit.batch import uncounted
from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints, checkpoint_key, checkpoint_of
from dynamodb_counters._fold.records import Change
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import MINUTE
from dynamodb_counters.errors import CommitError
from dynamodb_counters.exactly_once import shard_digest
from simulation.clock import VirtualClock
from simulation.memory.client_errors import failure
from simulation.memory_table import MemoryTable
from simulation.specification import traces
from tests.unit.fold.streams import NOW, image, record
from tests.unit.fold.world import World

_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"sum": Sum("number")})
_URLS = "abc"

_faults = st.dictionaries(st.sampled_from(_URLS), st.sampled_from(["refused", "answer lost"]), max_size=2)
_deliveries = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), _faults), max_size=8)
_COVERED = Event("view", pk="URL#{url}", sk="VIEW")
_times = st.integers(0, 6).map(lambda minutes: NOW + 60 * minutes)
_SHARD = "shardId-00000000001414576573621-f55eea83"
_sequences = st.integers(1, 9).map("{:040}".format)
_checkpoints = st.builds(Checkpoint, _sequences, st.integers(0, 2_000_000_000).map(float))
PAGE = Path(__file__).parents[3] / "docs" / "exactly-once.md"
NEW = f"{8:040}"
STAMP = 1_795_000_000.0
# Limits of Lambda; of a process that relies on what it has read; of clocks that differ, and requests that land late.
INVOCATION, COPY, LATE = 15 * MINUTE, MINUTE, 12 * MINUTE


@given(st.text(_URLS, min_size=1, max_size=6), _deliveries)
def test_each_record_is_applied_once(urls: str, deliveries: list[tuple[int, int, Mapping[str, str]]]) -> None:
    world = World([_VIEWS], shards=1)
    for number, url in enumerate(urls):
        world.put(_VIEW, {"id": str(number), "url": url, "number": 10**number})
    [shard] = [each.id for each in world.client.stream.shards()]
    records, reached, send = world.client.stream.read(shard, None, 100).records, 0, world.client.update_item
    for start, length, faults in [*deliveries, (len(urls), len(urls), {})]:

        def update_item(faults: Mapping[str, str] = faults, **request: Any) -> dict[str, Any]:
            fault = faults.get(request["Key"]["pk"]["S"].removeprefix("URL#"))
            answer = {} if fault == "refused" else send(**request)
            if fault:
                raise failure("UpdateItem", "InternalServerError")
            return answer

        world.client.__dict__["update_item"] = update_item
        # A batch begins where the shard has been counted up to, or earlier.
        begin = min(start, reached)
        try:
            world.count(shard, records[begin : begin + length])
        except CommitError:
            continue
        reached = max(reached, min(begin + length, len(urls)))
    world.client.__dict__.pop("update_item")
    expected: Counter[str] = Counter()
    for number, url in enumerate(urls):
        expected[url] += 10**number
    assert {url: world.measures(_VIEWS, url=url)["sum"] for url in expected} == expected


@st.composite
def _batches(draw: st.DrawFn) -> list[Change]:
    created = sorted(draw(st.lists(_times, min_size=1, max_size=8)))
    return [Change(record(number, image("view", url="/"), created=at)) for number, at in enumerate(created, 1)]


@given(_batches(), st.integers(0, 9).map("{:040}".format))
def test_changes_that_a_checkpoint_covers_are_dropped(changes: list[Change], applied_through: str) -> None:
    assert list(uncounted(changes, applied_through)) == [each for each in changes if each.sequence > applied_through]


def _in_memory() -> tuple[VirtualClock, Any, Table]:
    clock = VirtualClock()
    memory: Any = MemoryTable(clock)
    return clock, memory, Table(memory.name, memory, clock=clock, sleep=lambda _: None)


def test_a_checkpoint_moves_once_in_a_hundred_items() -> None:
    clock, _, table = _in_memory()
    process = Checkpoints(table, table)
    units = [process.committed(_SHARD, f"{number:040}", 40, clock() + 900) for number in range(1, 8)]
    assert units == [0, 0, 1, 0, 0, 1, 0]


@given(st.lists(st.tuples(st.integers(0, 1), _sequences), max_size=12))
def test_a_checkpoint_moves_forward_only(moves: list[tuple[int, str]]) -> None:
    clock, memory, table = _in_memory()
    processes = [Checkpoints(table, table) for _ in range(2)]
    for process in processes:
        process.of(_SHARD, "")
    reached = ""
    for number, sequence in moves:
        processes[number].advance(_SHARD, sequence, clock() + 900)
        item = memory.get_item(TableName=memory.name, Key=checkpoint_key(shard_digest(_SHARD)))["Item"]
        reached = max(reached, sequence)
        assert checkpoint_of(item).applied_through == reached
        clock.advance(60)


@pytest.mark.parametrize("minutes", [1, 11, 16, 26, 28])
def test_a_checkpoint_has_not_settled_while_an_invocation_may_not_know_of_it(minutes: int) -> None:
    assert Checkpoint(applied_through=NEW, at=STAMP).settled_through(STAMP + minutes * MINUTE) == ""


def test_a_checkpoint_has_settled_as_soon_as_every_invocation_knows_of_it() -> None:
    assert Checkpoint(applied_through=NEW, at=STAMP).settled_through(STAMP + INVOCATION + COPY + LATE + 1) == NEW


def test_the_page_and_the_specification_have_the_same_time() -> None:
    assert SETTLED_AFTER == INVOCATION + COPY + LATE == traces.SETTLING
    [minutes] = re.findall(r"\*\*A checkpoint has settled\*\* once it has stood for (\d+) minutes", PAGE.read_text())
    assert int(minutes) * MINUTE == SETTLED_AFTER
