"""Increments and resets in memory: what they cost, and that none counts twice; what may have counted says so."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Count, Counter, InvalidArgumentError, UnavailableError
from dynamodb_counters._table import Table
from dynamodb_counters._writes.direct_counts import increment, reset
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.faults.hooked_client import HookedClient, once
from simulation.night import scaled
from simulation.world import World

_SITE = Counter("site", pk="SITE", sk="SITE", n=Count())


def test_an_increment_costs_one_unit() -> None:
    world = World(_SITE)
    for number in range(1, 101):
        before = world.table.usage.writes
        assert increment(world.store, _SITE, {}, 1) == {"n": number}
        assert world.table.usage.writes == before + 1
    assert reset(world.store, _SITE, {}) == {"n": 100}
    assert world.table.usage.writes == before + 2


def test_an_amount_that_its_item_cannot_take_is_refused_by_name() -> None:
    table = World(_SITE).store
    increment(table, _SITE, {}, Decimal("0.5"))
    with pytest.raises(InvalidArgumentError, match=r"invalid amount=10+: expected one whose sum has at most 38"):
        increment(table, _SITE, {}, 10**37 * 100)
    assert increment(table, _SITE, {}, 1) == {"n": Decimal("1.5")}


def test_two_resets_that_have_read_the_same_number_do_not_both_take_it() -> None:
    world, taken = World(_SITE), list[int]()
    increment(world.store, _SITE, {}, 5)
    hook = once(["update_item"], lambda: taken.append(reset(world.store, _SITE, {})["n"]))
    taken.append(reset(world.reached(HookedClient(world.table, hook)), _SITE, {})["n"])
    assert taken == [5, 0]


def test_a_reset_takes_what_another_measure_counts_meanwhile() -> None:
    both = Counter("both", pk="BOTH", sk="BOTH", n=Count(), m=Count())
    world = World(both)
    increment(world.store, both, {}, {"n": 5})
    hook = once(["update_item"], lambda: increment(world.store, both, {}, {"m": 3}))
    assert reset(world.reached(HookedClient(world.table, hook)), both, {}) == {"n": 5, "m": 3}


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_requests_whose_answers_are_lost_are_not_sent_again(seed: int) -> None:
    """Calls within calls: answers are lost, requests land at once or late, with others before and in between."""
    rng, world, late = random.Random(seed), World(_SITE), list[Callable[[], Any]]()
    budget, depth = [60], [0]
    added, taken, may_be_added, may_be_taken = list[int](), list[int](), list[int](), list[int]()

    def decide(operation: str) -> Fault:
        world.clock.advance(rng.choice((0, 0.001, 2)))
        while budget[0] and depth[0] < 6 and rng.random() < 0.3:
            act()
        while late and rng.random() < 0.3:
            late.pop(rng.randrange(len(late)))()
        if operation != "UpdateItem":
            return Fault.NONE
        return rng.choice((*[Fault.NONE] * 20, Fault.LOST_ACK, Fault.RETRIED, Fault.LATE_RETRIED, Fault.THROTTLED))

    def act() -> None:
        budget[0] -= 1
        depth[0] += 1
        try:
            if rng.random() < 0.2:
                taken.append(reset(table, _SITE, {})["n"])
            else:
                increment(table, _SITE, {}, 1)
                added.append(1)
        except UnavailableError as error:
            if lost := re.match(r"may have been (counted|reset, from n=(\d+))", str(error)):
                (may_be_taken if lost[2] else may_be_added).append(int(lost[2] or 1))
        depth[0] -= 1

    client: Any = FaultyClient(world.table, decide, rng, late.append)
    table = Table(world.name, client, clock=world.clock, sleep=lambda _: None, jitter=rng.random)
    while budget[0] or late:
        act() if budget[0] else late.pop()()
    left = increment(world.store, _SITE, {}, 0)["n"]
    found = sum(taken) + left
    assert sum(added) - sum(may_be_taken) <= found <= sum(added) + sum(may_be_added), f"seed {seed}"
