"""Layouts: where packed events live and for how long, as the table itself holds it, so that all processes agree.

An item per event holds its layouts and retentions, each with the event time from which on it holds. A process uses the
item's, not its own declaration's, and reads it once a minute; a new layout and a longer retention must lie ahead by
more than that: a bucket never outlives a chunk that it may have.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from dynamodb_counters._assumptions import FRESH, WIDE_MARGIN
from dynamodb_counters._declarations import Event
from dynamodb_counters._items.attributes import Image, present, text_reader
from dynamodb_counters._items.bookkeeping import bookkeeping_item, put_as_seen, typed_values
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.key_templates import key_template
from dynamodb_counters._items.table_schema import LAYOUT, MAX_SK_BYTES, PACK_PREFIX, PK, SK
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import LayoutError

_LAYOUTS: Final = "layouts"
_TOLERANCE: Final = "tolerance"
_RETENTIONS: Final = "retentions"
_ANY: Final = 10**12
"""Tolerance of a process that accepts any time, in seconds."""

_PART_OF_TENANT: Final = key_template("{part}#{tenant}", MAX_SK_BYTES, "pk")


Retentions: TypeAlias = tuple[tuple[float, float], ...]
"""From which start of a bucket on, and for how long, both in seconds; oldest first, each longer than the one before."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Part, tenant and bucket of the events from `since` on, in seconds since 1970."""

    since: float
    time: str
    bucket: int
    parts: int
    partition_by: str | None
    tenant: str | None

    def part(self, digest: bytes, values: Image) -> str:
        """The part of an event, and its tenant, as chunks are keyed by them."""
        number = 0
        if self.parts > 1:
            text = digest if self.partition_by is None else text_reader(self.partition_by)(values).encode()
            number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) % self.parts
        return self._named(number, values)

    def all_parts(self, values: Image) -> list[str]:
        """Those that events may be in of the tenant that the values name, if there are tenants."""
        return [self._named(number, values) for number in range(self.parts)]

    def _named(self, number: int, values: Image) -> str:
        if self.tenant is None:
            return str(number)
        return _PART_OF_TENANT.render({"part": number, "tenant": text_reader(self.tenant)(values)})


def layout_of(layouts: Iterable[Layout], values: Image) -> tuple[Layout, int] | None:
    """The newest layout that holds for an event, and the event's time in whole seconds; None for a plain item."""
    for layout in layouts:
        seconds = event_seconds(present(values.get(layout.time), layout.time))
        if seconds >= layout.since:
            return layout, seconds
    return None


def retained(held: Retentions, declared: float, since: float) -> Retentions:
    """Retentions that hold once one is declared: a longer one from `since` on, a shorter one for all.

    >>> retained(((-math.inf, 60),), 90, since=500)
    ((-inf, 60), (500, 90))
    >>> retained(((-math.inf, 60), (500, 90)), 30, since=900)
    ((-inf, 30),)
    """
    if declared > held[-1][1]:
        return (*held, (max(since, held[-1][0]), declared))
    within = [(begin, min(retention, declared)) for begin, retention in held]
    return tuple(each for index, each in enumerate(within) if not index or each[1] > within[index - 1][1])


