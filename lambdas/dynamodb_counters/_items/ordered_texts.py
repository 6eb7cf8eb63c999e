"""Texts of numbers and times that are in the order of these, and back. Pure.

``o`` is 0, ``p`` begins numbers above and ``n`` those below: then the exponent in three digits, counted from the least
one up, and the digits without zeros at the end. Digits of negative numbers are complements, and ``~`` ends them.
A time is ``t`` and its moment in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._items.decimals import SMALLEST_EXPONENT, Number, parse_number, whole
from dynamodb_counters._items.event_times import event_seconds

_MOST: Final = 255
_COMPLEMENTS: Final = str.maketrans("0123456789", "9876543210")
_TEXT: Final = re.compile(r"o|[np]\d{3}\d+~?|t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", re.ASCII)


def ordered_text(value: Mapping[str, Any]) -> str:
    """The text of a typed number, or of a time in ISO 8601.

    >>> [ordered_text({"N": number}) for number in ("-2", "-1.5", "0", "0.2", "12", "13.1")]
    ['n1257~', 'n12584~', 'o', 'p1292', 'p13112', 'p131131']
    """
    if "N" in value:
        return _text_of(Decimal(parse_number(value["N"])))
    event_seconds(value)
    moment = datetime.fromisoformat(value["S"]).astimezone(UTC).replace(tzinfo=None)
    return f"t{moment.isoformat(timespec='microseconds')}"


def value_of(text: str) -> Number | datetime:
    """The number or time of a text.

    >>> value_of("n12584~"), value_of("p13112")
    (Decimal('-1.5'), 12)
    """
    if text.startswith("t"):
        return datetime.fromisoformat(text[1:]).replace(tzinfo=UTC)
    if text == "o":
        return 0
    is_negative, place, digits = text.startswith("n"), int(text[1:4]), text[4:].rstrip("~")
    if is_negative:
        place, digits = _MOST - place, digits.translate(_COMPLEMENTS)
    exponent = place + SMALLEST_EXPONENT - len(digits) + 1
    return whole(Decimal((int(is_negative), tuple(map(int, digits)), exponent)))


def is_ordered_text(text: str) -> bool:
    return _TEXT.fullmatch(text) is not None


def _text_of(number: Decimal) -> str:
    if not number:
        return "o"
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    place = number.adjusted() - SMALLEST_EXPONENT
    if number > 0:
        return f"p{place:03d}{digits}"
    return f"n{_MOST - place:03d}{digits.translate(_COMPLEMENTS)}~"
