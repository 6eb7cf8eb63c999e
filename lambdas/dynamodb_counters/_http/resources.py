"""The resources of the counter API: counts and events as JSON documents, page by page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import accumulate
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Packed, Window
from dynamodb_counters._declarations.composites import longest_of, read_by
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.parameters import (
    MAX_COUNT,
    OPTIONS,
    PATHS,
    SPAN,
    Position,
    QueryParameters,
    asked_of,
    body_values,
)
from dynamodb_counters._http.requests import ProblemError, bad_request, write_json
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._reads.group_reads import Extreme, Ranked, read_extremes
from dynamodb_counters._reads.span_reads import ActiveReader, Distribution, DistributionReader, read_distribution
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import Asked, SpanReader, count_intervals, count_series, series_spans
from dynamodb_counters._timeline.tiers import Span, plan_queries, read_cost, utc

MAX_PAGE_BYTES: Final = 1_000_000
"""Bytes of JSON, which is escaped once more in a function's response of 6 MB at most."""

MAX_PAGE_SECONDS: Final = 2.0
"""After this, a page ends with what was found: a filter may find nothing for long."""

_SLICE_SECONDS: Final = 0.1

Clock: TypeAlias = Callable[[], float]
Read: TypeAlias = Callable[..., Iterable[Mapping[str, Any]]]
Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]
"""Events to list, in order, with their positions; a position alone is one where a page may end."""

_NONE: Final[Bound] = MappingProxyType({})
MAX_READ_UNITS: Final = 650
"""Read units of one window or series, eventually consistent: 366 days of a window that declares its key only."""

MAX_UNITS: Final = 1300
"""Units of time of one read of percentiles: a page each, of 4 KB at most unless it has split, so 650 read units."""

_BATCH: Final = {"groups": ("aggregate", ()), "windows": ("window", OPTIONS["batch"])}
"""By the member of a batch: the member of an entry that names a declaration, and its options."""


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


Bound: TypeAlias = Mapping[str, str]
Values: TypeAlias = dict[str, str]


_Counted = TypeVar("_Counted")
_Declared = TypeVar("_Declared")
_Asked: TypeAlias = tuple[_Declared, Values, QueryParameters]


