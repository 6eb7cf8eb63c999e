"""Derived fields: texts that a field of a group makes of an attribute, as the marks after its path say. Pure.

``at:day`` is the day of a time, ``status:class`` the class of a number such as 2xx, ``ms:100,1000`` its range;
``plan?none`` says which text stands for an attribute that is missing or null.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from dynamodb_counters._items.decimals import Number, format_number, parse_number
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._timeline.tiers import BY_NAME, Tier
from dynamodb_counters.errors import MalformedImageError

DERIVED_MARK: Final = ":"
DEFAULT_MARK: Final = "?"


class Derivation(NamedTuple):
    """The text of a typed value, whether it can be some text, and which ones it can be, in words."""

    text: Callable[[Mapping[str, Any]], str]
    makes: Callable[[str], bool]
    words: str


def parts_of(field: str) -> tuple[str, str, str | None]:
    """The path of a field, the name of its derivation or "", and its default.

    >>> parts_of("address.city"), parts_of("at:day?never")
    (('address.city', '', None), ('at', 'day', 'never'))
    """
    marked, is_defaulted, default = field.partition(DEFAULT_MARK)
    path, _, derived = marked.partition(DERIVED_MARK)
    return path, derived, default if is_defaulted else None


def tier_of(field: str) -> Tier | None:
    """The unit of the time that a field is, unless it has a default."""
    _, derived, default = parts_of(field)
    return BY_NAME.get(derived) if default is None else None


def expected_text(field: str, text: str) -> str | None:
    """The texts that a derived field can be, in words, if this is none of them; else None, as for other fields.

    >>> expected_text("at:day", "2026-11-20"), expected_text("ms:5,50", "7")
    (None, "one of '..05', '05..50', '50..'")
    """
    _, derived, default = parts_of(field)
    found = derivation(derived)
    if found is None or text == default or found.makes(text):
        return None
    return found.words if default is None else f"{found.words}, or {default!r}"


@lru_cache(maxsize=1024)
def derivation(name: str) -> Derivation | None:
    """The derivation of a name, or of bounds; None if there is none."""
    if name in BY_NAME:
        return _of_time(BY_NAME[name])
    if name == "class":
        return _of_number(range(100, 1001, 100), ["", *(f"{first}xx" for first in range(1, 10)), ""])
    try:
        bounds = [parse_number(bound) for bound in name.split(",")]
    except ValueError:
        return None
    if ",".join(map(format_number, bounds)) != name or bounds[0] < 0 or any(a >= b for a, b in pairwise(bounds)):
        return None
    # Padded before the point, so that the order of texts is that of numbers.
    width = len(str(int(bounds[-1])))
    edges = ["0" * (width - len(str(int(bound)))) + format_number(bound) for bound in bounds]
    return _of_number(bounds, [f"..{edges[0]}", *map("..".join, pairwise(edges)), f"{edges[-1]}.."])


def _of_time(tier: Tier) -> Derivation:
    def text(value: Mapping[str, Any]) -> str:
        return tier.text(tier.locate(event_seconds(value))[0])

    return Derivation(text, tier.has, f"a UTC {tier.name} such as {'2026-11-20T00:00'[: len(tier.text(0))]!r}")


def _of_number(bounds: Sequence[Number], texts: list[str]) -> Derivation:
    """The text below the first bound, and from each one on; "" where there is none."""
    words = f"one of {', '.join(map(repr, filter(None, texts)))}"

    def text(value: Mapping[str, Any]) -> str:
        found = texts[bisect_right(bounds, parse_number(value["N"]))] if "N" in value else ""
        if not found:
            raise MalformedImageError(f"{dict(value)!r:.80} is no number that is {words}")
        return found

    return Derivation(text, [*filter(None, texts)].__contains__, words)
