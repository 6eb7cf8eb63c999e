"""Contributions of one item image to the buckets of a window: to one per tier, to its total and to one slot."""

from __future__ import annotations

from collections.abc import Callable

from dynamodb_counters._declarations import TimeWeighted, Window
from dynamodb_counters._declarations.measures import MOMENT
from dynamodb_counters._fold.contributions import (
    LATE,
    UNDATED,
    Contribute,
    Contribution,
    Numbers,
    compile_group,
    compile_measure,
    compile_where,
)
from dynamodb_counters._fold.item_layout import ItemLayout
from dynamodb_counters._items.conditions import Image, reader
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.errors import MalformedImageError


def compile_window(layout: ItemLayout, declaration: Window) -> Contribute:
    holds = compile_where(declaration)
    group_of = compile_group(declaration.fields)
    numbers_of = compile_measure(TOTAL, declaration.measure)
    is_weighted = isinstance(declaration.measure, TimeWeighted)
    find_time, time = reader(declaration.time), declaration.time
    tiers = declaration._kept_tiers
    is_late = _lateness(declaration)

    def contribute(image: Image, created: float | None) -> tuple[Contribution, ...]:
        if holds is not None and not holds(image):
            return ()
        [(_, number)] = numbers_of(image)
        if not number:
            return ()
        when = find_time(image)
        if when is None:
            raise MalformedImageError(f"attribute {time!r} is missing")
        seconds = event_seconds(when)
        if is_late(seconds, created):
            return LATE
        group = group_of(image)
        found = []
        for tier in tiers:
            bucket, slot = tier.locate(seconds)
            numbers: Numbers = ((TOTAL, number), (slot, number))
            if is_weighted and (moment := number * (seconds - tier.start(bucket))):
                numbers = (*numbers, (TOTAL + MOMENT, moment), (slot + MOMENT, moment))
            found.append((layout, (*group, tier.letter, bucket), numbers))
        return tuple(found)

    return contribute


def _lateness(declaration: Window) -> Callable[[int, float | None], bool]:
    """Judge an event by its record's creation time alone, so that every delivery judges alike."""
    time, finest = declaration.time, declaration._kept_tiers[0]
    retention, tolerance = declaration.retention, declaration.future_tolerance
    keep = None if retention is None else retention.total_seconds()
    ahead = None if tolerance is None else tolerance.total_seconds()
    if keep is None and ahead is None:
        return lambda *_: False

    def is_late(seconds: int, created: float | None) -> bool:
        if created is None:
            raise MalformedImageError(UNDATED)
        if ahead is not None and seconds > created + ahead:
            raise MalformedImageError(f"{time!r} lies {seconds - created:.0f} s in the future")
        # The finest bucket decides for all tiers, though coarser ones are kept longer. No read misses the event:
        # a window that includes it would begin before what is retained.
        if keep is None or finest.end(finest.locate(seconds)[0]) + keep > created:
            return False
        if declaration.late == "quarantine":
            raise MalformedImageError(f"{time!r} lies {created - seconds:.0f} s in the past: too late")
        return True

    return is_late
