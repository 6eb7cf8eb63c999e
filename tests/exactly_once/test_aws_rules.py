"""Rules of AWS that simulators follow: each has its switch, and its guard or the reason why it needs none."""

from __future__ import annotations

import pytest

from dynamodb_counters._declarations import Aggregate, Count, Event
from simulation.throttled_burst import run
from simulation.world import World

SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SALES = Aggregate("sales", SALE, pk="SALES", sk="ALL", measures={"n": Count()})


@pytest.mark.parametrize(("outage", "per_message"), [(1800, 500), (7200, 10)])
def test_no_message_uses_up_its_receives_while_the_table_refuses_it(outage: float, per_message: int) -> None:
    found = run(events=500, per_message=per_message, units_per_second=50, outage=outage, refused=0.2)
    assert (found["accepted"], found["events in the dead-letter queue"]) == (500, 0)


def test_a_message_of_which_the_table_refuses_a_part_comes_again_as_a_whole() -> None:
    """What was accepted of it is a duplicate, also where a message comes twice."""
    found = run(events=2000, per_message=500, units_per_second=20, twice=0.3)
    assert (found["accepted"], found["events in the dead-letter queue"]) == (2000, 0)
    assert found["receives per message"] > 1


def test_a_message_that_would_grow_becomes_a_dead_letter_once_all_else_of_it_is_accepted() -> None:
    found = run(events=200, units_per_second=50, outage=1800, refused=0.2, twice=0, growing=80_000)
    assert (found["accepted"], found["events in the dead-letter queue"]) == (200, found["messages"])


def test_what_the_table_refuses_for_long_is_a_dead_letter_before_it_expires() -> None:
    found = run(events=5, units_per_second=50, outage=90 * 3600, longest=96 * 3600)
    assert (found["accepted"], found["events in the dead-letter queue"], found["expired"]) == (0, 5, 0)


@pytest.mark.parametrize("late", [True, False])
def test_a_stream_that_is_enabled_again_counts_on(late: bool) -> None:
    world = World(SALES)
    world.accept(SALE, {"id": 1}, {"id": 2})
    before = world.table.renew_stream("2026-11-21T00:00:00.000", seed=1)
    world.accept(SALE, {"id": 3})
    old = [(shard.id, before.read(shard.id, None, 100).records) for shard in before.shards()]
    new = [(shard, world.records(shard)) for shard in world.shards()]
    for shard, records in (*new, *old) if late else (*old, *new):
        world.deliver(records, shard)
    assert world.counters.get(SALES, {})["n"] == 3
