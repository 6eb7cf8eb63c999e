"""Pages of events and of groups, each beginning right after the last one of the page before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeAlias

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.parameters import SPAN, Position, QueryParameters
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._timeline.tiers import utc

MAX_PAGE_BYTES: Final = 1_000_000
"""Bytes of JSON, which is escaped once more in a function's response of 6 MB at most."""

MAX_PAGE_SECONDS: Final = 2.0
"""After this, a page ends with what was found: a filter may find nothing for long."""

_SLICE_SECONDS: Final = 0.1

Clock: TypeAlias = Callable[[], float]
Read: TypeAlias = Callable[..., Iterable[Mapping[str, Any]]]
Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]
"""Events to list, in order, with their positions; a position alone is one where a page may end."""


def page_of(kind: str, entries: Entries, parameters: QueryParameters, clock: Clock) -> dict[str, Any]:
    """Entries after the page before, as many as a page holds, and the token of the page after it, if there is one."""
    after = last = parameters.after()
    found, size = list[Mapping[str, Any]](), 0
    limit, deadline = parameters.integer("limit"), clock() + MAX_PAGE_SECONDS
    for position, values in entries:
        if values is None:
            if clock() >= deadline:
                return {kind: found, "next": position.token}
        elif position > after:
            size += len(write_json(values))
            if len(found) == limit or (found and size > MAX_PAGE_BYTES):
                return {kind: found, "next": last.token}
            found.append(values)
            last = position
    return {kind: found, "next": None}


def event_page(
    counters: Counters, event: Event, wanted: Mapping[str, str], parameters: QueryParameters, clock: Clock
) -> dict[str, Any]:
    """A page of the events that a request's parameters select: by time and key, or plain ones by sort key."""
    # Before anything is read, so that a span without events refuses them as well.
    after = parameters.after()
    read = partial(counters.events, event, wanted, consistent=parameters.consistent())
    if event.packed is None:
        entries: Entries = ((_position(event, values), values) for values in read(after=after.sk))
    else:
        entries = _by_time(event, event.packed, parameters, read, clock)
    return page_of("events", entries, parameters, clock)


def _by_time(event: Event, packed: Packed, parameters: QueryParameters, read: Read, clock: Clock) -> Entries:
    """Each event with its position, and a position alone where a span of time begins that takes another read."""
    start, end = (parameters.moment(name) for name in SPAN)
    start, bucket, width = max(start, utc(parameters.after().seconds)), packed._bucket_seconds, 1
    while start < end:
        begin = math.floor(start.timestamp())
        yield Position(begin, "", ""), None
        asked_at = clock()
        boundary = (begin // bucket + width) * bucket
        until = utc(boundary) if boundary < end.timestamp() else end
        found = [(_position(event, values), values) for values in read(start=start, end=until)]
        # Chunks grow while a client pages through them: only an event's own time and key hold their place.
        yield from sorted(found, key=itemgetter(0))
        width = width * 2 if clock() - asked_at < _SLICE_SECONDS else 1
        start = until


def _position(event: Event, values: Mapping[str, Any]) -> Position:
    pk, sk = event._pk_template.render(values), event._sk_template.render(values)
    if event.packed is None:
        return Position(0, pk, sk)
    time = values[event.packed.time]
    return Position(event_seconds({"S": time} if isinstance(time, str) else {"N": str(time)}), pk, sk)
