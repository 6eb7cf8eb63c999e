"""Pages of events and of groups, each beginning right after the last one of the page before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.parameters import SPAN, Position, QueryParameters
from dynamodb_counters._http.problems import bad_request
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._timeline.times import utc

MAX_PAGE_BYTES: Final = 1_000_000
"""Bytes of JSON, which is escaped once more in a function's response of 6 MB at most."""

MAX_PAGE_SECONDS: Final = 2.0
"""After this, a page ends with what was found: a filter may find nothing for long."""

_SLICE_SECONDS: Final = 0.1


class Page(NamedTuple):
    """Events or groups, and the position they end at unless they are the last."""

    found: list[Mapping[str, Any]]
    end: Position | None

    @property
    def next(self) -> str | None:
        """Token of the page after this one."""
        return self.end and self.end.token


Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]
"""Events to list, in order, with their positions; a position alone is one where a page may end."""


def page_of(entries: Entries, parameters: QueryParameters, clock: Callable[[], float]) -> Page:
    """Entries after the page before, as many as a page holds."""
    after = last = parameters.after()
    found, size = list[Mapping[str, Any]](), 0
    limit, deadline = parameters.limit(), clock() + MAX_PAGE_SECONDS
    for position, values in entries:
        if values is None:
            if clock() >= deadline:
                return Page(found, position)
        elif position > after:
            size += len(write_json(values))
            if len(found) == limit or (found and size > MAX_PAGE_BYTES):
                return Page(found, last)
            found.append(values)
            last = position
    return Page(found, None)


class EventListing:
    """The events of a declaration that a request's parameters select: by time and key, or plain ones by sort key."""

    def __init__(
        self, counters: Counters, event: Event, parameters: QueryParameters, clock: Callable[[], float]
    ) -> None:
        self._counters = counters
        self._event = event
        self._parameters = parameters
        self._clock = clock
        self._after = parameters.after()
        # Before anything is read, so that a span without events refuses them as well.
        self._wanted = parameters.values(event.fields)
        self._consistent = parameters.consistent()

    def page(self) -> Page:
        return page_of(self._in_order(), self._parameters, self._clock)

    def _in_order(self) -> Iterator[tuple[Position, Mapping[str, Any] | None]]:
        """Each event with its position, and a position alone where a span of time begins that takes another read."""
        if self._event.packed is None:
            listed = self._counters.events(self._event, self._wanted, after=self._after.sk, consistent=self._consistent)
            yield from ((self._position(values), values) for values in listed)
            return
        start, end = (self._parameters.moment(name) for name in SPAN)
        *_, oldest = self._event.packed._layouts
        if oldest.since is not None and start < oldest.since:
            raise bad_request(f"invalid start: expected {oldest.since.isoformat()} or later, when packing began")
        start, bucket, width = max(start, utc(self._after.seconds)), self._event.packed._bucket_seconds, 1
        while start < end:
            begin = math.floor(start.timestamp())
            yield Position(begin, "", ""), None
            asked_at = self._clock()
            boundary = (begin // bucket + width) * bucket
            until = utc(boundary) if boundary < end.timestamp() else end
            found = [(self._position(values), values) for values in self._read(start, until)]
            # Chunks grow while a client pages through them: only an event's own time and key hold their place.
            yield from sorted(found, key=itemgetter(0))
            width = width * 2 if self._clock() - asked_at < _SLICE_SECONDS else 1
            start = until

    def _read(self, start: datetime, end: datetime) -> Iterator[Mapping[str, Any]]:
        return self._counters.events(self._event, self._wanted, start=start, end=end, consistent=self._consistent)

    def _position(self, values: Mapping[str, Any]) -> Position:
        pk, sk = self._event._pk_template.render(values), self._event._sk_template.render(values)
        for layout in self._event.packed._layouts if self._event.packed is not None else ():
            time = values[layout.time]
            seconds = event_seconds({"S": time} if isinstance(time, str) else {"N": str(time)})
            if seconds >= layout._first_second:
                return Position(seconds, pk, sk)
        return Position(0, pk, sk)
