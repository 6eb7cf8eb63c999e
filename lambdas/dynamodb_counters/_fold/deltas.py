"""Deltas: what a batch of changes adds to each group. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dynamodb_counters._fold.item_layout import GroupKey, GroupRef, ItemLayout
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.conversions import Number


@dataclass(eq=False, slots=True)
class Delta:
    """Addition of a batch to one group, and the padded sequence numbers of the first and last record behind it."""

    layout: ItemLayout
    group: GroupKey
    first: str
    last: str
    measures: dict[str, Number] = field(default_factory=dict)

    @property
    def ref(self) -> GroupRef:
        return self.layout.name, self.group


@dataclass(frozen=True, slots=True)
class Unfoldable:
    """An image that the declarations `names` (none: all) could not fold; `record` holds no other image."""

    sequence: str
    image_name: str
    record: Record
    reason: str
    names: tuple[str, ...] = ()

    @property
    def entry_id(self) -> str:
        return f"{self.sequence}#{self.image_name}"


@dataclass(slots=True)
class Folded:
    """One delta per group, what goes to quarantine instead, and how many contributions came too late, or too early."""

    deltas: list[Delta] = field(default_factory=list)
    unfoldable: list[Unfoldable] = field(default_factory=list)
    late: int = 0
    early: int = 0
    skipped_types: Counter[str] = field(default_factory=Counter)
    """Changes of items that `Items` would count but for a type that nothing declares, by type."""
    changes: int = 0
    """How many changes were folded, if there was a limit."""
