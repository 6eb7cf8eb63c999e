"""Definitions: what a declaration counts, without what may change freely; and whether two are the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window

Declared = TypeVar("Declared", bound=Aggregate | Window)


def definition(declaration: Declared) -> Declared:
    """The declaration without its thresholds, and without what its event only asks of writers."""
    source: Any = declaration.source
    if isinstance(source, Event):
        # Chunks are laid out by their retention.
        kept = source.retention if source.packed is not None else None
        source = replace(source, retention=kept, attributes=None)
    elif isinstance(source, Aggregate):
        source = definition(source)
    changed: dict[str, Any] = {} if source == declaration.source else {"source": source}
    if isinstance(declaration, Aggregate) and declaration._thresholds:
        changed["_thresholds"] = ()
    return replace(declaration, **changed) if changed else declaration


def same_definition(one: Aggregate | Window, two: Aggregate | Window) -> bool:
    """Whether two declarations count the same in the same items; the order of measures does not matter."""
    return one is two or bool(_meaning(one) == _meaning(two))


def _meaning(declaration: Aggregate | Window) -> Any:
    # Without defaults: an argument that a later version adds changes the meaning of nothing.
    values = [(each, getattr(declaration, each.name)) for each in fields(declaration)]
    parts = {
        each.name: _plain(value)
        for each, value in values
        if value != each.default and each.name not in ("source", "_thresholds")
    }
    source = declaration.source
    if isinstance(source, Items):
        return parts, _plain((source.name, source.where, source.pk, source.sk, source._table_keys))
    return parts, source.name if not isinstance(source, Aggregate) else _meaning(source)


def _plain(value: Any) -> Any:
    """A value to compare by: True is not 1 here, and the order of measures does not matter."""
    if is_dataclass(value):
        return type(value).__name__, *(_plain(getattr(value, each.name)) for each in fields(value) if each.init)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return (bool, value) if isinstance(value, bool) else value
