"""The table says what its items say, whatever is declared, whatever happens and however it is delivered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Average, Count, Distinct, Event, Histogram, Items, Sum, Window
from dynamodb_counters._declarations import Declarable, flatten
from dynamodb_counters._declarations.groups import values_of
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._writes.accept import typed_item
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import CountersInMemory, Faults, counters_in_memory
from simulation.oracle.aggregates import Parts, count, text
from tests.unit.fold.strategies import FOREIGN, GAME, NOWHERE, declared, values
from tests.unit.fold.streams import NOW

Item = tuple[Event | Items, dict[str, Any]]

# Few, so that most steps meet an item that is there.
_PLACES = st.integers(0, 2)

_steps = st.one_of(
    st.tuples(st.just("put"), _PLACES, st.sampled_from([GAME, FOREIGN]), values),
    st.tuples(st.just("delete"), _PLACES, st.sampled_from([GAME, FOREIGN]), st.none()),
    st.tuples(st.just("expire"), _PLACES, st.sampled_from([GAME, FOREIGN]), st.none()),
    st.tuples(st.just("deliver"), st.none(), st.none(), st.none()),
)


def _expected(aggregate: Aggregate, live: Sequence[Item], expired: Sequence[Item]) -> dict[Any, Any]:
    groups = count(aggregate, live, expired)
    return {group: _measures(aggregate, parts) for group, parts in groups.items() if any(parts.values())}


def _measures(aggregate: Aggregate, parts: Parts) -> dict[str, Any]:
    """Parts as they are read."""
    result: dict[str, Any] = {}
    for name, measure in aggregate.measures.items():
        if isinstance(measure, Average):
            result[name] = parts.get(f"{name}.sum", 0), parts.get(f"{name}.count", 0)
        elif isinstance(measure, Histogram):
            below = [f"<{text(measure.bounds[0])}"] if measure.bounds else []
            bins = [*below, *measure.exactly, *measure.bounds]
            result[name] = {label: parts.get(f"{name}.{text(label)}", 0) for label in bins}
        else:
            result[name] = parts.get(name, 0)
    return result


def _same(value: Any, expected: Any) -> bool:
    if not isinstance(expected, tuple):
        return bool(value == expected)
    total, number = expected
    return bool(value is None if not number else abs(Fraction(value) - Fraction(total) / number) < Fraction(1, 10**36))


def _check(name: str, actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    assert all(_same(actual[measure], expected[measure]) for measure in actual), (name, actual, expected)


def _groups(counters: CountersInMemory, aggregate: Aggregate) -> set[tuple[str, ...]]:
    """All groups that have an item."""
    items = [item for item in counters._tables[0].items() if item.get("_type") == {"S": aggregate.name}]
    groups = [values_of(aggregate, item) for item in items]
    return {tuple(values[name] for name in aggregate.fields) for values in groups if values is not None}


def _stored(place: int, source: Event | Items, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return an event, or an item of other code with a key of its own."""
    if isinstance(source, Event):
        return typed_item(source, attributes)
    return {**typed_item(None, attributes), "pk": {"S": f"FOREIGN#{place}"}, "sk": {"S": "ITEM"}}


@given(declared(), st.lists(_steps, min_size=8, max_size=40), st.integers(0, 99), st.booleans())
def test_the_table_says_what_its_items_say(
    declarations: list[Declarable], steps: list[Any], seed: int, crashes: bool
) -> None:
    faults = Faults(redeliver=0.3, crash=0.3 if crashes else 0, split=0.1)
    with counters_in_memory(declarations, seed=seed, faults=faults) as counters:
        _compare(counters, declarations, steps)


