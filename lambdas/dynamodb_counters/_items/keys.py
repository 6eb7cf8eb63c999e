"""Derived fields: texts that a field of a group makes of an attribute, as the marks after its path say. Pure.

``at:day`` is the day of a time and ``at:15m`` its quarter of an hour, ``status:class`` the class of a number such as
2xx, ``ms:log0.01`` its bin, ``ms:order`` a text in its order, ``ms:digit…`` and ``ms:above…`` a digit of it and those
before; ``plan?none`` says which text stands for an attribute that is missing or null.

In a text in the order of numbers ``o`` is 0, ``p`` begins those above and ``n`` those below: then the exponent in three
digits, from the least one up, and the digits; below 0 their complements and ``~``. A time is ``t`` and its UTC moment.

Bins are those of DDSketch (https://arxiv.org/abs/1908.10693): bin i has the values above g^(i-1) up to g^i, with
g = (1 + error) / (1 - error). Bounds are decimals, not floats: each machine puts a value into the same bin.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from dynamodb_counters._items import conversions
from dynamodb_counters._items.conversions import UNSAFE, Number, escape, event_seconds, key_text, parse_number
from dynamodb_counters._tiers import BY_NAME, DAYS, HOURS, MINUTES, Tier
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

DELIMITER: Final = "#"
HASH_MARKER: Final = "%~"
_HASH_CHARACTERS: Final = 43  # A SHA-256 in unpadded base64.
_FIELD: Final = r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*(\[\])?(:[a-z0-9.]+)?(\?[A-Za-z0-9_.-]+)?"
_PART: Final = re.compile(rf"([^%{{}}\x00-\x1f\x7f\ud800-\udfff]*)(?:\{{({_FIELD})\}})?")
_EXPECTED: Final = (
    "parts with '#' between them, each a text without braces, '%' and control characters, a field, or a text and a "
    "field; no field twice; fields are {name}, {outer.inner}, {list[]}, {time:day}, {status:class} or {plan?none}"
)

DERIVED_MARK: Final = ":"
DEFAULT_MARK: Final = "?"
ORDER: Final = "order"  # The derivation of a text that is in the order of numbers or times.
_MOST: Final = 255
_COMPLEMENTS: Final = str.maketrans("0123456789", "9876543210")
_TEXT: Final = re.compile(r"o|[np]\d{3}\d+~?|t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", re.ASCII)
_CLASS: Final = re.compile("[1-9]xx")
_STRETCHED: Final = {"m": MINUTES, "h": HOURS, "d": DAYS}
_STRETCH: Final = re.compile(r"([1-9]\d{0,3})([mhd])", re.ASCII)

LOG: Final = "log"  # Begins the derivation of a bin, which its relative error ends.
LEAST_ERROR: Final = Decimal("0.001")
MOST_ERROR: Final = Decimal("0.5")
_ERROR: Final = re.compile(r"0\.\d*[1-9]", re.ASCII)
_BINNED: Final = Decimal("0.999")  # Of the error; the rest is for the digits that are left out of values.
_ZERO: Final = "zero"
_NEGATIVE: Final = "n"
_NAME: Final = re.compile(rf"{_ZERO}|{_NEGATIVE}?(0|-?[1-9]\d{{0,5}})", re.ASCII)
_EXACT: Final = Context(prec=40)

DIGIT: Final = "digit"  # Begins the derivation of a digit of a number: places, least, most, and how many come after it.
ABOVE: Final = "above"  # Likewise, of all digits before that.
RADIX: Final = 100
_SCALE: Final = re.compile(rf"({DIGIT}|{ABOVE})(\d)\.(m?)(\d{{1,18}})\.(m?)(\d{{1,18}})\.(\d)", re.ASCII)


class LogBins:
    """The bins of a relative error."""

    def __init__(self, error: Decimal) -> None:
        part = error * _BINNED
        self._growth = _EXACT.divide(1 + part, 1 - part)
        self._log = math.log(self._growth)
        self._rounding = Context(prec=4 - error.adjusted())
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
        """Return the number that stands for all values of a bin."""
        if name == _ZERO:
            return Decimal(0)
        middle = _EXACT.divide(2 * self._bound(int(name.removeprefix(_NEGATIVE))), 1 + self._growth)
        size = self._rounding.plus(middle)
        return -size if name.startswith(_NEGATIVE) else size


log_bins: Final = cache(LogBins)


class Scale(NamedTuple):
    """Numbers from `least` to `most` in units of so many decimal `places`, and their digits to the base of 100."""

    places: int
    least: int
    most: int

    @property
    def levels(self) -> int:
        """How many digits a number has."""
        return next(level for level in range(1, 20) if RADIX**level > self.most - self.least)

    def units_of(self, number: Number) -> int:
        """Return by how many units a number is above the least; MalformedImageError if it is none of the scale's."""
        units = conversions.EXACT.scaleb(Decimal(number), self.places)
        if units != units.to_integral_value() or not self.least <= units <= self.most:
            raise MalformedImageError(f"{number} is none of {self._words()}")
        return int(units) - self.least

    def given(self, argument: str, number: Any) -> int:
        """Return the units of a number that a call gives."""
        if isinstance(number, int | Decimal) and not isinstance(number, bool):
            with suppress(ArithmeticError, ValueError):  # A huge int has no text.
                return self.units_of(number)
        raise InvalidArgumentError(argument, number, f"an int or Decimal from {self._words()}")

    def _words(self) -> str:
        least, most = map(self.number_of, (0, self.most - self.least))
        return f"{least} to {most} with at most {self.places} decimal places"

    def number_of(self, units: int) -> Number:
        return conversions.whole(_EXACT.scaleb(Decimal(self.least + units), -self.places))

    def fields(self, attribute: str, level: int) -> list[str]:
        """Return the fields that are all digits of an attribute above one, if there are some, and that one."""
        bounds = [f"{bound}".replace("-", "m") for bound in (self.least, self.most)]
        kinds = (DIGIT,) if level == self.levels - 1 else (ABOVE, DIGIT)
        return [f"{attribute}{DERIVED_MARK}{kind}{self.places}.{'.'.join(bounds)}.{level}" for kind in kinds]


