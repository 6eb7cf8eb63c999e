"""The report of ``counters decode`` on an item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Decoded:
    """The kind of an item, what it says in lines, and the same as JSON has it."""

    kind: str
    lines: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
