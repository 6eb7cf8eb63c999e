"""Declarations: a wrong value of any argument is refused, and so are two that share a name or could write one item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import (
    Aggregate,
    Attr,
    Count,
    Distinct,
    Event,
    Extremes,
    Histogram,
    InvalidArgumentError,
    Percentiles,
    Quota,
    Sum,
    Window,
)
from dynamodb_counters._declarations import Declaration, require_consistent
from dynamodb_counters._declarations.composites import Composite, group_fields, read_by, with_parts
from dynamodb_counters._fold.plan import Plan
from tests.unit.declarations.wrong import PATH, PLAYERS, WRONG, Wrong

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")

_RIGHT: dict[type, dict[str, Any]] = {
    Event: {"name": "event", "pk": "A#{a}", "sk": "B#{b}"},
    Aggregate: {"name": "views", "source": _VIEW, "pk": "URL#{url}", "sk": "STATISTICS", "measures": {"n": Count()}},
    Window: {"name": "recent", "source": _VIEW, "pk": "URL#{url}", "time": "time"},
    Sum: {"attribute": "bytes"},
}

_NAMES: list[Any] = ["", None, 5, True, "1a", "-a", "a b", "a#b", "a.b", "é", "a\n", "a" * 65, "quarantine", ["a"]]
_TEMPLATES: list[Any] = [
    *("", None, 5, [], {}, "{", "{}", "{a}{b}", "A#{a}x", "A#{a}#{a}", "100%", "x" * 2048),
    *(f"A#{{{reserved}}}" for reserved in ("pk", "sk", "ttl", "_type", "_bucket", "_shard")),
]
_DURATIONS: list[Any] = [timedelta(0), timedelta(milliseconds=999), timedelta(days=-1), 7, 7.5, "7d", True]
_MEASURES: list[Any] = [
    *({}, [], [Count()], "n"),
    *({"n": measure} for measure in (1, Window, "count")),
    *({name: Count()} for name in ("", "1n", "n m", "pk", "ttl", "_n", "url", 5)),
]
_CONDITIONS: list[Any] = [True, "status = paid", {"status": "paid"}, Attr("status"), len]
_SOURCES: list[Any] = [None, "view", Event, Count()]
_ATTRIBUTES: list[Any] = ["", None, 5, ["bytes"]]
_CHOICES: list[Any] = [None, "", "KEEP", "forget", True, ["keep"]]

_WRONG: dict[tuple[type, str], list[Any]] = {
    (Event, "name"): _NAMES,
    (Event, "pk"): _TEMPLATES,
    (Event, "sk"): _TEMPLATES,
    (Event, "retention"): _DURATIONS,
    (Aggregate, "name"): _NAMES,
    (Aggregate, "source"): _SOURCES,
    (Aggregate, "pk"): _TEMPLATES,
    (Aggregate, "sk"): _TEMPLATES,
    (Aggregate, "measures"): _MEASURES,
    (Aggregate, "where"): _CONDITIONS,
    (Aggregate, "on_expiry"): _CHOICES,
    (Window, "name"): _NAMES,
    (Window, "source"): _SOURCES,
    (Window, "pk"): [*filter(None, _TEMPLATES), "A#{total}", "A#{m00}"],
    (Window, "time"): _ATTRIBUTES,
    (Window, "retention"): _DURATIONS,
    (Window, "measure"): [None, Count, "count", {"n": Count()}, 1],
    (Window, "where"): _CONDITIONS,
    (Window, "late"): _CHOICES,
    (Window, "future_tolerance"): [timedelta(seconds=-1), 15, "15m"],
    (Window, "on_expiry"): _CHOICES,
    (Sum, "attribute"): _ATTRIBUTES,
}
_CASES = [(kind, argument, value) for (kind, argument), values in _WRONG.items() for value in values]
_REQUEST = Event("request", key="id")
GIVEN: dict[str, Any] = {"name": "calls", "limit": 300, "per": "day"}


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    _CASES,
    ids=[f"{kind.__name__}-{argument}-{n}" for n, (kind, argument, _) in enumerate(_CASES)],
)
def test_a_wrong_argument_is_refused_by_name_and_value(kind: type, argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        kind(**{**_RIGHT[kind], argument: value})

    error = refused.value
    assert error.argument == argument
    assert error.value == value or (isinstance(value, dict) and error.value in [*value, *value.values()])
    assert error.expected
    assert str(error) == f"invalid {argument}={error.value!r:.120}: expected {error.expected}" or "…" in str(error)
    assert isinstance(error, ValueError)


def test_a_declaration_without_fields_and_keys_has_one_group() -> None:
    for declared in (
        Aggregate("all", _VIEW),
        Distinct("all", _VIEW, member="a"),
        Window("all", _VIEW, time="at"),
    ):
        parts = declared._parts if isinstance(declared, Distinct) else (declared,)
        assert {part.pk for part in parts} == {"all"}


def test_measures_have_names_by_keyword_or_in_one_mapping() -> None:
    declare: Any = Aggregate
    measures: dict[str, Any] = {"n": Count(), "paid": Sum("cents")}
    assert declare("views", _VIEW, by="url", **measures) == declare("views", _VIEW, by="url", measures=measures)
    assert declare("views", _VIEW, by="url").measures == {"views": Count()}
    with pytest.raises(InvalidArgumentError, match=r"invalid measures=.*keyword arguments or one mapping, not both"):
        declare("views", _VIEW, by="url", measures=measures, more=Count())
    with pytest.raises(InvalidArgumentError, match="invalid gy='url': expected a measure such as Count"):
        declare("views", _VIEW, gy="url")


def test_the_group_is_the_fields_of_both_keys_in_their_order() -> None:
    aggregate = Aggregate("a", _VIEW, pk="X#{b}#{a}", sk="Y#{a}#{c}", measures={"n": Count()})

    assert aggregate.fields == ("b", "a", "c")


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.mistake for wrong in WRONG])
def test_the_error_names_argument_value_and_what_is_allowed(wrong: Wrong) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        wrong.make()

    error = refused.value
    assert str(error).startswith(f"invalid {wrong.argument}={wrong.value}")
    assert str(error).endswith(f": expected {wrong.expected}")


def test_there_are_twenty_and_each_is_another() -> None:
    assert len({wrong.mistake for wrong in WRONG}) == len(WRONG) >= 20


def test_a_cycle_cannot_be_written_down() -> None:
    one = Aggregate("one", PATH, pk="ONE", sk="ALL", measures={"n": Count()})
    two = Aggregate("two", one, pk="TWO", sk="ALL", measures={"n": Count()})

    # A source must exist before what looks at it, and a declaration does not change.
    with pytest.raises(AttributeError):
        one.source = two  # type: ignore[misc]
    # Another "one" over "two" over the first "one" can be made: two of one name.
    with pytest.raises(InvalidArgumentError, match="invalid name='one': expected one declaration per name"):
        require_consistent((replace(one, source=two), two, one))
    with pytest.raises(InvalidArgumentError, match="invalid name='one': expected one declaration per name"):
        require_consistent((replace(one, source=two), two))


def test_an_aggregate_over_its_own_items_by_way_of_an_event_cannot_be_written_down() -> None:
    loop = Event("players", pk="PLAYER#{player}", sk="STATISTICS")

    with pytest.raises(InvalidArgumentError, match="invalid name='players': expected one declaration per name"):
        require_consistent((PLAYERS, Aggregate("loop", loop, pk="LOOP", sk="ALL", measures={"n": Count()})))


@pytest.mark.parametrize(
    ("declared", "read", "fields"),
    [
        (Percentiles("latency", _REQUEST, attribute="ms"), "distribution", ()),
        (Extremes("slowest", _REQUEST, by="route", attribute="ms"), "extremes", ("route",)),
    ],
)
def test_a_read_of_its_own_names_a_group_by_its_partition(
    declared: Composite, read: str, fields: tuple[str, ...]
) -> None:
    [counted] = declared._parts
    assert (read_by(counted), group_fields(counted)) == (read, fields)


def test_the_name_of_a_distinct_means_its_members_too() -> None:
    declared = Distinct("visitors", Event("view", key=("url", "time")), by="url", member="client")._parts
    assert with_parts(["visitors"], declared) == {"visitors", "visitors-members"}


def test_a_value_counts_in_all_bins_that_it_reaches() -> None:
    assert list(Histogram("n", at_least=[1, 5, 10])._bin_indexes(7)) == [0, 1]


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", "1st"),
        ("limit", 0),
        ("limit", 1.5),
        ("limit", True),
        ("per", "fortnight"),
        ("per", timedelta(seconds=59)),
        ("per", timedelta(seconds=60.5)),
        ("per", 60),
        ("by", {"customer"}),
        ("by", 3),
        ("by", ("a", "a")),
        ("by", ("a", "b", "c", "d")),
        ("by", ("pk",)),
        ("by", ("a.b",)),
        ("by", ("time:day",)),
        ("tz", "Europe/Atlantis"),
        ("portion", 0),
        ("portion", 301),
        ("clock_error", 1),
        ("clock_error", timedelta(seconds=21)),
    ],
)
def test_a_wrong_argument_is_refused_by_name(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^invalid {argument}="):
        Quota(**{**GIVEN, argument: value})


@pytest.mark.parametrize(
    ("per", "tz", "moment", "start", "end"),
    [
        ("hour", "UTC", _utc(2026, 11, 20, 10, 59), _utc(2026, 11, 20, 10), _utc(2026, 11, 20, 11)),
        ("day", "Europe/Berlin", _utc(2026, 10, 25, 12), _utc(2026, 10, 24, 22), _utc(2026, 10, 25, 23)),
        ("week", "UTC", _utc(2026, 11, 20), _utc(2026, 11, 16), _utc(2026, 11, 23)),
        ("month", "Asia/Kathmandu", _utc(2026, 2, 1), _utc(2026, 1, 31, 18, 15), _utc(2026, 2, 28, 18, 15)),
        ("year", "UTC", _utc(2028, 12, 31, 23), _utc(2028, 1, 1), _utc(2029, 1, 1)),
        (timedelta(minutes=7), "UTC", _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 7), _utc(1970, 1, 1, 0, 14)),
    ],
)
def test_a_period_begins_and_ends_where_its_calendar_says(
    per: Any, tz: str, moment: datetime, start: datetime, end: datetime
) -> None:
    found = Quota("calls", limit=1, per=per, tz=tz)._period(moment.timestamp())

    assert (found.start, found.end) == (start.timestamp(), end.timestamp())


@pytest.mark.parametrize("pk", ["LEASES#{name}", "LEASES#{name}#{customer}", "LEASES#calls#a#b#{d}"])
def test_no_event_can_be_taken_for_what_is_reserved(pk: str) -> None:
    with pytest.raises(InvalidArgumentError, match="reserved 'LEASES#"):
        require_consistent((), [Event("forged", pk=pk, sk="SK")])


def _aggregate(name: str, pk: str, sk: str, source: Event = _VIEW) -> Aggregate:
    return Aggregate(name, source, pk=pk, sk=sk, measures={"n": Count()})


def _window(name: str, pk: str, source: Event = _VIEW) -> Window:
    return Window(name, source, pk=pk, time="time")


_VIEWS = _aggregate("views", "URL#{url}", "STATISTICS")

_CLASHES: dict[str, tuple[Declaration, ...]] = {
    "the same twice": (_VIEWS, _VIEWS),
    "two aggregates of one name": (_VIEWS, _aggregate("views", "OTHER#{url}", "STATISTICS")),
    "a window and an aggregate of one name": (_VIEWS, _window("views", "W#{url}")),
    "an aggregate named like an event": (_aggregate("view", "W#{url}", "STATISTICS"),),
    "two events of one name": (_VIEWS, _aggregate("jobs", "C#{c}", "N", Event("view", pk="C#{c}", sk="JOB#{id}"))),
    "two aggregates with one key": (_VIEWS, _aggregate("other", "URL#{url}", "STATISTICS")),
    "two aggregates with one key, fields named differently": (_VIEWS, _aggregate("o", "URL#{page}", "STATISTICS")),
    "a constant key that a value can take": (_VIEWS, _aggregate("root", "URL#home", "STATISTICS")),
    "a prefix that a value can continue": (_aggregate("a", "X#A{a}", "S"), _aggregate("b", "X#AB{a}", "S")),
    "an aggregate over its own events": (_aggregate("a", "URL#{url}", "T#{time}#CID#{clientId}"),),
    "an aggregate that an event can be": (_aggregate("a", "URL#{url}", "T#{x}#CID#TOTAL"),),
    "two events that can be each other": (
        _VIEWS,
        _aggregate("n", "N", "N", Event("visit", pk="URL#{url}", sk="T#{time}#CID#{visitor}")),
    ),
    "a bucket that an aggregate can be": (_aggregate("a", "URL#{url}", "WINDOW#{x}#H#{y}"), _window("w", "URL#{url}")),
    "a bucket that an event can be": (_window("w", "C#{c}", Event("job", pk="C#{c}", sk="{a}#{b}#{c}#{d}")),),
}


@pytest.mark.parametrize("clash", _CLASHES)
@pytest.mark.parametrize("check", [require_consistent, Plan])
def test_declarations_that_meet_are_refused(clash: str, check: Callable[[tuple[Declaration, ...]], object]) -> None:
    declarations = _CLASHES[clash]
    for order in (declarations, declarations[::-1]):
        with pytest.raises(InvalidArgumentError) as refused:
            check(order)

        assert refused.value.argument in ("name", "sk", "declarations")
        assert refused.value.expected


def test_no_item_may_stand_where_quarantine_keeps_its_records() -> None:
    forger = Event("forger", pk="{a}#{b}", sk="{c}#{d}")

    with pytest.raises(InvalidArgumentError):
        require_consistent((_aggregate("n", "N", "N", forger),))


_NOTE = Event("note", pk="URL#{url}", sk="{id}")


@pytest.mark.parametrize(
    ("declarations", "events", "argument"),
    [
        ((_VIEWS,), [_NOTE], "sk"),
        ((_window("recent", "URL#{url}"),), [Event("note", pk="URL#{url}", sk="{a}#{b}#{c}#{d}")], "sk"),
        ((_VIEWS,), [Event("view", pk="V#{url}", sk="{id}")], "name"),
        ((_VIEWS,), [Event("views", pk="V#{url}", sk="{id}")], "name"),
        ((), [_NOTE, Event("memo", pk="URL#{url}", sk="{memo}")], "sk"),
        ((), [Event("forger", pk="{a}#{b}", sk="{c}#{d}")], "pk"),
    ],
    ids=["count", "bucket", "other-event", "name-of-a-count", "each-other", "reserved"],
)
def test_events_that_nothing_counts_are_checked_too(
    declarations: tuple[Declaration, ...], events: list[Event], argument: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        require_consistent(declarations, events)
    assert refused.value.argument == argument


def test_events_that_are_counted_may_be_given_again() -> None:
    require_consistent((_VIEWS,), [_VIEW, Event("note", pk="NOTE#{url}", sk="{id}")])
