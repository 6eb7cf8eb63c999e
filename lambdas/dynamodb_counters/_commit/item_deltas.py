"""Deltas by item: that of one group, or of all groups of a batch that lie in one page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.item_layout import GroupKey, GroupRef, ItemLayout
from dynamodb_counters._fold.page_layout import Page
from dynamodb_counters._fold.updates import PageUpdate, Update
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._pages import PageLevels


@dataclass(slots=True)
class ItemDelta:
    """Deltas that go to one item; `page` if that is a page."""

    deltas: list[Delta]
    page: Page | None = None

    @property
    def layout(self) -> ItemLayout:
        return self.deltas[0].layout

    @property
    def refs(self) -> list[GroupRef]:
        return [delta.ref for delta in self.deltas]

    @property
    def first(self) -> str:
        return min(delta.first for delta in self.deltas)

    @property
    def last(self) -> str:
        return max(delta.last for delta in self.deltas)

    def update(self, shard: str, without: Iterable[Delta] = ()) -> Update:
        """The update that adds them, but those of some deltas, of which the item only takes note."""
        added: dict[GroupKey, Mapping[str, Number]] = {delta.group: delta.measures for delta in self.deltas}
        left_out = {delta.group for delta in without}
        if self.page is None:
            [(group, measures)] = added.items()
            return Update(self.layout, group, {} if left_out else measures, shard)
        kept = {group: measures for group, measures in added.items() if group not in left_out}
        return PageUpdate(self.layout, self.page, kept or {self.deltas[0].group: None})


def place_of(delta: Delta) -> str:
    """Orders the groups of a batch the same way in every delivery: those that share a page side by side."""
    layout = delta.layout
    if layout.pages is not None:
        shelf, number = layout.address(delta.group)
        return f"{_digest((layout.name, shelf))}{number:016x}"
    return _digest(delta.ref)


def joined(deltas: Sequence[Delta], levels: PageLevels) -> list[ItemDelta]:
    """Deltas in the order of their places, joined by item."""
    found: list[ItemDelta] = []
    for delta in deltas:
        layout = delta.layout
        if layout.pages is None:
            found.append(ItemDelta([delta]))
            continue
        shelf, number = layout.address(delta.group)
        last = found[-1].page if found and found[-1].layout.name == layout.name else None
        if last is not None and last.shelf == shelf and number < last.end:
            found[-1].deltas.append(delta)
            continue
        # A page gets all that a batch has for it, whatever its level is thought to be: its watermark covers them all.
        page, held = levels.locate(layout.name, shelf, number), [delta]
        while last is not None and last.shelf == shelf and last.first >= page.first:
            held = [*found.pop().deltas, *held]
            last = found[-1].page if found and found[-1].layout.name == layout.name else None
        found.append(ItemDelta(held, page))
    return found


def _digest(ref: tuple[str, object]) -> str:
    return hashlib.sha256(repr(ref).encode()).hexdigest()[:16]
