"""Random declarations, up to three deep, and random items for them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Attr, Average, Condition, Count, Distinct, Event, Histogram, Items, Sum
from dynamodb_counters._declarations import Declarable
from simulation.oracle.aggregates import attributes, fields

Source = Event | Items

GAME = Event("game", pk="GAME#{id}", sk="GAME")
FOREIGN = Items("foreign", where=Attr("kind").eq("game"))

_PAIRS = [("team", "member"), ("tags[]", "member"), ("code:class", "plan?none"), ("tags[]", "place.zip:class?unknown")]
_GROUPS = [(), ("member",), ("team",), ("tags[]",), ("place.city",), ("points",), *_PAIRS]
NOWHERE = {"code:class": "8xx", "place.zip:class?unknown": "9xx"}
"""Texts of derived fields that no item has."""
_TEXTS = ("team", "place.city", "member")
_POINTS = ("points",)
_BINS = [(1,), (1, 2, 3), (-1, 0, Decimal("0.5"), 4), (2, 5, 12), (0,)]

values = st.fixed_dictionaries(
    {
        "member": st.sampled_from(["ann", "bob", "c#%d", ""]),
        "team": st.sampled_from(["red", "blue"]),
        "points": st.one_of(st.integers(-3, 14), st.sampled_from([Decimal("0.5"), Decimal("-1.25"), Decimal("12.0")])),
        "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=4),
        "place": st.fixed_dictionaries(
            {"city": st.sampled_from(["Oslo", "Rome"])}, optional={"zip": st.sampled_from([None, 100, 199, 500])}
        ),
        "kind": st.sampled_from(["game", "game", "other"]),
        "code": st.sampled_from([100, 200, 299, Decimal("404"), 999]),
    },
    optional={"plan": st.sampled_from([None, "pro", "none"]), "bonus": st.sampled_from([None, 0, 2])},
)
"""Attributes of an item."""


@st.composite
def declared(draw: st.DrawFn) -> list[Declarable]:
    """Make aggregates over items, over those, and over those; perhaps a distinct count and levels."""
    levels: list[list[Aggregate]] = [[]]
    for number in range(draw(st.integers(1, 2))):
        source = draw(st.sampled_from([GAME, FOREIGN]))
        levels[0].append(_aggregate(draw, f"one-{number}", source, draw(st.sampled_from(_GROUPS)), ["points"]))
    for name in ("two", "three")[: draw(st.integers(0, 2))]:
        below = levels[-1]
        levels.append([])
        for number in range(draw(st.integers(1, 2))):
            under = draw(st.sampled_from(below))
            group = draw(st.lists(st.sampled_from(fields(under)), unique=True)) if fields(under) else []
            levels[-1].append(_aggregate(draw, f"{name}-{number}", under, group, attributes(under)))
    used = {part.source.name for level in levels for part in level}
    declarations: list[Declarable] = [
        replace(part, write_shards=draw(st.integers(1, 3))) if part.name not in used else part
        for level in levels
        for part in level
    ]
    if draw(st.booleans()):
        declarations.append(_distinct(draw))
    if draw(st.booleans()):
        declarations += _levels(draw)
    return draw(st.permutations(declarations))


def _aggregate(draw: st.DrawFn, name: str, source: Any, group: Any, numbers: list[str]) -> Aggregate:
    pk, *sk = [f"#{{{field}}}" for field in group] or [""]
    return Aggregate(
        name,
        source,
        pk=f"{name}{pk}",
        sk=f"S{''.join(sk)}",
        measures=draw(_measures(tuple(numbers))),
        where=draw(_conditions(tuple(fields(source)) if isinstance(source, Aggregate) else _TEXTS, tuple(numbers))),
        on_expiry=draw(st.sampled_from(["keep", "subtract"])),
    )


# Cached: Hypothesis spends more time on new strategies than on drawing from them.
@cache
def _measures(numbers: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    number, bins = st.sampled_from(numbers), st.sampled_from(_BINS)
    measure = st.one_of(
        st.just(Count()),
        st.builds(Sum, number, cap=st.sampled_from([None, 3, Decimal("0.75"), -1])),
        st.builds(Average, number),
        st.builds(Histogram, number, exactly=bins),
        st.builds(Histogram, number, bounds=bins),
    )
    if numbers == _POINTS:
        bonus, default = st.just("bonus"), st.sampled_from([0, 1, Decimal("0.5")])
        measure |= st.builds(Sum, bonus, default=default) | st.builds(Average, bonus, default=default)
    return st.dictionaries(st.sampled_from("uvw"), measure, min_size=1)


@cache
def _conditions(texts: tuple[str, ...], numbers: tuple[str, ...]) -> st.SearchStrategy[Condition | None]:
    sign = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    tests = st.builds(lambda name, s, n: getattr(Attr(name), s)(n), st.sampled_from(numbers), sign, st.integers(-1, 5))
    if texts:
        named = st.sampled_from(texts)
        tests |= st.builds(lambda name, s: getattr(Attr(name), s)("blue"), named, sign)
        tests |= st.builds(lambda name: Attr(name).exists(), named)
    return st.none() | st.recursive(
        tests,
        lambda part: (
            st.builds(Condition.__and__, part, part) | st.builds(Condition.__or__, part, part) | part.map(lambda c: ~c)
        ),
        max_leaves=3,
    )


_sources: st.SearchStrategy[Source] = st.sampled_from([GAME, FOREIGN])


def _distinct(draw: st.DrawFn) -> Distinct:
    return Distinct(
        "distinct",
        draw(_sources),
        pk=draw(st.sampled_from(["DISTINCT", "DISTINCT#{team}", "DISTINCT#{plan?none}"])),
        sk=draw(st.sampled_from(["WHO", "WHO#{place.city}"])),
        member=draw(st.sampled_from(["member", "tags[]", "code:class"])),
        on_expiry=draw(st.sampled_from(["keep", "subtract"])),
    )


def _levels(draw: st.DrawFn) -> list[Aggregate]:
    source = draw(_sources)
    on_expiry: Any = draw(st.sampled_from(["keep", "subtract"]))
    levels = ("ALL", "CITY#{place.city}", "CITY#{place.city}#TAG#{tags[]}", "CODE#{code:class}")
    level = Aggregate("level", source, pk="LEVELS#{team}", sk="ALL", n=Count(), points=Average("points"))
    return [replace(level, name=f"level-{n}", sk=sk, on_expiry=on_expiry) for n, sk in enumerate(levels)]
