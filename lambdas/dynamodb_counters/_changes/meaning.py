"""Whether two definitions count the same, and what a table's deployments have ever folded. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration, share_items
from dynamodb_counters._declarations.generations import base_name, generation, generation_number
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window

_LIMITS: Final = {"_thresholds", "max_groups", "late", "future_tolerance", "precision", "longest"}
"""Settings that change nothing about what is counted as long as the rest is the same."""


def same_meaning(one: Declaration, two: Declaration, *, limits: bool = False) -> bool:
    """Whether two definitions count the same, whatever they are called; with `limits`, also within the same limits."""
    # Their sources are compared by name, `Items` by their keys and their condition.
    return bool(_meaning(one, limits=limits) == _meaning(two, limits=limits))


def fingerprint(declaration: Declaration) -> str:
    """A short text, the same for definitions that count the same within the same limits, whatever watches them."""
    unwatched = replace(declaration, _thresholds=()) if isinstance(declaration, Aggregate) else declaration
    text = json.dumps(_meaning(unwatched, limits=True), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same_items(one: Items, two: Items) -> bool:
    """Whether two sources are the same items, whatever they are called."""
    return bool(_items(one) == _items(two))


def _items(source: Items) -> Any:
    return _plain((source.where, source.pk, source.sk, source._table_keys))


def _meaning(declaration: Declaration, *, limits: bool) -> Any:
    plain = generation(declaration, 0)
    skipped = {"name", "source", "on_change", "_carries", "tiers", *(() if limits else _LIMITS)}
    # Without defaults: an argument that a later version adds changes the meaning of nothing.
    told = [(each, getattr(plain, each.name)) for each in fields(plain) if each.name not in skipped]
    parts = {each.name: _plain(value) for each, value in told if value != each.default}
    if isinstance(plain, Window):
        parts["tiers"] = tuple(tier.name for tier in plain._kept_tiers)
    source = plain.source
    seen = _items(source) if isinstance(source, Items) else base_name(source.name)
    return type(plain).__name__, parts, type(source).__name__, seen


def _plain(value: Any) -> Any:
    """A value to compare by: True is not 1 here, and the order of measures does not matter."""
    if is_dataclass(value):
        return type(value).__name__, *(_plain(getattr(value, each.name)) for each in fields(value) if each.init)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return (bool, value) if isinstance(value, bool) else value


@dataclass(frozen=True, slots=True)
class Past:
    """The deployments that a table has stored, of which those that cannot be read are None."""

    deployments: tuple[tuple[Declaration, ...] | None, ...] = ()
    numbered: int = 0
    """The last generation's number, as far as the table shows."""

    @property
    def last_number(self) -> int:
        """No generation has a greater number."""
        return max([self.numbered, *(generation_number(each.name) for each in self._declarations())])

    def number(self, declared: Declaration, looks_at: str, *, keeps: bool) -> int:
        """The generation in which a declaration begins that is new to the table and `looks_at` an aggregate, or ""."""
        # Items outlive their declaration. One that comes back as it was begins in its own items; one whose keys and
        # name no declaration ever had, as declared; and any other in a generation of its own.
        own = [each for each in self._declarations() if base_name(each.name) == declared.name]
        last = self._last_alone(declared.name)
        held = [each for each in own if generation_number(each.name) == last]
        is_back = all(same_meaning(each, declared) for each in held) and (
            not looks_at or any(each.source.name == looks_at for each in held)
        )
        goes_on = not own or keeps or is_back
        if None in self.deployments or not goes_on or self.is_taken(generation(declared, last)):
            return self.last_number + 1
        return last

    def is_taken(self, declared: Declaration) -> bool:
        """Whether there may be items of another declaration, or of an event, that have its keys or its name."""
        name = base_name(declared.name)
        for other in self._declarations():
            source = other.source
            if isinstance(source, Event) and (source.name == name or share_items(source, declared)):
                return True
            if base_name(other.name) != name and share_items(other, declared):
                return True
        return False

    def _declarations(self) -> Iterable[Declaration]:
        return (each for declarations in self.deployments for each in declarations or ())

    def _last_alone(self, name: str) -> int:
        """The last generation of a name that was counted without another: as a backfill counts."""
        found = [0]
        for declarations in self.deployments:
            numbers = [generation_number(each.name) for each in declarations or () if base_name(each.name) == name]
            found += numbers if len(numbers) == 1 else []
        return max(found)
