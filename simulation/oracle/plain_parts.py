"""What an event adds, and where, in plain Python: nothing of the runtime is used here."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

Values: TypeAlias = Mapping[str, Any]
"""Attributes of an event, as plain Python values."""

Parts: TypeAlias = dict[str, Decimal]
"""What an event adds, by attribute of the aggregate's item."""

ONE: Final = Decimal(1)


def escaped(value: str) -> str:
    """A value as the key layout escapes it."""
    text = value.replace("%", "%25").replace("#", "%23").replace("\n", "%0A")
    return text or "%"


def bucket(at: int) -> str:
    """The sort key of an hour's bucket, from seconds since 1970."""
    days, seconds = divmod(at, 86_400)
    year, month, day = _civil(days)
    return f"H#{year:04d}-{month:02d}-{day:02d}T{seconds // 3600:02d}"


def slots(values: Values, number: Decimal) -> Parts:
    """What an event that adds `number` to its minute adds to an hour's bucket."""
    return {"total": number, f"m{values['at'] // 60 % 60:02d}": number}


def amount(values: Values) -> Decimal:
    return Decimal(values["amount"])


def _civil(days: int) -> tuple[int, int, int]:
    """The date of a number of days since 1970: https://howardhinnant.github.io/date_algorithms.html#civil_from_days."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    turned = month + 3 if month < 10 else month - 9
    return year + era * 400 + (turned <= 2), turned, of_year - (153 * month + 2) // 5 + 1
