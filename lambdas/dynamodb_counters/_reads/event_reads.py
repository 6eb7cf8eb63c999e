"""Read events back, packed or not, by the keys that those of a span of time have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._declarations.checks import require_attribute
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._declarations.sources import EventIdentity, digest_of
from dynamodb_counters._items.chunks import MAX_NUMBER, Chunk, chunk_bucket, chunk_key, decode_chunk
from dynamodb_counters._items.conditions import Image, reader, text_reader
from dynamodb_counters._items.conversions import LAST_CHARACTER, event_seconds, key_text, plain_value
from dynamodb_counters._items.table_schema import CHUNK, ONCE_SUFFIX, SK, TTL, TYPE, is_reserved
from dynamodb_counters._layouts import Layouts, all_parts, part_of
from dynamodb_counters._reads.table_reads import Item, TableReads, query
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import FIRST_SECOND, LAST_SECOND, seconds_of
from dynamodb_counters.errors import InvalidArgumentError

Range: TypeAlias = tuple[str, str]
"""First and last key."""

_DAYS: Final = ("%Y-%m-%d", "%Y%m%d", "%G-W%V", "%GW%V")
"""All ways in which ISO 8601 texts of a moment may begin, by the day or the week."""

_WIDEST_OFFSET: Final = timedelta(days=1)
_FIRST: Final = 10**9
_LAST: Final = 10**10
"""Between these, seconds since 1970 have ten digits, and milliseconds begin with the same ten."""


def time_ranges(prefix: str, start: float, end: float) -> list[Range]:
    """The ranges, in order and apart; all keys with the prefix where the span has no end, or times sort otherwise."""
    if not _FIRST + 86_400 <= start < end <= _LAST - 86_400:
        return [(prefix, prefix + LAST_CHARACTER)]
    earliest = datetime.fromtimestamp(start, UTC) - _WIDEST_OFFSET
    latest = datetime.fromtimestamp(end, UTC) + _WIDEST_OFFSET
    texts = [(f"{earliest:{form}}", f"{latest:{form}}") for form in _DAYS]
    found: list[Range] = []
    for low, high in sorted([*texts, (str(int(start)), str(int(end)))]):
        first, last = prefix + low, prefix + high + LAST_CHARACTER
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


Wanted: TypeAlias = Mapping[str, str]
Timespan: TypeAlias = tuple[float, float]
Filter: TypeAlias = Callable[[Image], bool]

_ANY_TIME: Final = (-math.inf, math.inf)
_BY_PARTITION: Final = "events that are not packed are read by partition"
_BY_TENANT: Final = "the chunks of each have keys of their own"


class EventReads(TableReads):
    def events(
        self,
        event: Event,
        values: Given = None,
        /,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        time: str | None = None,
        after: str = "",
        consistent: bool = False,
        **fields: object,
    ) -> Iterator[dict[str, Any]]:
        """Read accepted events back, page by page as they are asked for; retracted and replaced ones are left out.

        Packed events come bucket by bucket, by one Query per part: a read unit per 8 KB of chunks. The others of a
        partition come in the order of their sort key, and all of the partition are read, unless the sort key begins
        with `time`, and both `start` and `end` are given: then those of these days.

        Parameters
        ----------
        event : Event
        values : mapping of str to str or number, optional
            Attributes that the events have, as a mapping where a name is an option's: ``{"time": noon}``.
        start, end : datetime, optional
            The events' times, from `start` to before `end`, both with a time zone. Default: any.
        time : str, optional
            The attribute that holds the time of an event that is not packed, where `start` or `end` is given.
        after : str, optional
            For events that are not packed: only those whose sort keys come after this one. Default: all.
        consistent
            As in `get`.
        **fields : str or number
            Attributes that the events have: at least all fields of `pk`; of a packed event, its tenant. Default: any.

        Returns
        -------
        iterator of dict
            Attributes as Python values; numbers are int or Decimal, binary is bytes.

        Examples
        --------
        >>> next(counters.events(VIEW, url="/"))  # doctest: +SKIP
        {'url': '/', 'time': '2026-11-20T10:00:00Z', 'clientId': 'c1'}
        """
        require_declaration(event, Event)
        wanted = {name: key_text(name, value) for name, value in event._canonical(given(values, fields)).items()}
        for name in wanted:
            require_attribute("values", name)
        first = -math.inf if start is None else seconds_of("start", start)
        last = math.inf if end is None else seconds_of("end", end)
        listing = _Listing(self._table, event, wanted, consistent)
        if event.packed is None:
            _require_values(event._pk_template.fields, wanted, _BY_PARTITION)
            if not isinstance(time, str) and (time, start, end) != (None, None, None):
                allowed = "the attribute that holds the events' time, if start or end is given"
                raise InvalidArgumentError("time", time, allowed)
            return listing.plain(time, (first, last), after)
        _require_values(event.packed._tenants, wanted, _BY_TENANT)
        if after:
            raise InvalidArgumentError("after", after, "no sort key for a packed event: chunks have others")
        if time is not None:
            raise InvalidArgumentError("time", time, "None for a packed event: `Packed` names the attribute")
        return listing.packed(event.packed, (first, last))


@dataclass(frozen=True)
class _Listing:
    """The events of a declaration that have the wanted values."""

    table: Table
    event: Event
    wanted: Wanted
    consistent: bool

    def plain(self, time: str | None, span: Timespan, after: str = "") -> Iterator[dict[str, Any]]:
        """Items of their own, by sort key."""
        pk, now = self.event._pk_template.render(self.wanted), self.table.clock()
        is_wanted, is_timely, keys = _filter(self.wanted), _time_filter(time, span), self.event._sk_template
        for first, last in time_ranges(keys.prefix, *(span if keys.fields[:1] == (time,) else _ANY_TIME)):
            if last <= after:
                continue
            # No key is empty, a template's prefix may be.
            for item in query(self.table, pk, (max(first, after, " "), last), consistent=self.consistent):
                is_kept = TTL not in item or float(item[TTL]["N"]) > now
                is_event = item.get(TYPE, {}).get("S") in (self.event.name, self.event.name + ONCE_SUFFIX)
                if item[SK]["S"] > after and is_event and is_kept and is_wanted(item) and is_timely(item):
                    yield _plain(item)

    def packed(self, packed: Packed, span: Timespan) -> Iterator[dict[str, Any]]:
        """Rows of chunks, by bucket."""
        Layouts.of_table(self.table).require(self.event)
        streams = [self._chunks(packed, part, span) for part in parts_of_wanted(self.event, packed, self.wanted)]
        identity, is_timely = EventIdentity(self.event), _time_filter(packed.time, span)
        for _, chunks in groupby(merge(*streams, key=_bucket), key=_bucket):
            live: dict[bytes, Image] = {}
            for item in chunks:
                chunk = decode_chunk(item[CHUNK])
                # A row that is taken back has the values that were accepted, so rows of other events need no look.
                for row in chunk.rows_at(_places(chunk, self.wanted)):
                    digest = identity.digest(row.values)
                    if row.sign == "+":
                        live[digest] = row.values
                    else:
                        live.pop(digest, None)
            yield from (_plain(image) for image in live.values() if is_timely(image))

    def _chunks(self, packed: Packed, part: str, span: Timespan) -> Iterator[Item]:
        begin, finish = max(FIRST_SECOND, span[0]), min(LAST_SECOND, span[1])
        name, retention, bucket = self.event.name, self.event.retention, packed._bucket_seconds
        if retention is not None:
            # An event that is refused as too late is read no more either, though it may not be deleted yet.
            begin = max(begin, (self.table.clock() - retention.total_seconds()) // bucket * bucket)
        if begin < finish:
            yield from query(self.table, *chunk_range(name, part, bucket, (begin, finish)), consistent=self.consistent)


def _require_values(names: Iterable[str], wanted: Wanted, why: str) -> None:
    if missing := [name for name in names if name not in wanted]:
        raise InvalidArgumentError("values", dict(wanted), f"values for {', '.join(missing)}, as {why}")


def chunk_range(name: str, part: str, bucket: int, span: Timespan) -> tuple[str, tuple[str, str]]:
    """Where the chunks of a part lie: its partition key, the first and the last sort key of a time."""
    pk, first = chunk_key(name, part, int(span[0] // bucket * bucket), 0)
    _, last = chunk_key(name, part, (math.ceil(span[1]) - 1) // bucket * bucket, MAX_NUMBER)
    return pk, (first, last)


def parts_of_wanted(event: Event, packed: Packed, wanted: Wanted) -> Iterable[str]:
    image: Image = {name: {"S": text} for name, text in wanted.items()}
    if packed.partition_by is not None and packed.partition_by in wanted:
        return [part_of(packed, b"", image)]
    if packed.partition_by is None and wanted.keys() >= set(event.fields):
        digest = digest_of(event._pk_template.render(wanted), event._sk_template.render(wanted))
        return [part_of(packed, digest, image)]
    return all_parts(packed, image)


def _places(chunk: Chunk, wanted: Wanted) -> Sequence[int]:
    """Where the wanted rows of a chunk are."""
    places: Sequence[int] = range(chunk.rows)
    for name, text in wanted.items():
        kind, cells = chunk.columns.get(name, ("", ()))
        if kind == "S":
            places = [place for place in places if cells[place] == text]
        else:
            is_wanted, typed = _filter({name: text}), chunk.typed(name)
            places = [place for place in places if is_wanted({name: typed[place] or {}})]
    return places


def _filter(wanted: Wanted) -> Filter:
    readers = {name: (reader(name, literal=True), text_reader(name, literal=True)) for name in wanted}

    def holds(image: Image) -> bool:
        return all(
            (find(image) or {}).keys() & {"S", "N"} and text(image) == wanted[name]
            for name, (find, text) in readers.items()
        )

    return holds


def _time_filter(time: str | None, span: Timespan) -> Filter:
    if time is None or span == _ANY_TIME:
        return lambda _: True
    find = reader(time)

    def holds(image: Image) -> bool:
        value = find(image)
        if value is None:
            raise InvalidArgumentError("time", time, "an attribute that all events have")
        return span[0] <= event_seconds(value) < span[1]

    return holds


def _bucket(chunk: Item) -> str:
    return chunk_bucket(chunk[SK]["S"])


def _plain(image: Image) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in image.items() if not is_reserved(name)}
