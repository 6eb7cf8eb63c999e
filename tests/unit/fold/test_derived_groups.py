"""Groups by the class of a number, its range, and a default: counted, corrected and read like any other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from dynamodb_counters import Aggregate, Attr, Attribute, Count, Event, Items, Ranking, Sum
from dynamodb_counters._declarations.codec import decode, encode
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import counters_in_memory
from tests.unit.cli.in_process import run

_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
_SIZE: Final = "ms:5,100?unknown"

_REQUEST: Final = Event("request", key=("id", "at"), version="revision")
_FOREIGN: Final = Items("request", where=Attr("revision").exists(), pk="REQUEST#{id}#{status}")


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

        texts = [group.values["ms:0.5,5,20,1000"] for _, group in counters.scan(sizes)]
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
        found = CountResources(counters, (by,), clock=counters.clock).read("by", query, resource="get")
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
