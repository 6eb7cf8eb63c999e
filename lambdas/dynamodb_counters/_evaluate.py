"""Declarations evaluated over plain items, by the code that also runs in Lambda: no table, no stream.

For unit tests of declarations, and to verify a table against its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dynamodb_counters._declarations import Aggregate, Declarable, Event, Items, flatten
from dynamodb_counters._declarations.groups import Group, group_of
from dynamodb_counters._fold.deltas import Delta
from dynamodb_counters._fold.fold import Plan
from dynamodb_counters._fold.records import Record
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.decimals import format_number
from dynamodb_counters._items.table_schema import TYPE

_ANY_FEED = ""


def evaluate(
    declared: Iterable[Declarable],
    items: Iterable[tuple[Event | Items, Mapping[str, Any]]],
    *,
    now: float | None = None,
) -> dict[str, list[Group]]:
    """Count items as the aggregator would.

    Parameters
    ----------
    declared : iterable of Aggregate, Window, Distinct or Hierarchy
        What to count.
    items : iterable of (Event or Items, mapping)
        Source and attributes of each item. Of events with one key the first counts.
    now : float, optional
        Seconds since 1970 at which all items arrive, which tells late from early. Needed by windows that have a
        retention or refuse future events.

    Returns
    -------
    dict of str to list of Group
        Groups by the declaration's name. Of a window, a group a bucket of each tier: its values hold the tier and the
        start of the bucket, its measures the total and the slots.

    Raises
    ------
    InvalidArgumentError
        The declarations contradict each other, or an item cannot be stored.
    ValueError
        An item cannot be counted; its reason is told.

    Examples
    --------
    >>> from dynamodb_counters import Count
    >>> view = Event("view", pk="URL#{url}", sk="T#{time}")
    >>> views = Aggregate("views", view, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
    >>> evaluate([views], [(view, {"url": "/", "time": "1"}), (view, {"url": "/", "time": "2"})])["views"]
    [Group(values={'url': '/'}, measures={'views': 2})]
    """
    plan = Plan(flatten(declared))
    results: dict[str, list[Group]] = {}
    images = _images(items)
    while images:
        folded = plan.fold(_records(images, now))
        if folded.unfoldable:
            raise ValueError(folded.unfoldable[0].reason)
        images = []
        for delta in folded.deltas:
            image = _image(delta)
            images.append(image)
            results.setdefault(delta.program.name, []).append(_group(delta, image))
    return results


def _images(items: Iterable[tuple[Event | Items, Mapping[str, Any]]]) -> list[Image]:
    # Imported here, as it brings boto3, which nothing else in this module needs.
    from dynamodb_counters._writes.event_items import typed_item  # noqa: PLC0415

    different: dict[Any, Image] = {}
    for place, (source, values) in enumerate(items):
        if isinstance(source, Event):
            image = typed_item(source, values)
            different.setdefault((image["pk"]["S"], image["sk"]["S"]), image)
        else:
            different[place] = typed_item(None, values)
    return list(different.values())


def _records(images: Iterable[Image], now: float | None) -> list[Record]:
    return [
        {
            "eventName": "INSERT",
            "dynamodb": {"NewImage": image, "SequenceNumber": str(place), "ApproximateCreationDateTime": now},
        }
        for place, image in enumerate(images)
    ]


def _image(delta: Delta) -> Image:
    """Make the item the aggregator would have written."""
    program = delta.program
    key = program.key(delta.group, _ANY_FEED)
    image = {name: {"S": text} for name, text in {**program.unparsed(delta.group, key), **key}.items()}
    image |= {name: {"N": format_number(number)} for name, number in delta.measures.items()}
    return {**image, TYPE: {"S": program.name}}


def _group(delta: Delta, image: Image) -> Group:
    declaration = delta.program.declaration
    values = delta.program.values(delta.group)
    if isinstance(declaration, Aggregate):
        return group_of(declaration, values, [image])
    return Group({name.lstrip("_"): text for name, text in values.items()}, delta.measures)