@dataclass(frozen=True, slots=True)
class Agreed:
    """Entry of an event in the table's item: `layouts` as text, and how far ahead any process accepts events."""

    text: str
    tolerance: int
    retentions: Retentions

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Newest first."""
        found = [Layout(-math.inf if since is None else since, *others) for since, *others in json.loads(self.text)[1:]]
        return tuple(reversed(found))

    def retention(self, start: float) -> float:
        """For how long the events of the bucket that begins then are remembered after its end, in seconds."""
        return next(retention for since, retention in reversed(self.retentions) if since <= start)

    def merged(self, event: Event, now: float) -> Agreed:
        """With what is declared; `LayoutError` if that is no change from a date on that lies ahead."""
        own = declared_layouts(event)
        tolerance = max(self.tolerance, own.tolerance)
        text, reach = self.text, now + tolerance + WIDE_MARGIN
        if not (own.text == text or _extends(text, own.text)):
            # All layouts that the text lacks lie ahead of events that may have been accepted without them.
            if not (_extends(own.text, text) and json.loads(own.text)[len(json.loads(text))][0] >= reach):
                raise LayoutError(
                    f"invalid packed={event.packed!r}: expected what the table has for {event.name!r}, {text}; "
                    "a change needs a date `since` that lies ahead by an hour and the future tolerance"
                )
            text = own.text
        retentions = retained(self.retentions, own.retentions[0][1], reach)
        if retentions[-1][0] >= _ANY:
            longest = timedelta(seconds=self.retentions[-1][1])
            raise LayoutError(
                f"invalid retention={event.retention}: expected at most {longest}, which the table has for "
                f"{event.name!r}; where `future_tolerance=None` was declared, no time lies ahead of all events"
            )
        return Agreed(text, tolerance, retentions)


class Layouts(Remembered):
    """Layouts of a table's events in its item, as one process knows them."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._known: dict[str, tuple[float, Event, Agreed]] = {}

    def of(self, event: Event) -> Agreed:
        """`LayoutError` if the event is declared otherwise than the table has it."""
        now = self._table.clock()
        if event.name in self._known:
            read_at, declared, agreed = self._known[event.name]
            if now < read_at + FRESH and declared == event:
                return agreed
        for _ in self._table.tries():
            held = self._held(event)
            agreed = declared_layouts(event) if held is None else held.merged(event, now)
            if agreed == held or self._put(event, held, agreed):
                self._known[event.name] = now, event, agreed
                return agreed
        raise LayoutError(f"the layout of {event.name!r} changes all the time")

    def held(self, event: Event) -> tuple[Layout, ...]:
        """For those who only read: what the table has, or what is declared if it has none yet."""
        return (self._held(event) or declared_layouts(event)).layouts

    def _held(self, event: Event) -> Agreed | None:
        for item in self._table.partition(PACK_PREFIX + event.name, LAYOUT):
            retentions = tuple(
                (-math.inf if since is None else since, math.inf if retention is None else retention)
                for since, retention in json.loads(item[_RETENTIONS]["S"])
            )
            return Agreed(item[_LAYOUTS]["S"], int(item[_TOLERANCE]["N"]), retentions)
        return None

    def _put(self, event: Event, held: Agreed | None, agreed: Agreed) -> bool:
        item = bookkeeping_item({PK: {"S": PACK_PREFIX + event.name}, SK: {"S": LAYOUT}}, _values(agreed))
        seen = {} if held is None else typed_values(_values(held))
        return self._table.write("put_item", **put_as_seen(self._table.name, item, seen, seen))


def _values(agreed: Agreed) -> dict[str, Any]:
    finite = [[each if math.isfinite(each) else None for each in pair] for pair in agreed.retentions]
    return {_LAYOUTS: agreed.text, _TOLERANCE: agreed.tolerance, _RETENTIONS: json.dumps(finite)}


def declared_layouts(event: Event) -> Agreed:
    """Layouts as declared, as text, oldest first, with the key that identifies it."""
    assert event.packed is not None
    layouts = [
        [one.since and one._first_second, one.time, one._bucket_seconds, one.parts, one.partition_by, one.tenant]
        for one in event.packed._layouts
    ]
    text = json.dumps([[event.pk, event.sk], *reversed(layouts)])
    ahead = event.packed.future_tolerance
    tolerance = _ANY if ahead is None else math.ceil(ahead.total_seconds())
    retention = math.inf if event.retention is None else event.retention.total_seconds()
    return Agreed(text, tolerance, ((-math.inf, retention),))


def _extends(newer: str, older: str) -> bool:
    """Whether the newer text only has more layouts."""
    return bool(older) and newer.startswith(older[:-1] + ",")
