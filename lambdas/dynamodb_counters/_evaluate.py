"""Evaluate declarations over plain items by the code that also runs in Lambda, without a table or a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dynamodb_counters._declarations import Aggregate, Declarable, Event, Items, flatten
from dynamodb_counters._declarations.groups import Group, group_of, identity
from dynamodb_counters._fold.contributions import UNDATED
from dynamodb_counters._fold.deltas import Delta, Unfoldable, group_image, item_of
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, changes_of, inserted
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import plain_value
from dynamodb_counters._items.table_schema import is_reserved
from dynamodb_counters.errors import InvalidArgumentError

Declaration: TypeAlias = Declarable
"""The type of all that count, by its public name."""


def evaluate(
    declared: Iterable[Declaration],
    items: Iterable[tuple[Event | Items, Mapping[str, Any]]],
    *,
    now: float | None = None,
) -> dict[str, list[Group]]:
    """Count items as the aggregator would, to test declarations or to verify a table against its events.

    Parameters
    ----------
    declared : iterable of Aggregate, Window, Distinct, ActiveMembers, Percentiles or Extremes
        Declarations to count by.
    items : iterable of (Event or Items, mapping)
        Source and attributes of each item, in the order of writing. Among several events with one key the first counts,
        or that with the greatest version; among several `Items` with one key the last, if they hold their keys.
    now : float, optional
        Arrival time of all items, in seconds since 1970. Required by windows that have a retention or refuse future
        events, and by aggregates and `Distinct` with a retention. Without it, packed events may have any time.

    Returns
    -------
    dict of str to list of Group
        Groups by the declaration's name. A window has one group per bucket of each tier: its values hold the tier and
        the start of the bucket, its measures the total and the slots.

    Raises
    ------
    InvalidArgumentError
        The declarations contradict each other; or an item cannot be counted, or stored: `accept` would refuse it.

    Examples
    --------
    >>> from dynamodb_counters import Count
    >>> view = Event("view", pk="URL#{url}", sk="T#{time}")
    >>> views = Aggregate("views", view, pk="URL#{url}", sk="STATISTICS", views=Count())
    >>> evaluate([views], [(view, {"url": "/", "time": "1"}), (view, {"url": "/", "time": "2"})])["views"]
    [Group(values={'url': '/'}, measures={'views': 2}, complete=True)]
    """
    plan = Plan(flatten(declared))
    results: dict[str, list[Group]] = {}
    images = _images(items, now)
    while images:
        folded = fold(plan, changes_of(inserted(image, now, index) for index, image in enumerate(images)))
        if folded.unfoldable:
            raise _refusal(folded.unfoldable[0])
        written: dict[Any, dict[str, Any]] = {}
        for delta in folded.deltas:
            results.setdefault(delta.layout.name, []).append(_group(delta, group_image(delta)))
            item = item_of(delta)
            written.setdefault(identity(item), {}).update(item)
        images = [*written.values()]
    return results


def _refusal(found: Unfoldable) -> InvalidArgumentError:
    if UNDATED in found.reason:
        return InvalidArgumentError("now", None, f"the time of arrival, which decides for {', '.join(found.names)}")
    image = found.record["dynamodb"][NEW]
    values = {name: plain_value(value) for name, value in image.items() if not is_reserved(name)}
    return InvalidArgumentError("items", values, f"items that all declarations can count; {found.reason}")


def _images(items: Iterable[tuple[Event | Items, Mapping[str, Any]]], now: float | None) -> list[Image]:
    # Imported here: they bring botocore, which nothing else in this module needs.
    from dynamodb_counters._writes.event_items import typed_item  # noqa: PLC0415
    from dynamodb_counters._writes.insert import is_newer  # noqa: PLC0415
    from dynamodb_counters._writes.packed_accept import refusal  # noqa: PLC0415

    different: dict[Any, Image] = {}
    for index, (source, values) in enumerate(items):
        if isinstance(source, Event):
            image = typed_item(source, values)
            refused = refusal(source, image, now) if source.packed is not None else None
            if refused is not None:
                raise refused.error or ValueError(refused.reason)
            key, version = identity(image), source.version
            if key not in different or (version and is_newer(image[version], different[key][version])):
                different[key] = image
        else:
            image = typed_item(None, values)
            names = (source._table_keys.partition_key, source._table_keys.sort_key)
            place = tuple(repr(image.get(name)) for name in names if name is not None)
            different[place if repr(None) not in place else index] = image
    return list(different.values())


def _group(delta: Delta, image: Image) -> Group:
    declaration = delta.layout.declaration
    values = delta.layout.values(delta.group)
    if isinstance(declaration, Aggregate):
        return group_of(declaration, values, [image])
    return Group({name.lstrip("_"): text for name, text in values.items()}, delta.measures)
