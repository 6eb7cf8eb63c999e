"""Layouts: where packed events live, as the table itself holds it, so that no process looks for them elsewhere.

An item per event holds its layouts, each with the event time from which on it holds. A process uses the item's, not its
own declaration's, and reads it once a minute; a new layout must lie ahead by more than that.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.attributes import Image, text_reader
from dynamodb_counters._items.event_times import event_seconds
from dynamodb_counters._items.table_schema import CHECKPOINT, LAYOUT, PACK_PREFIX, PK, SK, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import HOUR, MINUTE
from dynamodb_counters.errors import LayoutError, MalformedImageError

_LAYOUTS: Final = "layouts"
_TOLERANCE: Final = "tolerance"
_ANY: Final = 10**12
"""Tolerance of a process that accepts any time, in seconds."""

_FRESH: Final = MINUTE
_AHEAD: Final = HOUR
"""How far the date of a new layout lies ahead, beside what events may: processes and their clocks have an hour."""

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """Part and bucket of the events from `since` on, in seconds since 1970."""

    since: float
    time: str
    bucket: int
    parts: int
    by: str | None

    def part(self, digest: bytes, values: Image) -> int:
        if self.parts == 1:
            return 0
        text = digest if self.by is None else text_reader(self.by)(values).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) % self.parts


def layout_of(layouts: Iterable[Layout], values: Image) -> tuple[Layout, int] | None:
    """The newest layout that holds for an event, and the event's time in whole seconds; None for a plain item."""
    for layout in layouts:
        value = values.get(layout.time)
        if value is None:
            raise MalformedImageError(f"attribute {layout.time!r} is missing")
        seconds = event_seconds(value)
        if seconds >= layout.since:
            return layout, seconds
    return None


class Layouts:
    """The layouts of one table's events, newest first, as one process knows them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[str, tuple[float, Event, tuple[Layout, ...]]] = {}

    @classmethod
    def of_table(cls, table: Table) -> Layouts:
        found: Layouts = table.remembered.setdefault("layouts", cls(table))
        return found

    def of(self, event: Event) -> tuple[Layout, ...]:
        """`LayoutError` if the event is declared otherwise than the table has it."""
        now = self._table.clock()
        if event.name in self._known:
            read_at, declared, layouts = self._known[event.name]
            if now < read_at + _FRESH and declared == event:
                return layouts
        layouts = self._agreed(event, now)
        self._known[event.name] = now, event, layouts
        return layouts

    def held(self, event: Event) -> tuple[Layout, ...]:
        """For those who only read: what the table has, or what is declared if it has none yet."""
        text, _ = self._held(event)
        return _parsed(text or _declared(event))

    def _agreed(self, event: Event, now: float) -> tuple[Layout, ...]:
        own, own_tolerance = _declared(event), _tolerance(event)
        for _ in self._table.tries(_TRIES):
            held, tolerance = self._held(event)
            if held == own or _extends(held, own):
                if own_tolerance <= tolerance:
                    return _parsed(held)
                own = held
            elif held and not (_extends(own, held) and _is_ahead(own, held, now + max(tolerance, own_tolerance))):
                raise LayoutError(
                    f"invalid packed={event.packed!r}: expected what the table has for {event.name!r}, {held}; "
                    "a change needs a date `since` that lies ahead by an hour and the future tolerance"
                )
            if self._put(event, (held, tolerance), (own, max(tolerance, own_tolerance))):
                return _parsed(own)
        raise LayoutError(f"the layout of {event.name!r} changes all the time")

    def _held(self, event: Event) -> tuple[str, int]:
        """The layouts that the table has, "" for none, and how far ahead any process accepts events."""
        found = self._table.client.query(
            TableName=self._table.name,
            KeyConditionExpression=f"{PK} = :pk AND {SK} = :sk",
            ExpressionAttributeValues={":pk": {"S": PACK_PREFIX + event.name}, ":sk": {"S": LAYOUT}},
            ConsistentRead=True,
        )
        return next(((item[_LAYOUTS]["S"], int(item[_TOLERANCE]["N"])) for item in found["Items"]), ("", 0))

    def _put(self, event: Event, held: tuple[str, int], new: tuple[str, int]) -> bool:
        request: dict[str, Any] = {
            "TableName": self._table.name,
            "Item": {
                PK: {"S": PACK_PREFIX + event.name},
                SK: {"S": LAYOUT},
                TYPE: {"S": CHECKPOINT},
                _LAYOUTS: {"S": new[0]},
                _TOLERANCE: {"N": str(new[1])},
            },
            "ConditionExpression": f"attribute_not_exists({PK})",
        }
        if held[0]:
            request["ConditionExpression"] = f"{_LAYOUTS} = :held AND {_TOLERANCE} = :tolerance"
            request["ExpressionAttributeValues"] = {":held": {"S": held[0]}, ":tolerance": {"N": str(held[1])}}
        try:
            self._table.client.put_item(**request)
        except self._table.client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _declared(event: Event) -> str:
    """The layouts of an event as text, oldest first, with the key that identifies it."""
    assert event.packed is not None
    layouts = [
        [layout.since and layout.first_second, layout.time, layout.bucket_seconds, layout.parts, layout.by]
        for layout in event.packed.layouts
    ]
    return json.dumps([[event.pk, event.sk], *reversed(layouts)])


def _parsed(text: str) -> tuple[Layout, ...]:
    layouts = [Layout(-math.inf if since is None else since, *others) for since, *others in json.loads(text)[1:]]
    return tuple(reversed(layouts))


def _extends(newer: str, older: str) -> bool:
    """Whether the newer text only has more layouts."""
    return bool(older) and newer.startswith(older[:-1] + ",")


def _is_ahead(newer: str, older: str, reach: float) -> bool:
    """Whether all layouts that the older text lacks lie ahead of events that may have been accepted without them."""
    first = json.loads(newer)[len(json.loads(older))]
    return bool(first[0] >= reach + _AHEAD)


def _tolerance(event: Event) -> int:
    assert event.packed is not None
    tolerance = event.packed.future_tolerance
    return _ANY if tolerance is None else math.ceil(tolerance.total_seconds())
