"""Whether two definitions count the same. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.generations import base_name, generation
from dynamodb_counters._declarations.sources import Items
from dynamodb_counters._declarations.windows import Window

_LIMITS: Final = {"max_groups", "late", "future_tolerance", "precision", "longest"}
"""Settings that change nothing about what is counted as long as the rest is the same."""


def same_meaning(one: Declaration, two: Declaration, *, limits: bool = False) -> bool:
    """Whether two definitions count the same, whatever they are called; with `limits`, also within the same limits.

    Their sources are compared by name, `Items` by their keys and their condition.
    """
    return bool(_meaning(one, limits=limits) == _meaning(two, limits=limits))


def fingerprint(declaration: Declaration) -> str:
    """A short text, the same for definitions that count the same within the same limits."""
    text = json.dumps(_meaning(declaration, limits=True), sort_keys=True, default=str)
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
