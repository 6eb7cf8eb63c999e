"""Mistakes of newcomers that only a whole table shows: each is refused where it is made, with what is right.

Those in declarations and groups: tests/unit/declarations, tests/unit/reads/test_arguments.py; of who composes
constructs: tests/unit/infra/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import boto3
import pytest

from dynamodb_counters import Aggregate, Count, Counter, Counters, Event, InvalidArgumentError, Window
from simulation.counters_in_memory import counters_in_memory

VIEW: Final = Event("view", key=("url", "time"))
VIEWS: Final = Aggregate("views", VIEW, by="url")
LAST_DAY: Final = Window("last_day", VIEW, by="url", time="time", retention=timedelta(days=2))
ORDER: Final = Event("order", key="id", attributes={"id": str, "shop": str, "total": Decimal})
SEATS: Final = Counter("seats", by="show", free=Count(), sold=Count())
NAIVE: Final = datetime(2026, 11, 19), datetime(2026, 11, 20)  # noqa: DTZ001 - the mistake
RESOURCE: Any = boto3.resource("dynamodb", region_name="eu-west-1")
FIRST: Final = {"url": "/", "time": "2026-11-20T10:00Z"}
MISTAKES: Final[list[tuple[str, Callable[[Any], object]]]] = [
    ('boto3.client("dynamodb"), not a resource', lambda _: Counters("counters", client=RESOURCE)),
    ("a sequence of declarations, such as [VIEWS]", lambda counters: counters.record_once(VIEW, FIRST, VIEWS)),
    ("a mapping of measures to numbers, of 'seats': free, sold", lambda counters: counters.increment(SEATS, show="a")),
    ("a Quarantined, one of quarantined()", lambda counters: counters.redrive("1")),
    ("'views': expected an aggregate with a ranking", lambda counters: counters.top(VIEWS)),
    ("a datetime with a time zone", lambda counters: counters.window(LAST_DAY, url="/").between(*NAIVE)),
    ("'store': expected attributes of 'order': id, shop, total", lambda _: Aggregate("shops", ORDER, by="store")),
    ("invalid start=", lambda counters: counters.events(VIEW, url="/", start=NAIVE[0])),
    ("invalid url=0.3333", lambda counters: counters.events(VIEW, url=1 / 3)),
    ("invalid values=3", lambda counters: counters.events(VIEW, {3: "/"})),
    ("invalid values='_type'", lambda counters: counters.events(VIEW, {"_type": "view"})),
    ("invalid values=", lambda counters: counters.erase(VIEW, {}, counts="keep")),
    ("invalid values=", lambda counters: counters.erase(VIEW, {"size": 5}, counts="keep")),
    ("invalid url=", lambda counters: counters.erase(VIEW, {"url": [1]}, counts="keep")),
    ("invalid counts='both'", lambda counters: counters.erase(VIEW, {"url": "/"}, counts="both")),
    ("invalid event='view'", lambda counters: counters.erase("view", {"url": "/"}, counts="keep")),
    ("one declaration per name", lambda _: counters_in_memory([VIEWS, replace(VIEWS, sk="OTHER")]).__enter__()),
]


@pytest.mark.parametrize(("right", "mistake"), MISTAKES, ids=[right for right, _ in MISTAKES])
def test_a_mistake_is_refused_with_what_is_right(right: str, mistake: Callable[[Any], object]) -> None:
    with counters_in_memory([VIEWS, LAST_DAY, SEATS]) as counters, pytest.raises(InvalidArgumentError) as refused:
        mistake(counters)
    assert right in str(refused.value)
