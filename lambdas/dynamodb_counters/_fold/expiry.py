"""Items that expire, or are erased, and stay counted: in which declarations, and in which groups at the latest. Pure.

Nothing else shows it later: the items are gone. A group with a time in its key that begins after all that has expired
has counted none of it, whatever the retention was, and however long before its time an event was accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.item_layout import GroupKey
from dynamodb_counters._fold.plan import Plan, Source
from dynamodb_counters._fold.records import OLD, Change, Record, is_erasure, is_expiry
from dynamodb_counters._items.chunks import decode_chunk
from dynamodb_counters._items.conditions import Image, reader, text_reader
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._items.derived_fields import tier_of
from dynamodb_counters._items.table_schema import CHUNK
from dynamodb_counters._timeline.tiers import BY_LETTER, HOUR, Tier


def expired_until(plan: Plan, changes: Iterable[Change]) -> dict[str, float]:
    """Declarations that go on counting what has expired; and the time from which on their groups count none of it."""
    found: dict[str, float] = {}
    for change in changes:
        if change.delta is None and _is_leaving(change.record):
            try:
                expired = list(_expired(plan, change))
            except UNFOLDABLE:
                # The fold leaves it to quarantine.
                continue
            for name, until in expired:
                found[name] = max(until, found.get(name, until))
    return found


def begin_of(declaration: Declaration, group: GroupKey) -> float | None:
    """When a group begins that has a time in its key."""
    if isinstance(declaration, Window):
        return BY_LETTER[group[-2]].start(group[-1])
    timed = _timed(declaration)
    if timed is None:
        return None
    field, tier = timed
    return tier.start(tier.parse(group[declaration.fields.index(field)]))


def _is_leaving(record: Record) -> bool:
    """Whether an item is deleted, or rows of erased events are taken out of a chunk."""
    name = record.get("eventName")
    return name == "REMOVE" or (name == "MODIFY" and is_erasure(record))


def _expired(plan: Plan, change: Change) -> Iterator[tuple[str, float]]:
    image = change.record["dynamodb"][OLD]
    for source in plan.sources(image, is_foreign=change.is_foreign):
        if is_expiry(change.record, source.ttl):
            for program in source.programs:
                if program.keeps:
                    yield program.layout.name, _until(program.layout.declaration, source, image)


def _until(declaration: Declaration, source: Source, image: Image) -> float:
    begin = _begin(declaration)
    if begin is None:
        return math.inf
    try:
        if source.packs:
            shown: list[Image] = [row.values for row in decode_chunk(image[CHUNK]).all_rows()]
        else:
            shown = [source.show(image) or image if source.show is not None else image]
        latest = max(map(begin, shown), default=math.inf)
        # Rounded up, so that it is seldom written.
        return latest if math.isinf(latest) else (latest // HOUR + 1) * HOUR
    except UNFOLDABLE:
        return math.inf


def _begin(declaration: Declaration) -> Callable[[Image], float] | None:
    """A function that returns the latest time at which a group begins that counts an image."""
    if isinstance(declaration, Window):
        find = reader(declaration.time)
        return lambda image: event_seconds(find(image) or {})
    timed = _timed(declaration)
    if timed is None:
        return None
    field, tier = timed
    read = text_reader(field, literal=isinstance(declaration.source, Aggregate))
    return lambda image: tier.start(tier.parse(read(image)))


def _timed(declaration: Aggregate) -> tuple[str, Tier] | None:
    timed = ((field, tier_of(field)) for field in declaration.fields)
    return next(((field, tier) for field, tier in timed if tier is not None), None)
