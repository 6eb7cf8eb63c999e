"""Numbers that an item may lack: a measure's default stands for them, and `where` can require them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Attribute,
    Average,
    Count,
    Event,
    Histogram,
    InvalidArgumentError,
    Packed,
    Sum,
    Window,
)
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.measures import Measure
from dynamodb_counters.testing import QuarantinedRecordsError
from simulation.counters_in_memory import counters_in_memory

_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
_ATTRIBUTES: Final = {"id": str, "at": datetime, "revision": int, "ms": Attribute(int, required=False)}
_CALL: Final = Event("call", key=("id", "at"), version="revision", attributes=_ATTRIBUTES)
_PACKED: Final = replace(_CALL, version=None, packed=Packed("at"), retention=timedelta(days=7))


def _call(id_: str, **attributes: Any) -> dict[str, Any]:
    return {"id": id_, "at": _NOON, "revision": 1, **attributes}


@pytest.mark.parametrize("event", [_CALL, _PACKED])
def test_a_default_stands_for_a_number_that_is_missing_or_null(event: Event) -> None:
    measures: dict[str, Measure] = {
        "total": Sum("ms", default=1, cap=5),
        "mean": Average("ms", default=Decimal("0.5")),
        "sizes": Histogram("ms", bounds=[1, 10], default=0),
    }
    speed = Aggregate("speed", event, measures=measures)
    recent = Window("recent", event, time="at", measure=Sum("ms", default=2))
    with counters_in_memory([speed, recent], now=_NOON) as counters:
        counters.accept_many(event, [_call("1", ms=10), _call("2"), _call("3", ms=None)])
        found = counters.get(speed).measures
        assert (found["total"], found["sizes"]) == (7, {"<1": 2, 1: 0, 10: 1})
        assert found["mean"] == Context(prec=38).divide(Decimal(11), Decimal(3))
        assert counters.window(recent).last(timedelta(hours=1)).count == 14
        corrects = event.version is not None
        if corrects:
            counters.accept(event, _call("2", ms=4) | {"revision": 2})
            assert counters.get(speed)["total"] == 10
        counters.retract(event, _call("3"))
        assert counters.get(speed)["total"] == (9 if corrects else 6)
        assert counters.window(recent).last(timedelta(hours=1)).count == (14 if corrects else 12)


@pytest.mark.parametrize("where", [Attr("ms").exists(), Attr("ms").gt(-1) & Attr("id").ne("x")])
def test_items_without_a_number_are_left_out_where_it_is_required(where: Any) -> None:
    speed = Aggregate("speed", _CALL, calls=Count(), ms=Sum("ms"), where=where)
    with counters_in_memory([speed], now=_NOON) as counters:
        counters.accept_many(_CALL, [_call("1", ms=7), _call("2"), _call("3", ms=None)])

        assert counters.get(speed).measures == {"calls": 1, "ms": 7}


@pytest.mark.parametrize("value", ["7", True, [7]])
def test_a_default_never_stands_for_another_type(value: Any) -> None:
    event = Event("call", key="id")
    speed = Aggregate("speed", event, ms=Sum("ms", default=0))
    with (
        pytest.raises(QuarantinedRecordsError, match="attribute 'ms' is not a number"),
        counters_in_memory([speed]) as counters,
    ):
        counters.accept(event, {"id": "1", "ms": value})


def test_a_default_is_part_of_a_declaration() -> None:
    speed = Aggregate("speed", _CALL, ms=Sum("ms", default=0))

    assert decode(encode((speed,), attributes=True)) == (speed,)
    assert Sum("ms") != Sum("ms", default=0) != Sum("ms", default=1)


def test_groups_have_all_their_measures_so_a_default_is_refused() -> None:
    speed = Aggregate("speed", _CALL, n=Count())

    with pytest.raises(InvalidArgumentError, match=r"^invalid measures=0: expected no default: 'speed' has its"):
        Aggregate("over", speed, n=Sum("n", default=0))
