"""DynamoDB's limits of an item, written down a second time: what the doors let through is held against them.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

_ITEM_BYTES: Final = 400 * 1024


def beyond_dynamodb(item: Mapping[str, Any]) -> str:
    """The first limit that a typed item exceeds; empty if there is none."""
    for name, most in (("pk", 2048), ("sk", 1024)):
        if not 0 < len(item[name]["S"].encode()) <= most:
            return f"{name} is empty or too long"
    problems = [_of({"M": item}, level=0), "" if len(str(item).encode()) < 2 * _ITEM_BYTES else "item too large"]
    return next(filter(None, problems), "")


def _of(value: Mapping[str, Any], level: int) -> str:
    [(kind, content)] = value.items()
    if level > 32:
        return "more than 32 levels"
    if kind == "S":
        content.encode()
    if kind == "N":
        number = Decimal(content)
        digits = "".join(map(str, number.as_tuple().digits)).strip("0")
        if len(digits) > 38 or (number and not -130 <= number.adjusted() <= 125):
            return f"number {content:.60}"
    if kind == "M" and any(not 0 < len(name.encode()) <= 65_535 for name in content):
        return "a name is empty or too long"
    if kind in ("SS", "NS", "BS") and not content:
        return "an empty set"
    parts = content.values() if kind == "M" else content if kind == "L" else ()
    return next(filter(None, (_of(part, level + 1) for part in parts)), "")