class CountResources:
    """Counts and events of the given declarations, of no values but those to which a caller is `bound`."""

    def __init__(
        self,
        counters: Counters,
        declarations: Iterable[Declaration | Event],
        clock: Clock,
    ) -> None:
        self._counters = counters
        self._table = counters._table  # noqa: SLF001 - the readers of many windows at once
        self._clock = clock
        self._served = dict[str, dict[str, Declaration | Event]]()
        for one in declarations:
            read = read_by(one) if isinstance(one, Aggregate) else "window" if isinstance(one, Window) else "events"
            self._served.setdefault(_section(read), {})[one.name] = one

    def read(self, name: str, query_string: str, bound: Bound = _NONE, *, resource: str) -> dict[str, Any]:
        """The answer to a request for a resource of a declaration, by the method that is named after it."""
        declared = self._declared(name, _section(resource))
        parameters = QueryParameters.parse(query_string, *asked_of(resource, declared), bound)
        answer: dict[str, Any] = getattr(self, f"_{resource}")(declared, parameters, parameters.values(declared.fields))
        return answer

    def _get(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        return group_json(aggregate.name, self._counters.get(aggregate, values, consistent=parameters.consistent()))

    def batch(self, document: object, bound: Bound = _NONE) -> dict[str, Any]:
        """Read groups of any aggregates and spans of any windows, as a request's body lists them."""
        is_object = isinstance(document, Mapping) and document and document.keys() <= _BATCH.keys()
        entries: Mapping[str, list[object]] = document if is_object else {}  # type: ignore[assignment]
        if not entries or not all(isinstance(kind, list) and 1 <= len(kind) <= MAX_COUNT for kind in entries.values()):
            expected = f"an object with members 'groups' or 'windows', arrays of 1 to {MAX_COUNT}"
            raise bad_request(f"invalid body: expected {expected}")
        groups, windows = (
            [self._requested(kind, index, entry, bound) for index, entry in enumerate(entries.get(kind, ()))]
            for kind in _BATCH
        )
        counted = self._counters.get_many([(aggregate, values) for aggregate, values, _ in groups])
        found = {
            "groups": [group_json(one.name, group) for (one, *_), group in zip(groups, counted, strict=True)],
            "windows": self._windows(windows, consistent=False),
        }
        answers = [*found["groups"], *found["windows"]]
        if len(_fitting(answers)) < len(answers):
            raise bad_request(f"the answer takes more than {MAX_PAGE_BYTES} bytes of JSON: request fewer")
        return {kind: found[kind] for kind in entries}

    def _groups(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        consistent = parameters.consistent()
        groups = self._counters.scan(aggregate, values, after=parameters.after().sk, consistent=consistent)
        listed = ((Position(0, "", key), group_json(aggregate.name, group)) for key, group in groups)
        return page_of("groups", listed, parameters, self._clock)

    def _top(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        ranked = self._counters.top(aggregate, values, count=parameters.integer("count"))
        return {"aggregate": aggregate.name, "ranked": _fitting([*map(document_of, ranked)])}

    def _window(self, window: Window, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        [found] = self._windows([(window, values, parameters)], consistent=parameters.consistent())
        return found

    def _windows(self, asked: Sequence[_Asked[Window]], *, consistent: bool) -> list[dict[str, Any]]:
        now = self._clock()
        spans: list[Asked] = [
            (window, values, parameters.interval(window, now)) for window, values, parameters in asked
        ]
        _require_cost([span for window, _, interval in spans for span in plan_queries(window._kept_tiers, interval)])
        counts = count_intervals(self._table, spans, consistent=consistent)
        return [
            {"window": window.name, "values": values, **document_of(count)}
            for (window, values, _), count in zip(asked, counts, strict=True)
        ]

    def _series(self, window: Window, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        intervals = parameters.steps(window, self._clock())
        _require_cost(series_spans(window, intervals))
        counts = count_series(self._table, window, values, intervals, consistent=False)
        return {"window": window.name, "values": values, "series": [*map(document_of, counts)]}

    def _active(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        found = self._between(ActiveReader(self._table, aggregate, values), aggregate, parameters)
        return {"active": aggregate.name, "values": values, **document_of(found)}

    def _distributions(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        shares = parameters.shares()
        if aggregate._shelved:
            found = self._between(DistributionReader(self._table, aggregate, values), aggregate, parameters)
        else:
            found = read_distribution(self._table, aggregate, values, consistent=parameters.consistent())
        return {"distribution": aggregate.name, "values": values, **distribution_json(found, shares)}

    def _extremes(self, aggregate: Aggregate, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        """The first values of a group, from either end."""
        order, count = parameters.order(), parameters.integer("count")
        asked = {"consistent": parameters.consistent(), "forward": order == "smallest"}
        found = read_extremes(self._table, aggregate, values, count, **asked)
        return {"extremes": aggregate.name, "values": values, order: _fitting([*map(document_of, found)])}

    def _between(
        self, reader: SpanReader[Aggregate, _Counted], aggregate: Aggregate, parameters: QueryParameters
    ) -> _Counted:
        span = parameters.interval(aggregate, self._clock())
        if longest_of(aggregate) is None and (units := (span.end - span.start) // aggregate._unit) > MAX_UNITS:
            raise bad_request(f"invalid span: {aggregate.name!r} has {units} units in it, limit: {MAX_UNITS}")
        return reader.between(utc(span.start), utc(span.end), consistent=parameters.consistent())

    def _events(self, event: Event, parameters: QueryParameters, values: Values) -> dict[str, Any]:
        return {"event": event.name, **event_page(self._counters, event, values, parameters, self._clock)}

    def _declared(self, name: str, section: str) -> Any:
        """The declaration of a name among those whose paths begin with a section."""
        known = self._served.get(section, {})
        if name not in known:
            detail = f"no {section.removesuffix('s')} {name!r:.120}; available: {', '.join(known) or 'none'}"
            raise ProblemError(HTTPStatus.NOT_FOUND, detail)
        return known[name]

    def _requested(self, kind: str, index: int, entry: object, bound: Bound) -> _Asked[Any]:
        """A declaration, and the values and options of an entry."""
        where, (member, options) = f"{kind}[{index}]", _BATCH[kind]
        if not isinstance(entry, Mapping) or not {member, "values"} <= entry.keys() <= {member, "values", *options}:
            allowed = f", and of {', '.join(options)}" if options else ""
            raise bad_request(f"invalid {where}: expected an object with members {member!r} and 'values'{allowed}")
        texts = {each: value for each, value in entry.items() if each != "values"}
        for each, value in texts.items():
            if not isinstance(value, str):
                raise bad_request(f"invalid {where}.{each}: expected a string")
        declared: Aggregate | Window = self._declared(texts.pop(member), f"{member}s")
        values = body_values(f"{where}.values", entry["values"], declared.fields, bound)
        return declared, values, QueryParameters(texts)


def _section(resource: str) -> str:
    return PATHS[resource][0].partition("/")[0]


def _fitting(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the first entries as an answer holds."""
    sizes = accumulate(len(write_json(entry)) for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_PAGE_BYTES]


def _require_cost(spans: Sequence[Span]) -> None:
    if (cost := read_cost(spans)) > MAX_READ_UNITS:
        detail = f"the windows take about {cost:.0f} read units, limit: {MAX_READ_UNITS}"
        raise bad_request(f"invalid span: {detail}; declare the `longest` of each")


def group_json(name: str, group: Group) -> dict[str, Any]:
    told = {key: value for key, value in document_of(group).items() if value is not None}
    return {"aggregate": name, **told, "measures": plain_measures(group.measures)}


def plain_measures(measures: Mapping[str, Any]) -> dict[str, Any]:
    """Measures as JSON has them: the bins of a histogram are texts."""
    return {
        name: {str(one): count for one, count in value.items()} if isinstance(value, Mapping) else value
        for name, value in measures.items()
    }


def distribution_json(found: Distribution, shares: Iterable[str]) -> dict[str, Any]:
    """The percentiles of a distribution; 1 is its maximum."""
    told = {name: value for name, value in document_of(found).items() if name != "bins" and value is not None}
    return {"count": found.count, "percentiles": {share: found.p(float(share)) for share in shares}, **told}


def document_of(read: Group | Ranked | WindowCount | Distribution | Extreme) -> dict[str, Any]:
    """All that was read by its names, moments as texts."""
    values = ((each.name, getattr(read, each.name)) for each in fields(read))
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values}
