"""Derived fields: texts that a field of a group makes of an attribute, as the marks after its path say. Pure.

``at:day`` is the day of a time and ``at:15m`` its quarter of an hour, ``status:class`` the class of a number such as
2xx, ``ms:100,1000`` its range, ``ms:log0.01`` its bin, ``ms:order`` a text in its order; ``plan?none`` says which text
stands for an attribute that is missing or null.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, DecimalException
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from dynamodb_counters._items.conversions import value_text
from dynamodb_counters._items.decimals import Number, format_number, parse_number
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.log_bins import LEAST_ERROR, MOST_ERROR, is_bin, log_bins
from dynamodb_counters._items.ordered_texts import is_ordered_text, ordered_text
from dynamodb_counters._timeline.tiers import BY_NAME, DAYS, HOURS, MINUTES, Tier
from dynamodb_counters.errors import MalformedImageError

DERIVED_MARK: Final = ":"
DEFAULT_MARK: Final = "?"

ORDER: Final = "order"
"""The derivation of a text that is in the order of numbers or times."""

LOG: Final = "log"
"""Begins the derivation of a bin, which its relative error ends."""

_STRETCHED: Final = {"m": MINUTES, "h": HOURS, "d": DAYS}
_STRETCH: Final = re.compile(r"([1-9]\d{0,3})([mhd])", re.ASCII)


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


def is_time(derived: str) -> bool:
    """Whether a derivation is a unit of a time."""
    return derived in BY_NAME or _STRETCH.fullmatch(derived) is not None


def tier_of(field: str) -> Tier | None:
    """The unit of the time that a field is, unless it has a default."""
    _, derived, default = parts_of(field)
    return BY_NAME.get(derived) if default is None else None


def expected_text(field: str, text: str) -> str | None:
    """The texts that a derived field can be, in words, if this is none of them; else None, as for other fields."""
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
    if (stretch := _STRETCH.fullmatch(name)) is not None:
        return _of_time(_STRETCHED[stretch[2]], int(stretch[1]))
    if name == ORDER:
        return Derivation(ordered_text, is_ordered_text, "a text in the order of numbers or times, such as 'p13112'")
    if name == "class":
        return _of_number(range(100, 1001, 100), ["", *(f"{first}xx" for first in range(1, 10)), ""])
    return _of_bins(name.removeprefix(LOG)) if name.startswith(LOG) else _of_bounds(name)


def _of_bounds(name: str) -> Derivation | None:
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


def _of_time(tier: Tier, units: int = 1) -> Derivation:
    """So many units of time, counted from 1970 on; named like the unit that it begins with."""
    start, words = tier.text(0), f"the start of {units} UTC {tier.name}s"
    if units == 1:
        start, words = "2026-11-20T00:00"[: len(start)], f"a UTC {tier.name}"

    def text(value: Mapping[str, Any]) -> str:
        return tier.text(tier.locate(event_seconds(value))[0] // units * units)

    def makes(text: str) -> bool:
        return tier.has(text) and tier.parse(text) % units == 0

    return Derivation(text, makes, f"{words} such as {start!r}")


def _of_bins(error: str) -> Derivation | None:
    try:
        bins = log_bins(Decimal(error))
    except DecimalException:
        return None
    if error != format_number(bins.error) or not LEAST_ERROR <= bins.error <= MOST_ERROR:
        return None

    def text(value: Mapping[str, Any]) -> str:
        if "N" not in value:
            raise MalformedImageError(f"{value_text(value)} is no number")
        return bins.name_of(parse_number(value["N"]))

    return Derivation(text, is_bin, "a bin such as '277' or 'zero'")


def _of_number(bounds: Sequence[Number], texts: list[str]) -> Derivation:
    """The text below the first bound, and from each one on; "" where there is none."""
    words = f"one of {', '.join(map(repr, filter(None, texts)))}"

    def text(value: Mapping[str, Any]) -> str:
        found = texts[bisect_right(bounds, parse_number(value["N"]))] if "N" in value else ""
        if not found:
            raise MalformedImageError(f"{value_text(value)} is no number that is {words}")
        return found

    return Derivation(text, [*filter(None, texts)].__contains__, words)