def scale_of(field: str) -> tuple[Scale, int] | None:
    """Return the scale of which a field is a digit, or the digits above, and its level; None of any other field."""
    match = _SCALE.fullmatch(parts_of(field)[1])
    if match is None:
        return None
    least, most = (int(digits) * (-1 if sign else 1) for sign, digits in (match.group(3, 4), match.group(5, 6)))
    scale, level = Scale(int(match[2]), least, most), int(match[7])
    is_own = least < most and level < scale.levels and field in scale.fields(parts_of(field)[0], level)
    return (scale, level) if is_own else None


def ordered_text(value: Mapping[str, Any]) -> str:
    """Return the text of a typed number, such as ``p13112`` of 12, or of a time in ISO 8601."""
    if "N" not in value:
        event_seconds(value)
        moment = datetime.fromisoformat(value["S"]).astimezone(UTC).replace(tzinfo=None)
        return f"t{moment.isoformat(timespec='microseconds')}"
    number = Decimal(parse_number(value["N"]))
    if not number:
        return "o"
    digits, place = conversions.significant_digits(number), number.adjusted() - conversions.SMALLEST_EXPONENT
    return f"p{place:03d}{digits}" if number > 0 else f"n{_MOST - place:03d}{digits.translate(_COMPLEMENTS)}~"


def value_of(text: str) -> Number | datetime:
    if text.startswith("t"):
        return datetime.fromisoformat(text[1:]).replace(tzinfo=UTC)
    if text == "o":
        return 0
    is_negative, place, digits = text.startswith("n"), int(text[1:4]), text[4:].rstrip("~")
    if is_negative:
        place, digits = _MOST - place, digits.translate(_COMPLEMENTS)
    exponent = place + conversions.SMALLEST_EXPONENT - len(digits) + 1
    return conversions.whole(Decimal((int(is_negative), tuple(map(int, digits)), exponent)))


class Derivation(NamedTuple):
    """The text of a typed value, whether it can be some text, and which ones it can be, in words."""

    text: Callable[[Mapping[str, Any]], str]
    makes: Callable[[str], object]
    words: str


def parts_of(field: str, *, literal: bool = False) -> tuple[str, str, str | None]:
    """Return the path of a field, the name of its derivation or "", and its default.

    A `literal` field is an aggregate's own, whatever marks it has, or a digit of one of its measures.
    """
    if literal and not _SCALE.fullmatch(field.partition(DERIVED_MARK)[2]):
        return field, "", None
    start, mark, default = field.partition(DEFAULT_MARK)
    path, _, derivation_name = start.partition(DERIVED_MARK)
    return path, derivation_name, default if mark else None


def is_time(name: str) -> bool:
    return name in BY_NAME or _STRETCH.fullmatch(name) is not None


def tier_of(field: str) -> Tier | None:
    """Return the unit of the time that a field is, unless it has a default."""
    _, name, default = parts_of(field)
    return BY_NAME.get(name) if default is None else None


def expected_text(field: str, text: str) -> str | None:
    """Return the texts that a derived field can be, in words, if this is none of them; None of any other field."""
    _, name, default = parts_of(field)
    rule = derivation(name)
    if rule is None or text == default or rule.makes(text):
        return None
    return rule.words if default is None else f"{rule.words}, or {default!r}"


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
    if name.startswith((DIGIT, ABOVE)):
        return _of_digits(name)
    return _of_bins(name.removeprefix(LOG)) if name.startswith(LOG) else None


def _class_of(value: Mapping[str, Any]) -> str:
    text = f"{int(parse_number(value['N'])) // 100}xx" if "N" in value else ""
    if not _CLASS.fullmatch(text):
        raise MalformedImageError(f"{conversions.value_text(value)} is no number from 100 to below 1000")
    return text


def _of_time(tier: Tier, units: int = 1) -> Derivation:
    """Return the derivation of so many units of time, counted from 1970 on; named like the first of them."""
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
            raise MalformedImageError(f"{conversions.value_text(value)} is no number")
        return bins.name_of(parse_number(value["N"]))

    return Derivation(text, _NAME.fullmatch, "a bin such as '277' or 'zero'")


