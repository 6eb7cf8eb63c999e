"""A value of a declared type is one event, one group and one digest, in every spelling and through every door."""

from __future__ import annotations

import operator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attribute, Distinct, Event, Packed, Window
from dynamodb_counters._declarations.groups import canonical_fields
from dynamodb_counters._declarations.sources import EventIdentity
from dynamodb_counters._writes.accept import key_item, typed_item
from simulation.counters_in_memory import counters_in_memory

_OFFSETS: Final = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_MOMENTS: Final = st.datetimes(datetime(1970, 1, 3), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def _spelled_moment(moment: datetime) -> st.SearchStrategy[str]:
    def spell(zone: timezone, separator: str, form: str, digits: str, end: str) -> str:
        text = moment.astimezone(zone).isoformat(separator)
        if form == "basic":
            day, rest = text[:10].replace("-", ""), text[11:]
            text = f"{day}T{rest.replace(':', '') if '.' not in rest else rest}"
        if moment.microsecond and digits:
            head, tail = text.split(".")
            text = f"{head}{digits[0]}{tail[:6]}{digits[1:]}{tail[6:]}"
        elif digits and form != "basic":
            text = f"{text[:19]}{digits[0]}000{digits[1:]}{text[19:]}"
        return text.removesuffix("+00:00") + end if text.endswith("+00:00") else text

    digits, forms = st.sampled_from(["", ".", ",", ".0", ".000"]), st.sampled_from(["", "basic"])
    return st.builds(spell, _OFFSETS | st.just(UTC), st.sampled_from("T t"), forms, digits, st.sampled_from("Zz"))


def _spelled_number(number: Decimal) -> st.SearchStrategy[Any]:
    texts = [str(number), f"{number:f}", f"{number:E}", f"{number:.20f}"]
    return st.sampled_from([number, number * Decimal("1.00"), *texts])


def _spelled_date(day: date) -> st.SearchStrategy[Any]:
    year, week, weekday = day.isocalendar()
    return st.sampled_from([day, day.isoformat(), day.isoformat().replace("-", ""), f"{year:04}-W{week:02}-{weekday}"])


_SPELLINGS: Final[dict[str, tuple[Any, st.SearchStrategy[st.SearchStrategy[Any]]]]] = {
    "datetime": (datetime, _MOMENTS.map(lambda moment: st.just(moment) | _spelled_moment(moment))),
    "date": (date, st.dates().map(_spelled_date)),
    "UUID": (UUID, st.uuids().map(lambda uuid: st.sampled_from([uuid, str(uuid), str(uuid).upper()]))),
    "Decimal": (Decimal, st.decimals(-(10**9), 10**9, places=4).map(_spelled_number)),
    "int": (int, st.integers(-(10**9), 10**9).map(Decimal).map(_spelled_number)),
}


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", _SPELLINGS)
def test_all_spellings_of_a_value_are_one_key_one_group_and_one_digest(kind: str, data: st.DataObject) -> None:
    declared, spellings = _SPELLINGS[kind]
    event = Event("e", key=("x", "id"), attributes={"x": declared, "id": str})
    groups = Aggregate("groups", event, by="x")
    spelled = data.draw(spellings)
    first, other = data.draw(spelled), data.draw(spelled)

    texts = [canonical_fields(groups, groups.fields, {"x": value}) for value in (first, other)]
    keys = [key_item(event, {"x": value, "id": "1"}) for value in (first, other)]
    assert operator.eq(*texts)
    assert operator.eq(*({name: key[name] for name in ("pk", "sk")} for key in keys))
    # A number of a key may be asked for as text; an event has the number.
    values = [Decimal(value) if kind in ("Decimal", "int") else value for value in (first, other)]
    items = [typed_item(event, {"x": value, "id": "1"}) for value in values]
    assert items[0]["pk"] == keys[0]["pk"]
    assert operator.eq(*(EventIdentity(event).digest(item) for item in items))
    with counters_in_memory([groups]) as counters:
        for value, number in ((values[0], "1"), (values[1], "1"), (values[1], "2")):
            counters.accept(event, {"x": value, "id": number})
        assert [counters.get(groups, x=value)["groups"] for value in values] == [2, 2]


def test_events_differ_in_digits_finer_than_a_datetime() -> None:
    event = Event("e", key="x", attributes={"x": datetime})
    texts = ["2026-11-20T11:00:00.0000001+01:00", "2026-11-20T10:00:00.000000100Z", "2026-11-20T10:00:00.0000002Z"]

    first, same, other = (typed_item(event, {"x": text})["x"]["S"] for text in texts)
    assert (first, same, other) == ("2026-11-20T10:00:00.0000001Z", first, "2026-11-20T10:00:00.0000002Z")


@given(st.lists(_MOMENTS, min_size=2, max_size=2, unique=True))
def test_versions_that_are_times_sort_as_times(moments: list[datetime]) -> None:
    event = Event("e", key="id", version="at", attributes={"id": str, "at": datetime})
    plain = Event("e", key="id", version="at")
    for source, values in ((event, [moment.isoformat() for moment in moments]), (plain, moments)):
        texts = [typed_item(source, {"id": "1", "at": value})["at"]["S"] for value in values]
        assert (texts[0] < texts[1]) == (moments[0] < moments[1])


def test_members_of_lists_sets_and_maps_are_spelled_alike() -> None:
    place = Attribute(dict, attributes={"at": datetime})
    event = Event("e", key="id", attributes={"id": str, "days": list[datetime], "ids": set[UUID], "place": place})
    uuid, noon, utc = "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "2026-11-20T13:00:00+01:00", {"S": "2026-11-20T12:00:00Z"}
    values = {"id": "A", "days": [noon], "ids": {uuid, uuid.upper()}, "place": {"at": noon, "more": noon}}
    expected = {"id": {"S": "A"}, "days": {"L": [utc]}, "ids": {"SS": [uuid]}}
    expected["place"] = {"M": {"at": utc, "more": {"S": noon}}}
    assert typed_item(event, values).items() >= expected.items()


_TIMES: Final = ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.000Z", "2026-11-20T11:00:00+01:00", "20261120T100000z")
_VIEW: Final = Event("view", key=("time", "client"), attributes={"time": datetime, "client": UUID, "url": str})
_PACKED: Final = replace(_VIEW, retention=timedelta(days=7), packed=Packed("time"))
_TIMED: Final = Aggregate("timed", _VIEW, by="time")
_CLIENT: Final = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
_NOW: Final = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


def _values(time: str) -> dict[str, Any]:
    return {"time": time, "client": _CLIENT.upper() if "+" in time else _CLIENT, "url": "/"}


@pytest.mark.parametrize(
    ("door", "event"),
    [*((door, event) for door in ("accept", "accept_many") for event in (_VIEW, _PACKED)), ("record_once", _VIEW)],
)
@pytest.mark.parametrize("time", _TIMES)
def test_every_door_and_read_takes_every_spelling(door: str, event: Event, time: str) -> None:
    timed, members = Aggregate("timed", event, by="time"), Distinct("clients", event, by="time", member="client")
    last = Window("last", event, by="client", time="time")
    with counters_in_memory([timed, members, last], now=_NOW) as counters:
        counters.accept(event, _values(_TIMES[0]))
        arguments: dict[str, Any] = {"accept_many": [[_values(time)]], "record_once": [_values(time), [timed]]}
        outcome = getattr(counters, door)(event, *arguments.get(door, [_values(time)]))
        assert [result.status for result in (outcome if door == "accept_many" else [outcome])] == ["duplicate"]
        for spelled in _TIMES:
            values = _values(spelled)
            assert counters.get(timed, {"time": spelled})["timed"] == 1
            assert [group["timed"] for group in counters.groups(timed, {"time": spelled})] == [1]
            assert counters.get(members, {"time": spelled})["distinct"] == 1
            assert counters.window(last, client=values["client"]).last(timedelta(hours=1)).count == 1
            assert [*counters.events(event, {"time": spelled, "client": values["client"]})] == [_values(_TIMES[0])]
        assert counters.retract(event, _values(time))
        assert counters.get(timed, {"time": time})["timed"] == 0


def test_events_are_erased_by_every_spelling() -> None:
    for time in _TIMES:
        with counters_in_memory([_TIMED], now=_NOW) as counters:
            counters.accept(_VIEW, _values(_TIMES[0]))
            counters.erase(_VIEW, {"time": time}, counts="take_back")
            assert counters.get(_TIMED, {"time": time})["timed"] == 0
