"""Generations: a changed definition is counted into items of its own, next to those of the one before. Pure.

Generation n of ``views`` is an ordinary declaration, ``views~n``. Its sort keys end in ``##~n``: values in keys are
never empty, so no value of another declaration renders such a key. A window has its name in its keys already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window

Declared = TypeVar("Declared", bound=Aggregate | Window)


def base_name(name: str) -> str:
    """The name that users declare: ``views`` of ``views~3``."""
    return name.partition("~")[0]


def generation_number(name: str) -> int:
    """Which generation has a name: 3 of ``views~3``, 0 of ``views``."""
    number = name.partition("~")[2]
    return int(number) if number.isdecimal() else 0


def read_name(name: str, reads: Mapping[str, int]) -> str:
    """The name of the generation that readers use."""
    number = reads.get(base_name(name), 0)
    return f"{name}~{number}" if number else name


def with_below(declaration: Aggregate | Window) -> Iterator[Aggregate | Window]:
    """A declaration, the aggregate whose groups it counts, and so on down."""
    yield declaration
    if isinstance(declaration.source, Aggregate):
        yield from with_below(declaration.source)


def root_of(declaration: Aggregate | Window) -> Event | Items:
    """The source below all aggregates."""
    source = declaration.source
    return root_of(source) if isinstance(source, Aggregate) else source


def is_replaced(name: str, folded: Collection[str]) -> bool:
    """Whether a later generation has taken a name's place, so that it is not counted or read any more."""
    # Entries that wait for it in quarantine are settled: the later one has counted it, or keeps an entry of its own.
    of_same = (each for each in folded if base_name(each) == base_name(name))
    return name not in folded and any(generation_number(each) > generation_number(name) for each in of_same)


def definition(declaration: Declared) -> Declared:
    """A declaration without its `on_change`, nor that of its sources."""
    source: Any = declaration.source
    below: Any = definition(source) if isinstance(source, Aggregate) else source
    if declaration.on_change == "backfill" and below is source:
        return declaration
    return replace(declaration, source=below, on_change="backfill")


def generation(
    declaration: Declared, number: int, source: Event | Items | Aggregate | None = None, carries: Declared | None = None
) -> Declared:
    """The declaration of a generation, 0 for the definition itself, over another `source` if given."""
    # It `carries` the tallies of the generation that readers used when it was opened.
    defined = definition(declaration)
    name, before = base_name(defined.name), generation_number(defined.name)
    if number == before and source is None and carries == defined._carries:
        return defined
    changed: dict[str, Any] = {"name": f"{name}~{number}" if number else name, "_carries": carries}
    if source is not None:
        changed["source"] = source
    if isinstance(defined, Aggregate):
        changed["sk"] = _marked(defined.sk, before, number)
        if defined.ranking is not None:
            leaderboard = _marked(defined.ranking.leaderboard, before, number)
            changed["ranking"] = replace(defined.ranking, leaderboard=leaderboard)
    return replace(defined, **changed)


def carried(after: Aggregate | Window, before: Aggregate | Window) -> frozenset[str]:
    """The attributes of an aggregate, or the tiers of a window, whose tallies have a place in the next generation."""
    # Tallies of groups with more fields add up; those of groups with fewer cannot be taken apart.
    if not set(after.fields) <= set(before.fields):
        return frozenset()
    if isinstance(after, Aggregate) and isinstance(before, Aggregate):
        old = {name: measure._attributes(name) for name, measure in before.measures.items()}
        new = {name: measure._attributes(name) for name, measure in after.measures.items()}
        return frozenset(attribute for name, each in new.items() if old.get(name) == each for attribute in each)
    if isinstance(after, Window) and isinstance(before, Window) and type(after.measure) is type(before.measure):
        return frozenset(tier.letter for tier in after._kept_tiers if tier in before._kept_tiers)
    return frozenset()


def left_behind(after: Aggregate | Window, before: Aggregate | Window) -> list[str]:
    """The measures of an aggregate, or the tiers of a window, that both have, and whose tallies have no place."""
    kept = carried(after, before)
    if isinstance(after, Aggregate) and isinstance(before, Aggregate):
        both = [name for name in after.measures if name in before.measures]
        return [name for name in both if not kept.issuperset(after.measures[name]._attributes(name))]
    if isinstance(after, Window) and isinstance(before, Window):
        return [tier.name for tier in after._kept_tiers if tier.letter not in kept]
    return []


def _marked(template: str, before: int, number: int) -> str:
    plain = template.removesuffix(f"##~{before}") if before else template
    return f"{plain}##~{number}" if number else plain
