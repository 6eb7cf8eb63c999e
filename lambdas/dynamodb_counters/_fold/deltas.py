"""Deltas: what a batch of changes adds to each group, and the item that one alone would make. Pure."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, replace

from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.item_layout import GroupKey, GroupRef, ItemLayout
from dynamodb_counters._fold.page_layout import Page
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import Number, format_number, typed_number
from dynamodb_counters._items.table_schema import PK, TYPE


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

    def beside(self, names: tuple[str, ...]) -> Unfoldable:
        """The same image for other declarations than those of an entry that is there already."""
        return replace(self, image_name=f"{self.image_name}#{zlib.crc32(repr(names).encode()):08x}", names=names)


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
    events: int = 0
    """Changes, and in place of a chunk its events."""


def group_image(delta: Delta) -> Image:
    """The item of a group, or what it would be outside its page."""
    layout = delta.layout
    key = layout.key(delta.group, "")
    image = {name: {"S": text} for name, text in {**layout.stored_values(delta.group, key), **key}.items()}
    image |= {name: {"N": format_number(number)} for name, number in delta.measures.items()}
    return {**image, TYPE: {"S": layout.name}}


def item_of(delta: Delta) -> Image:
    """The item; or the page, as long as it has not split: what counts members by gaps looks at all of it."""
    layout, group = delta.layout, delta.group
    if layout.pages is None:
        return group_image(delta)
    page = Page(layout.address(group)[0])
    key = layout.pages.key(page)
    numbers = layout.pages.added(layout.page_texts(group), delta.measures)
    # Also those that are 0: the name of a group's first number is its text.
    typed = {name: typed_number(number) for name, number in numbers.items()}
    return {**typed_key(key), **layout.attributes(group, {**key, PK: page.pk}), **typed}
