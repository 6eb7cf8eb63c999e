"""Bad input at the doors of billing periods: refused by name, as every other read refuses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Event, InvalidArgumentError, UncountedError, Window
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters.testing import counters_in_memory

CALL = Event("call", key=("customer", "id"), attributes={"customer": str, "id": int, "at": datetime})
USAGE = Window("usage", CALL, by="customer", time="at", longest=timedelta(days=366))
BY_ID = Window("by_id", CALL, by="id", time="at", longest=timedelta(days=366))

NOW = datetime(2026, 11, 3, tzinfo=UTC)
CALLS: dict[str, Callable[[WindowReader], Any]] = {
    "statement": lambda reader: reader.statement("month", "2026-08"),
    "close": lambda reader: reader.close("month", "2026-08"),
    "closed": lambda reader: reader.closed(),
}


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_period_of_what_no_deployment_counts_is_refused(call: str, is_closed: bool) -> None:
    with counters_in_memory([USAGE, BY_ID], now=NOW) as counters:
        if is_closed:
            counters.window(USAGE, customer="c1").close("month", "2026-08")
        with pytest.raises(UncountedError, match="invalid declaration='use'"):
            CALLS[call](counters.window(replace(USAGE, name="use"), customer="c1"))


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("window", "values", "message"),
    [
        (USAGE, {"customer": "c1", "plan": "free"}, "invalid values='plan': expected no fields but those of 'usage'"),
        (USAGE, {}, "invalid customer=None: expected a value"),
        (BY_ID, {"id": "5.1"}, "invalid id='5.1': expected a whole number"),
    ],
    ids=["another field", "no field", "another text"],
)
def test_a_period_of_what_is_no_group_is_refused(
    window: Window, values: dict[str, str], message: str, call: str, is_closed: bool
) -> None:
    with counters_in_memory([USAGE, BY_ID], now=NOW) as counters:
        if is_closed:
            counters.window(USAGE, customer="c1").close("month", "2026-08")
        with pytest.raises(InvalidArgumentError) as refused:
            CALLS[call](counters.window(window, values))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("period", ["hour", "", "Month", ["month"], None, {}])
def test_a_period_that_is_none_is_refused(period: Any) -> None:
    with (
        counters_in_memory([USAGE], now=NOW) as counters,
        pytest.raises(InvalidArgumentError, match=r"^invalid period="),
    ):
        counters.window(USAGE, customer="c1").statement(period, "2026-08")


@pytest.mark.parametrize(
    "of", ["", "2026", "2026-8", "2026-13", "0000-01", "9999-12", "2026-08-01", "\uff12026-08", 202608, b"2026-08"]
)
def test_a_name_that_no_month_has_is_refused(of: Any) -> None:
    refused = pytest.raises(InvalidArgumentError, match=r"^invalid month=")
    with counters_in_memory([USAGE], now=NOW) as counters, refused:
        counters.window(USAGE, customer="c1").statement("month", of)


@pytest.mark.parametrize("anchor", [0, 32, -1, "1", 1.0, None, True])
def test_an_anchor_that_is_no_day_is_refused(anchor: Any) -> None:
    with (
        counters_in_memory([USAGE], now=NOW) as counters,
        pytest.raises(InvalidArgumentError, match=r"^invalid anchor="),
    ):
        counters.window(USAGE, customer="c1").statement("month", "2026-08", anchor=anchor)


@pytest.mark.parametrize("tz", ["Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize(
    ("of", "is_read"), [("0001-01", False), ("1970-01", True), ("9998-12", True), ("9999-01", False)]
)
def test_months_of_the_first_and_the_last_year_are_refused(tz: str, of: str, is_read: bool) -> None:
    with counters_in_memory([USAGE], now=NOW) as counters:
        reader = counters.window(USAGE, customer="c1")
        if is_read:
            assert reader.statement("month", of, tz).total == 0
        else:
            with pytest.raises(InvalidArgumentError, match=f"^invalid month='{of}': expected a month such as"):
                reader.statement("month", of, tz)


@pytest.mark.parametrize("customer", ["#", "a#b", "%23", "", "CLOSED#000001", "é\u2028", "x" * 3000])
def test_hostile_groups_have_periods_of_their_own(customer: str) -> None:
    with counters_in_memory([USAGE], now=NOW) as counters:
        counters.window(USAGE, customer=customer).close("month", "2026-08")
        others = ("c1", customer + "#", customer + "x")
        assert [len(counters.window(USAGE, customer=one).closed()) for one in (customer, *others)] == [1, 0, 0, 0]
