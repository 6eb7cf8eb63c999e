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
from simulation.clock import VirtualClock
from simulation.faults.faulty_client import Fault, FaultyClient
from simulation.faults.hooked_client import HookedClient, once
from simulation.metered_table import MeteredTable
from simulation.night import scaled

_SITE = Counter("site", pk="SITE", sk="SITE", n=Count())


def test_an_increment_costs_one_unit() -> None:
    table = MeteredTable(VirtualClock())
    for number in range(1, 101):
        assert increment(Table(table.name, table, clock=VirtualClock()), _SITE, {}, 1) == {"n": number}  # type: ignore[arg-type]
    written = table.usage.writes

    assert written == 100
    assert reset(Table(table.name, table), _SITE, {}) == {"n": 100}  # type: ignore[arg-type]
    assert table.usage.writes == written + 1


def test_an_amount_that_its_item_cannot_take_is_refused_by_name() -> None:
    memory = MeteredTable(VirtualClock())
    table = Table(memory.name, memory)  # type: ignore[arg-type]
    increment(table, _SITE, {}, Decimal("0.5"))
    with pytest.raises(InvalidArgumentError, match=r"invalid amount=10+: expected one whose sum has at most 38"):
        increment(table, _SITE, {}, 10**37 * 100)
    assert increment(table, _SITE, {}, 1) == {"n": Decimal("1.5")}


def test_two_resets_that_have_read_the_same_number_do_not_both_take_it() -> None:
    memory, clock = MeteredTable(VirtualClock()), VirtualClock()
    table = Table(memory.name, memory, clock=clock)  # type: ignore[arg-type]
    increment(table, _SITE, {}, 5)
    taken: list[int] = []
    client: Any = HookedClient(memory, once(["update_item"], lambda: taken.append(reset(table, _SITE, {})["n"])))
    taken.append(reset(Table(memory.name, client, clock=clock, sleep=lambda _: None), _SITE, {})["n"])
    assert taken == [5, 0]


def test_a_reset_takes_what_another_measure_counts_meanwhile() -> None:
    memory, clock = MeteredTable(VirtualClock()), VirtualClock()
    table = Table(memory.name, memory, clock=clock)  # type: ignore[arg-type]
    both = Counter("both", pk="BOTH", sk="BOTH", n=Count(), m=Count())
    increment(table, both, {}, {"n": 5})
    client: Any = HookedClient(memory, once(["update_item"], lambda: increment(table, both, {}, {"m": 3})))
    assert reset(Table(memory.name, client, clock=clock, sleep=lambda _: None), both, {}) == {"n": 5, "m": 3}


def test_requests_whose_answers_are_lost_are_not_sent_again() -> None:
    for seed in range(scaled(30)):
        _check_schedule(seed)


def _check_schedule(seed: int) -> None:
    """Calls within calls: answers are lost, requests land at once or late, with others before and in between."""
    rng, clock, late = random.Random(seed), VirtualClock(), list[Callable[[], Any]]()
    memory = MeteredTable(clock)
    budget, depth = [60], [0]
    added, taken, may_be_added, may_be_taken = list[int](), list[int](), list[int](), list[int]()

    def decide(operation: str) -> Fault:
        clock.advance(rng.choice((0, 0.001, 2)))
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

    client: Any = FaultyClient(memory, decide, rng, late.append)
    table = Table(memory.name, client, clock=clock, sleep=lambda _: None, jitter=rng.random)
    while budget[0] or late:
        act() if budget[0] else late.pop()()
    left = increment(Table(memory.name, memory, clock=clock), _SITE, {}, 0)["n"]  # type: ignore[arg-type]
    found = sum(taken) + left
    assert sum(added) - sum(may_be_taken) <= found <= sum(added) + sum(may_be_added), f"seed {seed}"