def _compare(counters: CountersInMemory, declarations: list[Declarable], steps: list[Any]) -> None:
    # What this client writes waits for the next delivery.
    table, name = counters._memory.tables["counters"], counters.table_name
    there: dict[tuple[str, int], Item] = {}
    expired: list[Item] = []
    for kind, place, source, attributes in steps:
        if kind == "deliver":
            counters._catch_up()
            continue
        key = source.name, place
        if kind == "put":
            there[key] = source, {**attributes, "id": str(place)}
            counters._memory.put_item(TableName=name, Item=_stored(place, *there[key]))
        elif key in there:
            item = there.pop(key)
            stored = _stored(place, *item)
            if kind == "expire":
                due = {"ttl": {"N": str(int(counters.clock()))}}
                counters._memory.put_item(TableName=name, Item=stored | due)
                assert len(table.expire(counters.clock())) == 1
                expired.append(item)
            else:
                counters._memory.delete_item(TableName=name, Key={part: stored[part] for part in ("pk", "sk")})
    counters._catch_up()

    for aggregate in flatten(declarations):
        assert isinstance(aggregate, Aggregate)
        expected = _expected(aggregate, list(there.values()), expired)
        note(f"{aggregate}: {expected}")
        groups = _groups(counters, aggregate)
        assert groups >= expected.keys()
        zeros = counters.get(aggregate, {field: NOWHERE.get(field, "nowhere") for field in aggregate.fields}).measures
        for group in groups:
            measures = counters.get(aggregate, dict(zip(aggregate.fields, group, strict=True))).measures
            if group in expected:
                _check(aggregate.name, dict(measures), expected[group])
            else:
                assert measures == zeros


# The door refuses exactly what the fold would quarantine, so that strangers cannot fill the quarantine


_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_DECLARATIONS = flatten(
    (
        Aggregate("by", _VIEW, pk="URL#{url}", sk="S", measures={"n": Count(), "b": Sum("bytes", cap=1000)}),
        Aggregate("daily", _VIEW, pk="DAY#{at:day}", sk="S", measures={"mean": Average("bytes")}),
        Aggregate("tagged", _VIEW, pk="TAG#{tags[]}", sk="U#{url}", measures={"n": Count()}, max_groups=3),
        Aggregate("sizes", _VIEW, h=Histogram("bytes", bounds=(1, 10)), where=Attr("bytes").gt(0)),
        Window("recent", _VIEW, pk="URL#{place.city}", time="at", retention=timedelta(days=7), late="quarantine"),
        Window("kept", _VIEW, pk="ALL", time="at", retention=timedelta(days=7), future_tolerance=None),
        Distinct("visitors", _VIEW, pk="URL#{url}", sk="V", member="id"),
    )
)
_DOOR_PLAN = Plan(_DECLARATIONS)
_GOOD: dict[str, Any] = {"url": "/", "id": "1", "at": NOW, "bytes": 5, "tags": ["a", "b"], "place": {"city": "Oslo"}}

_LIMITS = ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+01:00"]
_TEXT_TIMES = [str(NOW), "2026-09-21T14:13:20Z", "2026-19-39T29:59:59Z", "2026-09-21", *_LIMITS]
_TIMES = st.sampled_from([NOW, NOW * 1000, NOW + 901, NOW - 8 * 86_400, 10**15, *_TEXT_TIMES])
_NUMBERS = st.sampled_from([0, -1, 5, Decimal("0.5"), 10**37, Decimal("9.9E+125"), Decimal("1E-130")])
_TEXTS = st.sampled_from(["", "/", "x" * 9000, "ä" * 4200, "#%"]) | st.text(max_size=5)
_ANY = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS | _TIMES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["city", "x"]), inner, max_size=2),
    max_leaves=6,
)
_EVENTS = st.fixed_dictionaries(
    {"url": _TEXTS, "id": _TEXTS},
    optional={
        "at": _TIMES | _ANY,
        "bytes": _NUMBERS | _ANY,
        "tags": st.lists(_TEXTS | _ANY, max_size=5) | _ANY,
        "place": st.fixed_dictionaries({"city": _TEXTS | _ANY}) | _ANY,
    },
)


@given(st.just({}) | _EVENTS, _EVENTS)
def test_the_door_refuses_exactly_what_the_fold_would_quarantine(some: dict[str, Any], more: dict[str, Any]) -> None:
    # Mostly well formed, so that one attribute at a time decides.
    for event in ({**_GOOD, **some}, more, *({**_GOOD, name: value} for name, value in more.items())):
        try:
            item = typed_item(_VIEW, event)
        except InvalidArgumentError:
            continue
        folded = fold(_DOOR_PLAN, changes_of([inserted(item, NOW)]))
        assert (_DOOR_PLAN.refusal(item, NOW) is None) == (folded.invalid == [])
