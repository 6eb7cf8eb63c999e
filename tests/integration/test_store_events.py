"""Events that were accepted can be read back, packed or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Event, InvalidArgumentError, Packed
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW

_KEY: dict[str, Any] = {"pk": "URL#{url}", "sk": "T#{at}#CID#{client}"}
_BUCKET = timedelta(minutes=10)
_PLAIN = Event("plain", **_KEY)
_PACKED = Event("packed", **_KEY, packed=Packed("at", bucket=_BUCKET))
_IN_PARTS = Event("parts", **_KEY, packed=Packed("at", bucket=_BUCKET, parts=4, partition_by="client"))
_EVENTS = pytest.mark.parametrize("event", [_PLAIN, _PACKED, _IN_PARTS], ids=lambda event: event.name)


def _views(number: int) -> list[dict[str, Any]]:
    return [{"url": "/ab"[: 1 + n % 2], "at": NOW - 100 * n, "client": f"c{n % 5}", "n": n} for n in range(number)]


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sorted(events: Any) -> list[dict[str, Any]]:
    return sorted(events, key=lambda view: view["n"])


def test_events_of_a_group_in_a_span_of_time(store: Store) -> None:
    views = _views(40)
    store.counters.accept_many(_PACKED, views)
    start, end = NOW - 2500, NOW - 300

    found = store.counters.events(_PACKED, {"url": "/"}, start=_at(start), end=_at(end), consistent=True)

    assert _sorted(found) == [view for view in views if view["url"] == "/" and start <= view["at"] < end]


@_EVENTS
def test_values_of_every_type_come_back(store: Store, event: Event) -> None:
    odd = {
        "text": "a\nb",
        "none": None,
        "yes": True,
        "bytes": b"\0\xff",
        "tags": {"a", "b"},
        "sizes": {1, Decimal("2.5")},
    }
    view = {"url": "/", "at": NOW, "client": "c", **odd, "nested": {"list": [1, {"deep": "x"}, b"b"]}}
    store.counters.accept_many(event, [view, {"url": "/", "at": NOW, "client": "d", "text": "b"}])

    [found, _] = sorted(store.counters.events(event, {"url": "/"}, consistent=True), key=lambda each: each["client"])

    assert found == view


@pytest.mark.parametrize("how", [{"packed": _PACKED.packed}, {"version": "n"}], ids=["packed", "versioned"])
def test_retracted_and_replaced_events_are_left_out(store: Store, how: dict[str, Any]) -> None:
    event = Event("sale", pk="URL#{url}", sk="T#{at}", **how)
    key = {"url": "/", "at": NOW}
    store.counters.accept_many(event, [{**key, "n": n} for n in (1, 3, 2)])
    store.counters.accept(event, {**key, "at": NOW - 1, "n": 1})
    store.counters.retract(event, {**key, "at": NOW - 1})

    left = {**key, "n": 1 if event.version is None else 3}
    assert list(store.counters.events(event, {"url": "/"}, consistent=True)) == [left]


def test_expired_events_are_left_out_though_they_are_not_deleted_yet(store: Store) -> None:
    event = Event("packed", **_KEY, retention=timedelta(hours=1), packed=_PACKED.packed)
    store.counters.accept_many(event, _views(1))
    end = (NOW // 600 + 1) * 600
    store.clock.now = end + 3599
    assert len(list(store.counters.events(event, consistent=True))) == 1
    store.clock.now = end + 3600

    assert list(store.counters.events(event, consistent=True)) == []
    assert list(store.counters.events(event, end=_at(NOW), consistent=True)) == []


_WRONG: list[tuple[Any, Any, dict[str, Any], str]] = [
    (_PLAIN, None, {}, "a value for each of url"),
    (_PLAIN, {"url": "/"}, {"start": datetime(2026, 1, 1)}, "invalid start="),  # noqa: DTZ001 - the mistake
    (_PACKED, {"url": 1 / 3}, {}, "invalid url=0.3333"),
    (_PACKED, "/", {}, "invalid values='/'"),
    (_PACKED, {3: "/"}, {}, "invalid values=3"),
    (_PACKED, {"_type": "view"}, {}, "invalid values='_type'"),
    ("packed", None, {}, "invalid event='packed'"),
]


@pytest.mark.parametrize(("event", "values", "arguments", "message"), _WRONG)
def test_wrong_arguments_are_refused_before_anything_is_read(
    store: Store, event: Any, values: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        store.counters.events(event, values, **arguments)


def test_a_span_that_ends_with_a_bucket_reads_no_other(store: Store) -> None:
    begin = NOW // 600 * 600
    views = [{"url": "/", "at": begin + second, "client": "c", "n": second} for second in (-1, 0, 599)]
    store.counters.accept_many(_PACKED, views)
    answers = store.answers_of_queries()

    found = list(store.counters.events(_PACKED, start=_at(begin - 600), end=_at(begin), consistent=True))

    assert found == views[:1]
    assert [item["sk"]["S"] for answer in answers for item in answer["Items"] if "_chunk" in item] == [
        f"{_at(begin - 600):%Y-%m-%dT%H:%M:%S}Z#000000"
    ]


def test_values_are_those_of_whole_names(store: Store) -> None:
    view = {"url": "/", "at": NOW, "client": "c", "a.b": "x", "a": {"b": "y"}, "tags[]": "t"}
    store.counters.accept(_PACKED, view)

    for wanted, there in (
        ({"a.b": "x"}, True),
        ({"a.b": "y"}, False),
        ({"tags[]": "t"}, True),
        ({"x:day": "x"}, False),
    ):
        assert bool(list(store.counters.events(_PACKED, wanted, consistent=True))) is there
