"""Typed attributes as the Python values they were made of."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from dynamodb_counters._items.decimals import parse_number


def plain_value(value: Mapping[str, Any]) -> Any:
    """Numbers as int or Decimal, binary as bytes, lists, maps and sets as such.

    >>> plain_value({"L": [{"S": "a"}, {"N": "1.5"}, {"NULL": True}]})
    ['a', Decimal('1.5'), None]
    """
    [(kind, content)] = value.items()
    plain: Any = content  # S and BOOL
    match kind:
        case "N":
            plain = parse_number(content)
        case "B":
            plain = _bytes(content)
        case "NULL":
            plain = None
        case "SS" | "NS" | "BS":
            plain = {plain_value({kind[0]: member}) for member in content}
        case "L":
            plain = [plain_value(member) for member in content]
        case "M":
            plain = {name: plain_value(member) for name, member in content.items()}
    return plain


def _bytes(content: str | bytes) -> bytes:
    """A chunk's binary is base64 text."""
    return base64.b64decode(content) if isinstance(content, str) else bytes(content)
