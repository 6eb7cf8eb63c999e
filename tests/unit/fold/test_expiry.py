"""Expiries of items that stay counted for good, by any record there may be."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Items, Window
from dynamodb_counters._fold.expiry import expired_until
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of
from dynamodb_counters._items.table_schema import ERASED
from dynamodb_counters._timeline.tiers import HOUR

VIEW = Event("view", pk="URL#{url}", sk="T#{at}", retention=timedelta(days=35))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="S", measures={"n": Count()})
LIVE = Aggregate("live", VIEW, pk="LIVE#{url}", sk="S", measures={"n": Count()}, on_expiry="subtract")
DAYS = Aggregate("days", VIEW, pk="URL#{url}", sk="DAY#{at:day}", measures={"n": Count()})
HOURS = Window("hours", VIEW, pk="URL#{url}", time="at")
ALL = Aggregate("all", Items("anything"), pk="ALL", sk="S", measures={"n": Count()})
PLAN = Plan((VIEWS, LIVE, DAYS, HOURS, ALL))
AT = 1_795_170_605
IMAGE = {"_type": {"S": "view"}, "url": {"S": "/"}, "at": {"N": str(AT)}, "ttl": {"N": "1795000000"}}


def removed(image: Any, **change: Any) -> dict[str, Any]:
    images = {} if image is None else {"OldImage": image}
    return {
        "eventName": "REMOVE",
        "dynamodb": {"SequenceNumber": "1", "ApproximateCreationDateTime": 1_795_000_001, **images, **change},
    }


@pytest.mark.parametrize("changed", [{}, {"ttl": {"N": "1795000002"}, ERASED: {"S": "1"}}], ids=["expired", "erased"])
def test_groups_that_begin_later_count_nothing_that_has_expired_or_is_erased(changed: dict[str, Any]) -> None:
    day = AT // 86_400 * 86_400
    assert expired_until(PLAN, changes_of([removed({**IMAGE, **changed})])) == {
        "views": math.inf,
        "days": day + HOUR,
        "hours": AT // HOUR * HOUR + HOUR,
    }


def test_the_latest_of_a_batch_is_returned() -> None:
    earlier = {**IMAGE, "at": {"N": str(AT - 2 * HOUR)}}
    both = changes_of([removed(IMAGE), removed(earlier)])
    assert expired_until(PLAN, both)["hours"] == AT // HOUR * HOUR + HOUR


@pytest.mark.parametrize(
    "record",
    [
        removed(None),
        removed({**IMAGE, "ttl": {"N": "soon"}}),
        removed({**IMAGE, "ttl": "soon"}),
        removed({**IMAGE, "_type": "view"}),
        removed("spoiled"),
        removed({**IMAGE, "ttl": {"N": "1795000002"}}),
        removed(IMAGE, ApproximateCreationDateTime=None),
    ],
)
def test_records_without_an_expiry_or_unreadable_have_none(record: dict[str, Any]) -> None:
    assert expired_until(PLAN, changes_of([record])) == {}


@pytest.mark.parametrize("at", [{}, {"S": "noon"}, {"N": "x"}])
def test_a_time_that_cannot_be_read_may_be_any(at: dict[str, str]) -> None:
    found = expired_until(PLAN, changes_of([removed({**IMAGE, "at": at})]))
    assert found == {"views": math.inf, "days": math.inf, "hours": math.inf}


def test_groups_over_groups_that_expire_begin_by_the_text_of_their_field() -> None:
    short = replace(DAYS, retention=timedelta(days=1))
    group = {"_type": {"S": "days"}, "url": {"S": "/"}, "at:day": {"S": "1970-01-02"}, "ttl": IMAGE["ttl"]}
    found = expired_until(Plan((short, Aggregate("over", short, by="at:day"))), changes_of([removed(group)]))
    assert found == {"over": 86_400 + HOUR}
