"""Derived fields: texts that a field of a group makes of an attribute, as the marks after its path say. Pure.

``at:day`` is the day of a time and ``at:15m`` its quarter of an hour, ``status:class`` the class of a number such as
2xx, ``ms:log0.01`` its bin, ``ms:order`` a text in its order; ``plan?none`` says which text
stands for an attribute that is missing or null.

In a text in the order of numbers ``o`` is 0, ``p`` begins those above and ``n`` those below: then the exponent in three
digits, from the least one up, and the digits; below 0 their complements and ``~``. A time is ``t`` and its UTC moment.

Bins are those of DDSketch (https://arxiv.org/abs/1908.10693): bin i has the values above g^(i-1) up to g^i, with
g = (1 + error) / (1 - error). Bounds are decimals, not floats: each machine puts a value into the same bin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from dynamodb_counters._items.conversions import (
    SMALLEST_EXPONENT,
    Number,
    event_seconds,
    parse_number,
    significant_digits,
    value_text,
    whole,
)
from dynamodb_counters._timeline.tiers import BY_NAME, DAYS, HOURS, MINUTES, Tier
from dynamodb_counters.errors import MalformedImageError

LEAST_ERROR: Final = Decimal("0.001")
MOST_ERROR: Final = Decimal("0.5")
_ERROR: Final = re.compile(r"0\.\d*[1-9]", re.ASCII)

_ZERO: Final = "zero"
_NEGATIVE: Final = "n"
_NAME: Final = re.compile(rf"{_ZERO}|{_NEGATIVE}?(0|-?[1-9]\d{{0,5}})", re.ASCII)
_EXACT: Final = Context(prec=40)

_ROUNDED: Final = Decimal("0.999")
"""The part of the error that bins take; the rest is for the digits that are not shown of their values."""


class LogBins:
    """The bins of a relative error.

    >>> bins = LogBins(Decimal("0.01"))
    >>> bins.name_of(Decimal(250)), bins.value_of("277"), bins.name_of(Decimal(-3))
    ('277', Decimal('250.787'), 'n55')
    """

    def __init__(self, error: Decimal) -> None:
        taken = error * _ROUNDED
        self._growth = _EXACT.divide(1 + taken, 1 - taken)
        self._log = math.log(self._growth)
        self._shown = Context(prec=4 - error.adjusted())
        self._bound = cache(lambda index: _EXACT.power(self._growth, index))
        self.name_of = lru_cache(maxsize=4096)(self._name_of)

    def _name_of(self, value: Number) -> str:
        size = Decimal(value).copy_abs()
        if not size:
            return _ZERO
        # The nearest bound is the bin's own or the one below it.
        index = round(math.log(size) / self._log)
        index += size > self._bound(index)
        return f"{_NEGATIVE if value < 0 else ''}{index}"

    def value_of(self, name: str) -> Decimal:
        """The number that stands for all values of a bin."""
        if name == _ZERO:
            return Decimal(0)
        size = _EXACT.divide(2 * self._bound(int(name.removeprefix(_NEGATIVE))), 1 + self._growth)
        shown = self._shown.plus(size)
        return -shown if name.startswith(_NEGATIVE) else shown


log_bins: Final = cache(LogBins)


_MOST: Final = 255
_CLASS: Final = re.compile("[1-9]xx")
_COMPLEMENTS: Final = str.maketrans("0123456789", "9876543210")
_TEXT: Final = re.compile(r"o|[np]\d{3}\d+~?|t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", re.ASCII)


def ordered_text(value: Mapping[str, Any]) -> str:
    """The text of a typed number, such as ``p13112`` of 12, or of a time in ISO 8601."""
    if "N" not in value:
        event_seconds(value)
        moment = datetime.fromisoformat(value["S"]).astimezone(UTC).replace(tzinfo=None)
        return f"t{moment.isoformat(timespec='microseconds')}"
    number = Decimal(parse_number(value["N"]))
    if not number:
        return "o"
    digits = significant_digits(number)
    place = number.adjusted() - SMALLEST_EXPONENT
    if number > 0:
        return f"p{place:03d}{digits}"
    return f"n{_MOST - place:03d}{digits.translate(_COMPLEMENTS)}~"


def value_of(text: str) -> Number | datetime:
    if text.startswith("t"):
        return datetime.fromisoformat(text[1:]).replace(tzinfo=UTC)
    if text == "o":
        return 0
    is_negative, place, digits = text.startswith("n"), int(text[1:4]), text[4:].rstrip("~")
    if is_negative:
        place, digits = _MOST - place, digits.translate(_COMPLEMENTS)
    exponent = place + SMALLEST_EXPONENT - len(digits) + 1
    return whole(Decimal((int(is_negative), tuple(map(int, digits)), exponent)))


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
    makes: Callable[[str], object]
    words: str


def parts_of(field: str) -> tuple[str, str, str | None]:
    """The path of a field, the name of its derivation or "", and its default."""
    marked, is_defaulted, default = field.partition(DEFAULT_MARK)
    path, _, derived = marked.partition(DERIVED_MARK)
    return path, derived, default if is_defaulted else None


def is_time(derived: str) -> bool:
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
    if name in BY_NAME:
        return _of_time(BY_NAME[name])
    if (stretch := _STRETCH.fullmatch(name)) is not None:
        return _of_time(_STRETCHED[stretch[2]], int(stretch[1]))
    if name == ORDER:
        return Derivation(ordered_text, _TEXT.fullmatch, "a text in the order of numbers or times, such as 'p13112'")
    if name == "class":
        return Derivation(_class_of, _CLASS.fullmatch, "a class from '1xx' to '9xx'")
    return _of_bins(name.removeprefix(LOG)) if name.startswith(LOG) else None


def _class_of(value: Mapping[str, Any]) -> str:
    text = f"{int(parse_number(value['N'])) // 100}xx" if "N" in value else ""
    if not _CLASS.fullmatch(text):
        raise MalformedImageError(f"{value_text(value)} is no number from 100 to below 1000")
    return text


def _of_time(tier: Tier, units: int = 1) -> Derivation:
    """So many units of time, counted from 1970 on; named like the unit that it begins with."""
    start, words = tier.text(0), f"the start of {units} UTC {tier.name}s"
    if units == 1:
        start, words = "2026-11-20T00:00"[: len(start)], f"a UTC {tier.name}"

    def text(value: Mapping[str, Any]) -> str:
        return tier.text(tier.locate(event_seconds(value))[0] // units * units)

    def makes(text: str) -> bool:
        try:
            bucket = tier.parse(text)
            return tier.text(bucket) == text and bucket % units == 0
        except (ValueError, OverflowError):
            return False

    return Derivation(text, makes, f"{words} such as {start!r}")


def _of_bins(error: str) -> Derivation | None:
    if not _ERROR.fullmatch(error) or not LEAST_ERROR <= Decimal(error) <= MOST_ERROR:
        return None
    bins = log_bins(Decimal(error))

    def text(value: Mapping[str, Any]) -> str:
        if "N" not in value:
            raise MalformedImageError(f"{value_text(value)} is no number")
        return bins.name_of(parse_number(value["N"]))

    return Derivation(text, _NAME.fullmatch, "a bin such as '277' or 'zero'")
