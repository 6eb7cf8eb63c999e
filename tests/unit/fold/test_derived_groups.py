"""Groups by what an item says only indirectly: a class, a range, a day, a default for what it lacks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from counters_lambda.http_api.resources import CountResources
from dynamodb_counters import Aggregate, Count, Event, Histogram, Sum
from dynamodb_counters.testing import QuarantinedRecordsError
from simulation.counters_in_memory import counters_in_memory
from tests.unit.cli.in_process import run

_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)

_REQUEST: Final = Event("request", key=("id", "at"), version="revision")
_CALL: Final = Event("call", key="id", version="revision")
_SPEED: Final = Aggregate("speed", _CALL, calls=Count(), ms=Histogram("ms", bounds=[0, 50]))


_BY: Final = Aggregate("by", _REQUEST, by=("status:class", "plan?free", "ms:class?none"), n=Count())


@pytest.mark.parametrize("status", [99, 1000, -200, "200", None])
def test_a_value_without_a_class_waits_in_quarantine(status: Any) -> None:
    with counters_in_memory([_BY], quarantine="keep") as counters:
        counters.accept(_REQUEST, {"id": "1", "at": _NOON, "revision": 1, "status": status})

        assert len(list(counters.quarantined())) == 1


@pytest.mark.parametrize("plain", [True, False])
def test_names_of_derived_fields_are_parameters_and_arguments(plain: bool) -> None:
    texts = ["status:class=5xx", "plan?free=pro", "ms:class?none=1xx"]
    with counters_in_memory([_BY], now=_NOON) as counters:
        counters.accept(_REQUEST, {"id": "1", "at": _NOON, "revision": 1, "status": 500, "ms": 100, "plan": "pro"})

        query = "&".join(texts) if plain else urlencode(dict(text.split("=") for text in texts))
        answer = CountResources(counters, (_BY,)).read("by", query, resource="get")
        ran = run("get", "by", *texts, "--json", "--table=counters", client=counters.client, clock=counters.clock)
    assert answer["measures"] == {"n": 1}
    assert ran.document["measures"] == {"n": 1}


def test_a_group_in_a_page_whose_first_number_is_0_counts_as_a_group() -> None:
    event = Event("sale", key="id")
    sums = Aggregate("sums", event, by="shop", paid=Sum("cents"), n=Count(), pages=True)
    shops = Aggregate("shops", sums, pk="SHOPS", sk="ALL", shops=Count())
    with counters_in_memory([sums, shops]) as counters:
        counters.accept(event, {"id": "1", "shop": "a", "cents": 0})
        assert counters.get(shops)["shops"] == 1


def test_the_bin_below_is_shown_in_json_and_by_commands() -> None:
    with counters_in_memory([_SPEED]) as counters:
        counters.accept_many(_CALL, [{"id": str(ms), "revision": 1, "ms": ms} for ms in (-7, 0)])
        answer = CountResources(counters, (_SPEED,)).read("speed", "", resource="get")
        get = run("get", "speed", "--table=counters", client=counters.client, clock=counters.clock)
    assert answer["measures"]["ms"] == {"<0": 1, "0": 1, "50": 0}
    assert [line.split()[1:] for line in get.out.splitlines()][-3:] == [["<0", "1"], ["0", "1"], ["50", "0"]]


@pytest.mark.parametrize("value", ["7", True, [7]])
def test_a_default_never_stands_for_another_type(value: Any) -> None:
    event = Event("call", key="id")
    speed = Aggregate("speed", event, ms=Sum("ms", default=0))
    with (
        pytest.raises(QuarantinedRecordsError, match="attribute 'ms' is not a number"),
        counters_in_memory([speed]) as counters,
    ):
        counters.accept(event, {"id": "1", "ms": value})
