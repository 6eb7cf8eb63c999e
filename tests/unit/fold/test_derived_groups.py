"""Groups by what an item says only indirectly: a class, a range, a day, a default for what it lacks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final
from urllib.parse import urlencode

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
    Items,
    Packed,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._declarations.measures import Measure
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._items.conditions import text_reader
from dynamodb_counters.errors import MalformedImageError
from dynamodb_counters.testing import QuarantinedRecordsError
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit.cli.in_process import run

_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
_SIZE: Final = "ms:5,100?unknown"

_REQUEST: Final = Event("request", key=("id", "at"), version="revision")
_FOREIGN: Final = Items("request", where=Attr("revision").exists(), pk="REQUEST#{id}#{status}")
_VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
_CALL: Final = Event("call", key="id", version="revision")
_SPEED: Final = Aggregate("speed", _CALL, calls=Count(), ms=Histogram("ms", bounds=[0, 50]))
_OVER: Final = Aggregate("over", _SPEED, below=Sum("ms.<0"))
_ATTRIBUTES: Final = {"id": str, "at": datetime, "revision": int, "ms": Attribute(int, required=False)}
_LATE_CALL: Final = Event("call", key=("id", "at"), version="revision", attributes=_ATTRIBUTES)
_PACKED: Final = replace(_LATE_CALL, version=None, packed=Packed("at"), retention=timedelta(days=7))


def _by(source: Any) -> Aggregate:
    ranking = Ranking("n", leaderboard="TOP#{status:class}")
    return Aggregate("by", source, by=("status:class", "plan?free", _SIZE), n=Count(), ranking=ranking)


def _values(status: int, **changes: Any) -> dict[str, Any]:
    return {"id": str(status), "at": _NOON.isoformat(), "revision": 1, "status": status, **changes}


def test_numbers_in_keys_of_other_code_have_a_class() -> None:
    by = _by(_FOREIGN)
    with counters_in_memory([by]) as counters:
        counters.table.put_item(Item={"pk": "REQUEST#1#404", "sk": "R", "revision": 1})

        assert counters.get(by, {"status:class": "4xx", "plan?free": "free", _SIZE: "unknown"})["n"] == 1


@pytest.mark.parametrize("status", [99, 1000, -200, "200", None])
def test_a_value_without_a_class_waits_in_quarantine(status: Any) -> None:
    with counters_in_memory([_by(_REQUEST)], quarantine="keep") as counters:
        counters.accept(_REQUEST, {**_values(200), "status": status})

        assert len(list(counters.quarantined())) == 1


def test_declarations_with_derived_fields_survive_the_environment() -> None:
    assert decode(encode((_by(_REQUEST),))) == (_by(_REQUEST),)


def test_texts_of_ranges_sort_as_their_numbers() -> None:
    event = Event("e", key="id")
    sizes = Aggregate("sizes", event, pk="SIZES", sk="{ms:0.5,5,20,1000}", n=Count())
    with counters_in_memory([sizes]) as counters:
        counters.accept_many(event, [{"id": str(ms), "ms": ms} for ms in (2000, 20, 1, 0, 7, -3)])

        texts = [group.values["ms:0.5,5,20,1000"] for group in counters.groups(sizes)]
    assert texts == ["..0000.5", "0000.5..0005", "0005..0020", "0020..1000", "1000.."]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("status:class", 500, "one of '1xx', '2xx', "),
        (_SIZE, "5..100", "one of '..005', '005..100', '100..', or 'unknown'"),
        ("at:day", "20", "a UTC day such as '2026-11-20'"),
    ],
)
def test_a_read_of_a_text_that_no_group_has_is_refused(field: str, value: object, expected: str) -> None:
    by = Aggregate("by", _REQUEST, by=("status:class", _SIZE, "at:day"))
    values = {"status:class": "5xx", _SIZE: "unknown", "at:day": "2026-11-20"}
    with counters_in_memory([by]) as counters:
        assert counters.get(by, values)["by"] == 0
        with pytest.raises(InvalidArgumentError) as refused:
            counters.get(by, values | {field: value})

    assert str(refused.value).startswith(f"invalid {field}={str(value)!r}: expected {expected}")


@pytest.mark.parametrize("text", ["free", "pro"])
def test_a_default_can_be_read_besides_what_the_attribute_can_be(text: str) -> None:
    event = Event("e", key="id", attributes={"id": str, "size": Attribute(int, required=False)})
    sizes = Aggregate("sizes", event, by="size?free")
    with counters_in_memory([sizes]) as counters:
        counters.accept(event, {"id": "1"})
        if text == "free":
            assert counters.get(sizes, {"size?free": text})["sizes"] == 1
        else:
            with pytest.raises(InvalidArgumentError, match="expected a whole number"):
                counters.get(sizes, {"size?free": text})


@pytest.mark.parametrize("query", ["status:class=5xx&plan?free=pro&ms:5,100?unknown=..005", None])
def test_names_of_derived_fields_are_parameters_and_arguments(query: str | None) -> None:
    by = _by(_REQUEST)
    with counters_in_memory([by], now=_NOON) as counters:
        counters.accept(_REQUEST, _values(500, ms=1, plan="pro"))

        if query is None:
            query = urlencode({"status:class": "5xx", "plan?free": "pro", _SIZE: "..005"})
        found = CountResources(counters, (by,)).read("by", query, resource="get")
        arguments = (
            "get",
            "by",
            "status:class=5xx",
            "plan?free=pro",
            f"{_SIZE}=..005",
            "--json",
            "--table",
            "counters",
        )
        ran = run(*arguments, client=counters.client, clock=counters.clock)
    assert found["measures"] == {"n": 1}
    assert ran.document["measures"] == {"n": 1}


def test_a_group_in_a_page_whose_first_number_is_0_counts_as_a_group() -> None:
    event = Event("sale", key="id")
    sums = Aggregate("sums", event, by="shop", paid=Sum("cents"), n=Count(), pages=True)
    shops = Aggregate("shops", sums, pk="SHOPS", sk="ALL", shops=Count())
    with counters_in_memory([sums, shops]) as counters:
        counters.accept(event, {"id": "1", "shop": "a", "cents": 0})
        assert counters.get(shops)["shops"] == 1


@pytest.mark.parametrize(
    ("tier", "text"),
    [("minute", "2026-11-20T10:30"), ("hour", "2026-11-20T10"), ("day", "2026-11-20"), ("month", "2026-11")],
)
def test_a_time_can_stand_for_any_tier(tier: str, text: str) -> None:
    assert text_reader(f"at:{tier}")({"at": {"S": "2026-11-20T12:30:30+02:00"}}) == text


@pytest.mark.parametrize("value", [None, {"S": "2026-11-20"}, {"S": "2026-11-20T10:00:00"}, {"BOOL": True}])
def test_values_that_are_no_moment_stand_for_none(value: Any) -> None:
    with pytest.raises(MalformedImageError):
        text_reader("at:day")({} if value is None else {"at": value})


_WRONG = [
    *("{at:week}", "{at:>10}", "{tags[]:day}", "{lines[].at:day}", "{lines[].sku}", "{at!r:day}", "{tags[]:class}"),
    *("{ms:100,10}", "{ms:10,10}", "{ms:-1}", "{ms:01}", "{ms:1,}", "{ms:1.0}", "{ms:1e3}", "{ms:1_0}", "{ms:nan}"),
    *("{plan?}", "{plan?a b}", "{plan?a:class}", "{plan?a?b}", "{tags[]?none}"),
]


@pytest.mark.parametrize("pk", _WRONG)
def test_other_formats_are_refused(pk: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid pk=.*\{time:day\}"):
        Aggregate("views", _VIEW, pk=pk, sk="VIEWS", measures={"views": Count()})


def _accept(counters: CountersInMemory, *values: int, revision: int = 1) -> None:
    for number, ms in enumerate(values):
        counters.accept(_CALL, {"id": str(number), "revision": revision, "ms": ms})


def test_values_below_the_first_bound_have_a_bin() -> None:
    with counters_in_memory([_SPEED, _OVER]) as counters:
        _accept(counters, -7, -1, 0, 49, 50)
        assert counters.get(_SPEED)["ms"] == {"<0": 2, 0: 2, 50: 1}
        assert counters.get(_OVER)["below"] == 2
        _accept(counters, 9, revision=2)
        found = counters.get(_SPEED)["ms"]
    assert [*found.items()] == [("<0", 1), (0, 3), (50, 1)]
    assert sum(found.values()) == 5


def test_the_bin_below_is_shown_in_json_and_by_commands() -> None:
    with counters_in_memory([_SPEED]) as counters:
        _accept(counters, -7, 0)
        shown = CountResources(counters, (_SPEED,)).read("speed", "", resource="get")
        get = run("get", "speed", "--table=counters", client=counters.client, clock=counters.clock)
    assert shown["measures"]["ms"] == {"<0": 1, "0": 1, "50": 0}
    assert [line.split()[1:] for line in get.out.splitlines()][-3:] == [["<0", "1"], ["0", "1"], ["50", "0"]]


def test_exact_and_cumulative_bins_leave_out_other_values() -> None:
    counted = Aggregate("a", _CALL, one=Histogram("ms", exactly=[1, 3]), more=Histogram("ms", at_least=[1, 3]))
    with counters_in_memory([counted]) as counters:
        _accept(counters, 0, 2, 3)
        assert counters.get(counted).measures == {"one": {1: 0, 3: 1}, "more": {1: 2, 3: 1}}


def _late_call(id_: str, **attributes: Any) -> dict[str, Any]:
    return {"id": id_, "at": _NOON, "revision": 1, **attributes}


@pytest.mark.parametrize("event", [_LATE_CALL, _PACKED])
def test_a_default_stands_for_a_number_that_is_missing_or_null(event: Event) -> None:
    measures: dict[str, Measure] = {
        "total": Sum("ms", default=1, cap=5),
        "mean": Average("ms", default=Decimal("0.5")),
        "sizes": Histogram("ms", bounds=[1, 10], default=0),
    }
    speed = Aggregate("speed", event, measures=measures)
    recent = Window("recent", event, time="at", measure=Sum("ms", default=2))
    with counters_in_memory([speed, recent], now=_NOON) as counters:
        counters.accept_many(event, [_late_call("1", ms=10), _late_call("2"), _late_call("3", ms=None)])
        found = counters.get(speed).measures
        assert (found["total"], found["sizes"]) == (7, {"<1": 2, 1: 0, 10: 1})
        assert found["mean"] == Context(prec=38).divide(Decimal(11), Decimal(3))
        assert counters.window(recent).last(timedelta(hours=1)).count == 14
        corrects = event.version is not None
        if corrects:
            counters.accept(event, _late_call("2", ms=4) | {"revision": 2})
            assert counters.get(speed)["total"] == 10
        counters.retract(event, _late_call("3"))
        assert counters.get(speed)["total"] == (9 if corrects else 6)
        assert counters.window(recent).last(timedelta(hours=1)).count == (14 if corrects else 12)


@pytest.mark.parametrize("where", [Attr("ms").exists(), Attr("ms").gt(-1) & Attr("id").ne("x")])
def test_items_without_a_number_are_left_out_where_it_is_required(where: Any) -> None:
    speed = Aggregate("speed", _LATE_CALL, calls=Count(), ms=Sum("ms"), where=where)
    with counters_in_memory([speed], now=_NOON) as counters:
        counters.accept_many(_LATE_CALL, [_late_call("1", ms=7), _late_call("2"), _late_call("3", ms=None)])

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
    speed = Aggregate("speed", _LATE_CALL, ms=Sum("ms", default=0))

    assert decode(encode((speed,), attributes=True)) == (speed,)
    assert Sum("ms") != Sum("ms", default=0) != Sum("ms", default=1)


def test_groups_have_all_their_measures_so_a_default_is_refused() -> None:
    speed = Aggregate("speed", _LATE_CALL, n=Count())

    with pytest.raises(InvalidArgumentError, match=r"^invalid measures=0: expected no default: 'speed' has its"):
        Aggregate("over", speed, n=Sum("n", default=0))
