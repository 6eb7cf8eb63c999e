"""Contributions of one item image by the members of a list, such as an order by its lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Aggregate, Count
from dynamodb_counters._declarations.checks import of_member
from dynamodb_counters._fold.contributions import Contribution, compile_measure, compile_where, require_storable_group
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout
from dynamodb_counters._items.conditions import Image, present, reader, text_reader
from dynamodb_counters._items.conversions import Number
from dynamodb_counters.errors import MalformedImageError

_NO_MEMBER: Final[Image] = {}

Read: TypeAlias = Callable[[Image, Image], str]
"""Reads a text of an image and one of its members."""


def compile_members(
    layout: ItemLayout, declaration: Aggregate, path: str
) -> Callable[[Image, float | None], tuple[Contribution, ...]]:
    """Numbers of members add up in the group of each; an item's own count once in each group that it is in."""
    holds = compile_where(declaration)
    fields = [_field(field) for field in declaration.fields]
    grouped = any(of_member(field) for field in declaration.fields)
    of_items, of_members = [], []
    for name, measure in declaration.measures.items():
        if isinstance(measure, Count) or (inner := of_member(measure.attribute)) is None:
            of_items.append(compile_measure(name, measure))
        else:
            of_members.append(compile_measure(name, replace(measure, attribute=inner)))
    find, most = reader(path), declaration.max_groups

    def contribute(image: Image, _: float | None) -> tuple[Contribution, ...]:
        if holds is not None and not holds(image):
            return ()
        members = _members(find(image), path)
        own = [pair for numbers_of in of_items for pair in numbers_of(image)]
        # Without a member's field, all members are in the item's one group, which counts it also if there are none.
        found: dict[GroupKey, dict[str, Number]] = {}
        if not grouped:
            found[_group(fields, image, _NO_MEMBER)] = dict(own)
        for member in members:
            group = _group(fields, image, member)
            numbers = found.setdefault(group, dict(own))
            for numbers_of in of_members:
                for name, number in numbers_of(member):
                    numbers[name] = numbers.get(name, 0) + number
        if len(found) > most:
            raise MalformedImageError(
                f"invalid group {path!r}: "
                f"expected at most {most} groups of {declaration.name!r} per item, found {len(found)}"
            )
        added = ((group, tuple([pair for pair in numbers.items() if pair[1]])) for group, numbers in found.items())
        return tuple([(layout, group, numbers) for group, numbers in added if numbers])

    return contribute


def _field(field: str) -> Read:
    inner = of_member(field)
    if inner is None:
        read_own = text_reader(field)
        return lambda image, _: read_own(image)
    read = text_reader(inner)
    return lambda _, member: read(member)


def _group(fields: list[Read], image: Image, member: Image) -> GroupKey:
    return require_storable_group(tuple([read(image, member) for read in fields]))


def _members(value: Mapping[str, Any] | None, path: str) -> list[Image]:
    members = present(value, path).get("L")
    if members is None or any("M" not in member for member in members):
        raise MalformedImageError(f"attribute {path!r} is not a list of maps")
    return [member["M"] for member in members]
