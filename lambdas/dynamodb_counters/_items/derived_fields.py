"""Derived fields: texts that a field of a group makes of an attribute, as the marks after its path say. Pure.

``at:day`` is the day of a time, ``status:class`` the class of a number such as 2xx, ``ms:100,1000`` its range;
``plan?none`` says which text stands for an attribute that is missing or null.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from dynamodb_counters._items.decimals import Number, format_number, parse_number
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._timeline.tiers import BY_NAME, Tier
from dynamodb_counters.errors import MalformedImageError

LIST_MARK: Final = "[]"
DERIVED_MARK: Final = ":"
DEFAULT_MARK: Final = "?"

_EXAMPLE: Final = 1_795_132_800


@dataclass(frozen=True, slots=True)
class Derivation:
    """The text of a typed value, whether it can be some text, and which ones it can be, in words."""

    text: Callable[[Mapping[str, Any]], str]
    makes: Callable[[str], bool]
    words: str
    tier: Tier | None = None
    """The unit that a time is rounded down to; None where the value is a number."""


def parts_of(field: str) -> tuple[str, str, str | None]:
    """The path of a field, the name of its derivation or "", and its default.

    >>> parts_of("address.city"), parts_of("at:day?never")
    (('address.city', '', None), ('at', 'day', 'never'))
    """
    marked, is_defaulted, default = field.partition(DEFAULT_MARK)
    path, _, derived = marked.partition(DERIVED_MARK)
    return path, derived, default if is_defaulted else None


def is_plain(field: str) -> bool:
    """Whether a field is an attribute of the item as it is."""
    return not any(mark in field for mark in (".", LIST_MARK, DERIVED_MARK, DEFAULT_MARK))


def tier_of(field: str) -> Tier | None:
    """The unit of the time that a field always is.

    >>> tier_of("at:day") is BY_NAME["day"], tier_of("at:day?never"), tier_of("status:class")
    (True, None, None)
    """
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
        return _of_number(range(100, 1001, 100), ("", *(f"{first}xx" for first in range(1, 10)), ""))
    try:
        bounds = [parse_number(bound) for bound in name.split(",")]
    except ValueError:
        return None
    texts = [format_number(bound) for bound in bounds]
    if ",".join(texts) != name or bounds[0] < 0 or any(low >= high for low, high in pairwise(bounds)):
        return None
    # Padded before the point, so that the order of texts is that of numbers.
    wholes = [len(text.partition(".")[0]) for text in texts]
    edges = ["0" * (max(wholes) - whole) + text for whole, text in zip(wholes, texts, strict=True)]
    return _of_number(bounds, [f"..{edges[0]}", *(f"{low}..{high}" for low, high in pairwise(edges)), f"{edges[-1]}.."])


def _of_time(tier: Tier) -> Derivation:
    def text(value: Mapping[str, Any]) -> str:
        return tier.text(tier.locate(event_seconds(value))[0])

    def makes(text: str) -> bool:
        try:
            return tier.text(tier.parse(text)) == text
        except (ValueError, OverflowError):
            return False

    return Derivation(text, makes, f"a UTC time to the {tier.name} such as {text({'N': str(_EXAMPLE)})!r}", tier)


def _of_number(bounds: Sequence[Number], texts: Sequence[str]) -> Derivation:
    """The text below the first bound, and from each one on."""
    words = f"one of {', '.join(repr(text) for text in texts if text)}"

    def text(value: Mapping[str, Any]) -> str:
        found = texts[bisect_right(bounds, parse_number(value["N"]))] if "N" in value else ""
        if not found:
            raise MalformedImageError(f"{dict(value)!r:.80} is no number that is {words}")
        return found

    return Derivation(text, lambda text: text != "" and text in texts, words)
