"""Limits of groups at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from dynamodb_counters import Aggregate, Count, Distinct, Event
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import Done, run

CALL = Event("call", key="id")
USAGE = Aggregate("usage", CALL, by=("customer", "at:month"), calls=Count())
USERS = Distinct("users", CALL, by="customer", member="user")
GROUP = {"customer": "a", "at:month": "2026-11"}


@pytest.fixture
def counters() -> Iterator[CountersInMemory]:
    with counters_in_memory([USAGE, USERS], now=datetime(2026, 11, 20, tzinfo=UTC)) as counters:
        yield counters


def ask(counters: CountersInMemory, *arguments: str) -> Done:
    return run("limit", *arguments, "--table", counters.table_name, client=counters.client, clock=counters.clock)


def test_a_limit_is_shown_and_set(counters: CountersInMemory) -> None:
    group = ("usage", "customer=a", "at:month=2026-11")
    assert ask(counters, *group).out == "none\n"
    assert ask(counters, *group, "12500.5").out == "12,500.5\n"
    assert counters.limit(USAGE, GROUP) == Decimal("12500.5")
    assert ask(counters, *group, "none").out == "none\n"
    assert counters.limit(USAGE, GROUP) is None
    document = {"aggregate": "usage", "values": GROUP, "limit": 3}
    assert ask(counters, *group, "3", "--json").document == document
    assert ask(counters, "users", "customer=a", "7").out == "7\n"
    assert counters.limit(USERS, customer="a") == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("usage", "5"), "missing customer=… at:month=…"),
        (("usage", "customer=a", "at:month=2026-11", "many"), "invalid limit='many': expected "),
        (("usage", "customer=a", "at:month=2026-11", "0"), "expected a number above 0, or None for no limit"),
        (("usage", "customer=a", "at:month=2026-11", "1e200"), "invalid limit="),
        (("usage", "customer=a", "at:month=11", "5"), "invalid at:month='11'"),
        (("calls", "5"), "no aggregate 'calls' is declared"),
    ],
)
def test_a_wrong_limit_or_group_is_refused(counters: CountersInMemory, arguments: tuple[str, ...], said: str) -> None:
    done = ask(counters, *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
