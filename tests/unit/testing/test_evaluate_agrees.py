"""`evaluate` and counters in memory agree, whatever happens to events and items, and however it is delivered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Attr,
    Average,
    Count,
    Distinct,
    Event,
    Histogram,
    Items,
    Packed,
    Sum,
    Window,
    evaluate,
)
from dynamodb_counters._declarations import flatten
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.night import scaled

ORDER = Event("order", pk="ORDER#{id}", sk="ORDER", version="revision", retention=timedelta(days=2))
VIEW = Event("view", pk="VIEW#{id}", sk="VIEW")
CLICK = Event("click", pk="CLICK#{id}", sk="T#{time}", packed=Packed("time", future_tolerance=None))
TASK = Items("task", where=Attr("kind").eq("task"))

SOURCES = (ORDER, VIEW, CLICK, TASK)
TEAMS = ("red", "blue")

PEOPLE = [
    Aggregate(f"people_of_{one.name}", one, pk="#{team}", sk=f"{one.name}#{{who}}", measures={"n": Count()})
    for one in SOURCES
]
DECLARED: list[Aggregate | Distinct] = [
    *PEOPLE,
    *(
        Aggregate(
            f"teams_of_{one.name}",
            one,
            pk="TEAM#{team}",
            sk=f"{one.name}",
            measures={"n": Count(), "sum": Sum("points"), "mean": Average("points")},
        )
        for one in SOURCES
    ),
    Aggregate("how_often", PEOPLE[0], pk="OFTEN", sk="OFTEN", measures={"people": Histogram("n", at_least=(1, 2))}),
    Distinct("members", ORDER, pk="TEAM#{team}", sk="MEMBERS", member="who"),
    Aggregate("capped", TASK, pk="CAPPED", sk="TEAM#{team}", points=Sum("points", cap=3)),
]
WINDOWS = [Window(f"last_of_{one.name}", one, pk="TEAM#{team}", time="time", future_tolerance=None) for one in SOURCES]
START = datetime(2026, 3, 1, tzinfo=UTC)

_values = st.fixed_dictionaries(
    {
        "team": st.sampled_from(TEAMS),
        "who": st.sampled_from(["ann", "bob"]),
        "points": st.integers(-3, 5) | st.just(Decimal("0.5")),
        "revision": st.integers(1, 3) | st.sampled_from(["1", "2"]),
        "kind": st.sampled_from(["task", "task", "note"]),
    }
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(SOURCES), st.integers(0, 2), _values),
        st.tuples(st.just("write_many"), st.sampled_from(SOURCES), st.integers(0, 2), _values),
        st.tuples(st.just("remove"), st.sampled_from(SOURCES), st.integers(0, 2), _values),
        st.tuples(st.just("expire"), st.none(), st.none(), st.none()),
    ),
    min_size=6,
    max_size=25,
)
_faults = st.sampled_from([None, Faults(crash=0.3, redeliver=0.3, split=0.2)])


_FIRST = {"team": "red", "who": "ann", "points": 1, "revision": 1, "kind": "task"}
_NEXT = {**_FIRST, "team": "blue", "revision": 2}


_TAKEN = {"accepted", "duplicate", "conflict"}
"""Statuses of events that can be counted; of two with one key and no version, the first one stays."""


@settings(max_examples=scaled(6))
@example([("write", source, 0, values) for source in SOURCES for values in (_FIRST, _NEXT, _FIRST)], None, 0)
@given(_steps, _faults, st.integers(0, 99))
def test_evaluate_agrees_with_what_is_counted(steps: list[Any], faults: Faults | None, seed: int) -> None:
    written: list[tuple[Event | Items, dict[str, Any]]] = []
    retracted: set[str] = set()
    era = 0
    with counters_in_memory([*DECLARED, *WINDOWS], now=START, seed=seed, faults=faults) as counters:
        for kind, source, number, values in steps:
            if kind == "expire":
                # An event under another key from now on is no repetition of what has expired.
                counters.clock.advance(timedelta(days=3))
                era += 1
                continue
            item = {**values, "id": f"{era}-{number}", "time": (START + timedelta(minutes=number)).isoformat()}
            if source is TASK:
                item |= {"pk": f"TASK#{number}", "sk": "TASK"}
            if kind == "remove":
                _remove(counters, source, item)
                if source is CLICK:
                    # A packed event is retracted for good.
                    retracted.add(item["id"])
                written = [(other, old) for other, old in written if (other, _key(old)) != (source, _key(item))]
            else:
                several = [item, item] if kind == "write_many" else [item]
                _write(counters, source, several)
                if source is not CLICK or item["id"] not in retracted:
                    written += [(source, one) for one in several]
        _check(counters, written)


def _write(counters: CountersInMemory, source: Event | Items, items: list[dict[str, Any]]) -> None:
    if isinstance(source, Items):
        for item in items:
            counters.table.put_item(Item=item)
    elif len(items) > 1:
        assert {outcome.status for outcome in counters.accept_many(source, items)} <= _TAKEN
    else:
        assert counters.accept(source, items[0]).status in _TAKEN


def _remove(counters: CountersInMemory, source: Event | Items, item: dict[str, Any]) -> None:
    if isinstance(source, Items):
        counters.table.delete_item(Key={"pk": item["pk"], "sk": item["sk"]})
    else:
        counters.retract(source, item)


def _key(item: Mapping[str, Any]) -> str:
    key: str = item.get("pk") or item["id"]
    return key


def _check(counters: CountersInMemory, written: list[tuple[Event | Items, dict[str, Any]]]) -> None:
    found = evaluate([*DECLARED, *WINDOWS], written, now=counters.clock())
    for aggregate in flatten(DECLARED):
        assert isinstance(aggregate, Aggregate)
        groups = {tuple(group.values.items()): group.measures for group in found.get(aggregate.name, ())}
        for values in _groups(aggregate.fields):
            expected = groups.pop(tuple(values.items()), None)
            counted = counters.get(aggregate, values).measures
            assert counted == expected or (expected is None and not any(map(_any, counted.values())))
        assert not groups
    for window in WINDOWS:
        for team in TEAMS:
            days = [
                group.measures["total"]
                for group in found.get(window.name, ())
                if group.values["team"] == team and group.values["tier"] == "H"
            ]
            last = timedelta(days=counters.clock.now.timetuple().tm_yday)
            as_of = counters.clock.now + timedelta(hours=1)
            assert counters.window(window, team=team).last(last, as_of=as_of).count == sum(days)


def _groups(fields: tuple[str, ...]) -> list[dict[str, str]]:
    groups: list[dict[str, str]] = [{}]
    for field in fields:
        groups = [{**group, field: value} for group in groups for value in (TEAMS if field == "team" else _PEOPLE)]
    return groups


_PEOPLE = ("ann", "bob")


def _any(measure: Any) -> bool:
    return any(measure.values()) if isinstance(measure, dict) else bool(measure)


def test_a_group_in_a_page_whose_first_number_is_0_is_seen_by_what_counts_groups() -> None:
    event = Event("sale", key="id")
    sums = Aggregate("sums", event, by="shop", paid=Sum("cents"), n=Count(), pages=True)
    shops = Aggregate("shops", sums, pk="SHOPS", sk="ALL", shops=Count())
    found = evaluate([sums, shops], [(event, {"id": "1", "shop": "a", "cents": 0})])
    assert [dict(group.measures) for group in found["shops"]] == [{"shops": 1}]
