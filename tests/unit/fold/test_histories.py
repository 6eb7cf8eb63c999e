"""The table says what its items say, whatever is declared, whatever happens and however it is delivered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Average, Event, Histogram, Items
from dynamodb_counters._declarations import Declarable
from simulation.oracle.aggregates import Parts, count, text
from tests.unit.fold.strategies import FOREIGN, GAME, NOWHERE, declared, values
from tests.unit.fold.world import World

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
    found: dict[str, Any] = {}
    for name, measure in aggregate.measures.items():
        if isinstance(measure, Average):
            found[name] = parts.get(f"{name}.sum", 0), parts.get(f"{name}.count", 0)
        elif isinstance(measure, Histogram):
            below = [f"<{text(measure.bounds[0])}"] if measure.bounds else []
            bins = [*below, *measure.exactly, *measure.bounds]
            found[name] = {each: parts.get(f"{name}.{text(each)}", 0) for each in bins}
        else:
            found[name] = parts.get(name, 0)
    return found


def _same(found: Any, expected: Any) -> bool:
    if not isinstance(expected, tuple):
        return bool(found == expected)
    total, number = expected
    return bool(found is None if not number else abs(Fraction(found) - Fraction(total) / number) < Fraction(1, 10**36))


def _check(name: str, found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    assert all(_same(found[measure], expected[measure]) for measure in found), (name, found, expected)


@given(declared(), st.lists(_steps, min_size=8, max_size=40), st.randoms(use_true_random=False), st.booleans())
def test_the_table_says_what_its_items_say(
    declarations: list[Declarable], steps: list[Any], chance: random.Random, faults: bool
) -> None:
    world = World(declarations, seed=chance.randint(0, 99), shards=chance.randint(1, 3))
    there: dict[tuple[str, int], Item] = {}
    expired: list[Item] = []
    for kind, place, source, given_values in steps:
        if kind == "deliver":
            world.deliver(chance, faults=faults)
            continue
        key = source.name, place
        if kind == "put":
            there[key] = source, {**given_values, "id": str(place)}
            world.put(*there[key], str(place))
        elif key in there:
            item = there.pop(key)
            getattr(world, kind)(*item, str(place))
            expired += [item] if kind == "expire" else []
    for _ in range(chance.randint(0, 8)):
        world.deliver(chance, faults=faults)
    world.settle()

    for aggregate in world.declarations:
        assert isinstance(aggregate, Aggregate)
        expected = _expected(aggregate, list(there.values()), expired)
        note(f"{aggregate}: {expected}")
        assert world.groups(aggregate) >= expected.keys()
        nothing = {field: NOWHERE.get(field, "nowhere") for field in aggregate.fields}
        zeros = world.measures(aggregate, **nothing)
        for group in world.groups(aggregate):
            found = world.measures(aggregate, **dict(zip(aggregate.fields, group, strict=True)))
            if group in expected:
                _check(aggregate.name, found, expected[group])
            else:
                assert found == zeros
