"""Items of groups as if the aggregator had written them. Pure."""

from __future__ import annotations

from dynamodb_counters._declarations.groups import typed_key
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.page_layout import Page
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import format_number, typed_number
from dynamodb_counters._items.table_schema import PK, TYPE


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
