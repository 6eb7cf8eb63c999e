"""Tallies: the part of a group that its sources do not show, kept next to each measure and added to both alike.

A group is the fold of its sources plus its tally, at every position of the stream and in every generation. The
contribution of an event that is erased with its counts kept moves from the sources into the tally. The next generation
of a declaration takes the tallies of the one before for source items like any other: it carries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.groups import carried
from dynamodb_counters._fold.chunk_contributions import ByColumns
from dynamodb_counters._fold.contributions import LATE, Contribute, Contribution, Numbers
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_of_item
from dynamodb_counters._items.chunks import Chunk
from dynamodb_counters._items.conditions import Image, number_reader
from dynamodb_counters._items.table_schema import TALLY_PREFIX

Carry: TypeAlias = Callable[[GroupKey, Numbers], list[Contribution]]
"""Additions of a tally of the generation before to a group of the next."""


def compile_carry(layout: ItemLayout, before: Declaration) -> Carry | None:
    """How a declaration carries the tallies of its generation `before`; None if none has a place."""
    after = layout.declaration
    kept = carried(after, before)
    if not kept:
        return None
    places = [before.fields.index(field) for field in after.fields]
    is_window = not isinstance(after, Aggregate)

    def carry(group: GroupKey, tallies: Numbers) -> list[Contribution]:
        if is_window and group[-2] not in kept:
            return []
        found = tuple(
            (attribute, number)
            for name, number in tallies
            if is_window or name in kept
            for attribute in (name, TALLY_PREFIX + name)
        )
        mapped = (*[group[place] for place in places], *(group[-2:] if is_window else ()))
        return [(layout, mapped, found)] if found else []

    return carry


def compile_carried(before: Declaration, carry: Carry) -> Contribute:
    """Contribution of the item of a group of the generation before."""
    names = {TALLY_PREFIX + name: name for name in before._attributes}
    readers = {held: number_reader(held, literal=True) for held in names}

    def contribute(image: Image, _: float | None) -> tuple[Contribution, ...]:
        held = [name for name in image if name in names]
        group = group_of_item(before, image) if held else None
        if group is None:
            return ()
        return tuple(carry(group, tuple([(names[name], number) for name in held if (number := readers[name](image))])))

    return contribute


def tallying(contribute: Contribute, carries: Sequence[Carry]) -> Contribute:
    """Contributions that leave the sources but not the counts move into the tally."""

    def contribute_tally(image: Image, created: float | None) -> tuple[Contribution, ...]:
        found = contribute(image, created)
        return LATE if found is LATE else tuple(_tallies(found, carries))

    return contribute_tally


def tallying_columns(by_columns: ByColumns, carries: Sequence[Carry]) -> ByColumns:
    """The same of a chunk's events."""

    def contribute_tallies(chunk: Chunk) -> list[Contribution] | None:
        found = by_columns(chunk)
        return None if found is None else _tallies(found, carries)

    return contribute_tallies


def _tallies(contributions: Iterable[Contribution], carries: Sequence[Carry]) -> list[Contribution]:
    """Contributions of an image that goes, so they are subtracted: in negative, the tally grows."""
    found: list[Contribution] = []
    for layout, group, numbers in contributions:
        found.append((layout, group, tuple([(TALLY_PREFIX + name, -number) for name, number in numbers])))
        # The next generation tallies the event on its own, and will be carried this tally, too: it is relieved of that.
        for carry in carries:
            found += carry(group, numbers)
    return found