def _of_digits(name: str) -> Derivation | None:
    if (scaled := scale_of(f"{DERIVED_MARK}{name}")) is None:
        return None
    (scale, level), is_digit = scaled, name.startswith(DIGIT)

    def text(value: Mapping[str, Any]) -> str:
        if "N" not in value:
            raise MalformedImageError(f"{conversions.value_text(value)} is no number")
        above, digit = divmod(scale.units_of(parse_number(value["N"])) // RADIX**level, RADIX)
        return f"{digit:02}" if is_digit else str(above)

    makes = re.compile(r"\d\d" if is_digit else r"0|[1-9]\d{0,18}", re.ASCII).fullmatch
    return Derivation(text, makes, "two digits such as '07'" if is_digit else "the digits above, such as '12'")


class KeyTemplate:
    """A key's layout: text with placeholders, as ``T#{time}#CID#{clientId}``; `argument` is what errors call it."""

    def __init__(self, text: str, max_bytes: int, argument: str = "template") -> None:
        matches = [_PART.fullmatch(part) for part in text.split(DELIMITER)] if isinstance(text, str) and text else []
        self._parts = [(match[1], match[2] or "") for match in matches if match is not None]
        self.fields = tuple(field for _, field in self._parts if field)
        are_fields = len({*self.fields}) == len(self.fields) and all(map(is_field, self.fields))
        if not self._parts or len(self._parts) < len(matches) or not are_fields:
            raise InvalidArgumentError(argument, text, _EXPECTED)
        if len(text.encode()) > max_bytes - len(HASH_MARKER) - _HASH_CHARACTERS:
            raise InvalidArgumentError(argument, text, f"well under {max_bytes} bytes")
        self.text, self.max_bytes, self.prefix = text, max_bytes, text.partition("{")[0]
        # No literal holds a "%".
        self._format = DELIMITER.join([literal + ("%s" if field else "") for literal, field in self._parts])
        pattern = [re.escape(literal) + ("([^#]*)" if field else "") for literal, field in self._parts]
        self._pattern = re.compile(DELIMITER.join(pattern), re.DOTALL)

    def render(self, values: Mapping[str, object]) -> str:
        """Return the key of a str, int or Decimal per field; other values are ignored."""
        try:
            return self.render_texts([key_text(name, values[name]) for name in self.fields])
        except KeyError as error:
            raise InvalidArgumentError(str(error.args[0]), None, f"a value for {self.text!r}") from None

    def render_texts(self, texts: list[str]) -> str:
        """Return the key of unescaped texts, one per field in the order of `fields`."""
        if not texts:
            return self.prefix
        if UNSAFE.search("".join(texts)) or "" in texts:
            texts = [escape(text) for text in texts]
        key = self._format % tuple(texts)
        if len(key) * 4 <= self.max_bytes or len(encoded := key.encode()) <= self.max_bytes:
            return key
        digest = base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).decode().rstrip("=")
        start = encoded[: self.max_bytes - len(HASH_MARKER) - len(digest)].decode(errors="ignore")
        return f"{start}{HASH_MARKER}{digest}"

    def parse(self, key: str) -> dict[str, str]:
        """Return each field's text in a rendered key; MalformedImageError if it is hashed or of another template."""
        match = None if is_hashed(key) else self._pattern.fullmatch(key)
        if match is None:
            raise MalformedImageError(f"{key!r} does not match {self.text!r}, or holds a hash of its values")
        try:
            return {name: conversions.unescape(text) for name, text in zip(self.fields, match.groups(), strict=True)}
        except UnicodeDecodeError:
            raise MalformedImageError(f"{key!r} holds escapes that are not valid UTF-8") from None

    def match(self, key: str) -> dict[str, str] | None:
        """Return each field's text in a key that other code wrote, unescaped; None if the key has another form."""
        match = self._pattern.fullmatch(key)
        return None if match is None else dict(zip(self.fields, match.groups(), strict=True))

    def overlaps(self, template: KeyTemplate) -> bool:
        """Return whether some values could render the same key from both templates."""
        # Values hold no "#", so keys are equal only part by part.
        return len(self._parts) == len(template._parts) and all(map(_parts_overlap, self._parts, template._parts))


key_template: Final = lru_cache(maxsize=1024)(KeyTemplate)


def is_field(name: str) -> bool:
    path, derivation_name, _ = parts_of(name)
    is_derivable = not derivation_name or derivation(derivation_name) is not None
    # Members of a list have no marks.
    return re.fullmatch(_FIELD, name) is not None and is_derivable and (name == path or "[]" not in path)


def is_hashed(key: str) -> bool:
    """Return whether a rendered key ends in a hash, so that `KeyTemplate.parse` cannot return its values."""
    return HASH_MARKER in key


def _parts_overlap(first: tuple[str, str], second: tuple[str, str]) -> bool:
    (short, short_field), (long, long_field) = sorted((first, second), key=lambda part: len(part[0]))
    if short_field:
        # A value is never empty in a key: "A#{x}" does not render "A#".
        return long.startswith(short) and (long_field != "" or long != short)
    return long == short and not long_field
