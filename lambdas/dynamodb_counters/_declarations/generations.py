"""Generations: a changed definition is counted into items of its own, beside those of the one before. Pure.

Generation n of ``views`` is an ordinary declaration, ``views~n``. Its sort keys end in ``##~n``: values in keys are
never empty, so no value of another declaration renders such a key. A window has its name in its keys already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window

Declared = TypeVar("Declared", bound=Aggregate | Window)


def base_name(name: str) -> str:
    """The name that users declare.

    >>> base_name("views~3"), base_name("views")
    ('views', 'views')
    """
    return name.partition("~")[0]


def generation_number(name: str) -> int:
    """Which generation has a name.

    >>> generation_number("views~3"), generation_number("views")
    (3, 0)
    """
    number = name.partition("~")[2]
    return int(number) if number.isdecimal() else 0


def definition(declaration: Declared) -> Declared:
    """A declaration without its `on_change`, nor that of its sources."""
    source: Any = declaration.source
    below: Any = definition(source) if isinstance(source, Aggregate) else source
    if declaration.on_change == "backfill" and below is source:
        return declaration
    return replace(declaration, source=below, on_change="backfill")


def generation(declaration: Declared, number: int, source: Event | Items | Aggregate | None = None) -> Declared:
    """The declaration of a generation, over another `source` if given; number 0 is the definition itself."""
    defined = definition(declaration)
    name, before = base_name(defined.name), generation_number(defined.name)
    changed: dict[str, Any] = {"name": f"{name}~{number}" if number else name}
    if source is not None:
        changed["source"] = source
    if isinstance(defined, Aggregate):
        changed["sk"] = _marked(defined.sk, before, number)
        if defined.ranking is not None:
            leaderboard = _marked(defined.ranking.leaderboard, before, number)
            changed["ranking"] = replace(defined.ranking, leaderboard=leaderboard)
    return replace(defined, **changed)


def _marked(template: str, before: int, number: int) -> str:
    plain = template.removesuffix(f"##~{before}") if before else template
    return f"{plain}##~{number}" if number else plain
