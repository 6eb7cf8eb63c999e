"""The resources of the counter API: which declarations a stranger may ask, and how a request asks them; and OpenAPI.

Answers are JSON documents, alike for HTTP and for the terminal: counts and events, page by page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from itertools import accumulate
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Packed, Window
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.requests import PROBLEM_JSON, ProblemError, filled_in, write_json
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._reads.group_reads import Extreme, list_groups, read_extremes
from dynamodb_counters._reads.question import (
    OPTIONS,
    ORDERS,
    SHARES,
    Position,
    Question,
    default_last,
    fields_of,
    kind_of,
    limits_of,
    options_of,
    resources_of,
)
from dynamodb_counters._reads.span_reads import (
    Distribution,
    WindowCount,
    queries_of,
    read_distribution,
    read_spans,
)
from dynamodb_counters._timeline.tiers import Interval, read_cost, utc
from dynamodb_counters.errors import InvalidArgumentError

Bound: TypeAlias = Mapping[str, str]
_NONE: Final[Bound] = MappingProxyType({})

MAX_PAGE_BYTES: Final = 1_000_000
"""Bytes of JSON, which is escaped once more in a function's response of 6 MB at most."""

MAX_PAGE_SECONDS: Final = 2.0
"""After this, a page ends with what was found: a filter may find nothing for long."""

MAX_READ_UNITS: Final = 650
"""Read units of one window or series, eventually consistent: 366 days of a window that declares its key only."""

MAX_UNITS: Final = 1300
"""Units of time of one read of pages, of which each has one of 4 KB at most unless it has split: 650 read units."""

_SLICE_SECONDS: Final = 0.1

Document: TypeAlias = dict[str, Any]
Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]
"""What to list, in order, with its positions; a position alone is one where a page may end."""

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NEXT: Final = {"type": ["string", "null"]}
_NUMBER_OR_NULL: Final = {"type": ["number", "null"]}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_NUMBERS: Final = {"type": "object", "additionalProperties": _NUMBER}
_COMPLETE: Final = {"complete": {"type": "boolean", "description": "Whether all there is has been counted"}}
_ENDS: Final = {"start": _TIME, "end": _TIME}
_COUNT: Final = {"count": _NUMBER, **_ENDS, **_COMPLETE}
_SUMMARIES: Final = {
    "get": "What {} counts",
    "series": "{} step by step",
    "top": "The first groups of {}",
    "events": "Events {}, page by page",
}
PATHS: Final = {name: "/v1/{}" if name == "get" else f"/v1/{{}}/{name}" for name in _SUMMARIES}
"""By what is asked of a declaration: its path."""


class CountResources:
    """Counts and events of the given declarations, of no values but those to which a caller is `bound`."""

    def __init__(self, counters: Counters, declarations: Iterable[Declaration | Event]) -> None:
        self._counters, self._served = counters, tuple(declarations)

    def read(self, name: str, query_string: str, bound: Bound = _NONE, *, resource: str = "get") -> Document:
        what = "counts" if resource == "get" else resource
        declared = self._declared(name, what, [each for each in self._served if resource in resources_of(each)])
        if unbound := bound.keys() - {*(fields_of(declared, resource)[1] or ())}:
            detail = f"{min(unbound)!r}, which the caller's claim decides, is no parameter here"
            raise ProblemError(detail, HTTPStatus.FORBIDDEN)
        try:
            pairs = parse_qsl(query_string, keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise ProblemError("invalid query string: expected UTF-8 with at most 100 parameters") from None
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ProblemError("a parameter is given more than once")
        options = {name: values.pop(name) for name in options_of(declared, resource) if name in values}
        return answer(self._counters, self._asked(declared, resource, options, filled_in(values, bound)))

    def _asked(self, declared: Any, resource: str, options: Bound, values: Bound) -> Question:
        now = self._counters._table.clock()
        return Question.parse(declared, resource, options, values, now, is_bounded=True)

    def _declared(self, name: str, what: str, served: Iterable[Declaration | Event]) -> Any:
        by_name = {each.name: each for each in served}
        if name not in by_name:
            detail = f"no {what} {name!r:.120}; available: {', '.join(by_name) or 'none'}"
            raise ProblemError(detail, HTTPStatus.NOT_FOUND)
        return by_name[name]


def answer(counters: Counters, question: Question) -> Document:
    """Answer a question about the counts and events of a table."""
    kind = question.resource if question.resource in ("top", "series") else kind_of(question.declared)
    return _READS.get(kind, _span)(counters, question)


def _get(counters: Counters, question: Question) -> Document:
    aggregate, values, consistent = question.declared, question.values, question.consistent
    if question.is_whole:
        return group_document(aggregate.name, counters.get(aggregate, values, consistent=consistent))
    start = question.next
    after = (start.pk, start.sk) if start.sk else None
    groups = list_groups(counters._table, aggregate, values, after, scan=question.scan, consistent=consistent)
    # A Scan has no order of keys: a position is after all that the client has had.
    listed = (
        (Position(number, *place), group_document(aggregate.name, group))
        for number, (place, group) in enumerate(groups, max(start.seconds, 0) + 1)
    )
    return {"aggregate": aggregate.name, **_page(counters, "groups", listed, question)}


def _top(counters: Counters, question: Question) -> Document:
    aggregate = question.declared
    groups = counters.top(aggregate, question.values, count=question.limit)
    # A group that is deleted meanwhile has no values, if its key is hashed.
    entries = [group_document(aggregate.name, group) for group in groups if group.values]
    return {"aggregate": aggregate.name, "groups": fitting(entries)}


def _span(counters: Counters, question: Question) -> Document:
    [count] = _counts(counters, question, [question.interval])
    return count_document(question, plain(count, question.p))


def _series(counters: Counters, question: Question) -> Document:
    counts = _counts(counters, question, question.steps)
    return count_document(question, {"series": [plain(count, question.p) for count in counts]})


def _counts(
    counters: Counters, question: Question, intervals: Sequence[Interval]
) -> Sequence[WindowCount | Distribution]:
    declared = question.declared
    if question.is_bounded and isinstance(declared, Window):
        if (cost := read_cost(queries_of(declared, intervals))) > MAX_READ_UNITS:
            expected = f"at most {MAX_READ_UNITS}; declare the `longest` of each window"
            raise InvalidArgumentError("span", f"about {cost:.0f} read units", expected)
    elif question.is_bounded and (units := (intervals[-1].end - intervals[0].start) // declared._unit) > MAX_UNITS:
        raise InvalidArgumentError("span", f"{units} units of {declared.name!r}", f"at most {MAX_UNITS}")
    return read_spans(counters._table, declared, question.values, intervals, consistent=question.consistent)


def _distribution(counters: Counters, question: Question) -> Document:
    table, declared = counters._table, question.declared
    distribution = read_distribution(table, declared, question.values, consistent=question.consistent)
    return count_document(question, plain(distribution, question.p))


def _extremes(counters: Counters, question: Question) -> Document:
    declared, orders = question.declared, ORDERS if question.order is None else (question.order,)
    read = partial(read_extremes, counters._table, declared, question.values, consistent=question.consistent)
    ends = {order: fitting([plain(each) for each in read(order, question.limit)]) for order in orders}
    return {"extremes": declared.name, "values": question.values, **ends}


def _events(counters: Counters, question: Question) -> Document:
    """Events by time and key, or plain ones by their sort key."""
    event = question.declared
    read = partial(counters.events, event, question.values, consistent=question.consistent)
    if event.packed is None:
        entries: Entries = ((_position(event, values), values) for values in read(after=question.next.sk))
    else:
        entries = _by_time(counters, event.packed, question, read)
    return {"event": event.name, **_page(counters, "events", entries, question)}


def _by_time(counters: Counters, packed: Packed, question: Question, read: Callable[..., Any]) -> Entries:
    """Each event with its position, and a position alone where a span of time begins that takes another read."""
    start, end = question.ends
    start, bucket, width = max(start, utc(question.next.seconds)), packed._bucket_seconds, 1
    while start < end:
        begin = math.floor(start.timestamp())
        yield Position(begin, "", ""), None
        asked_at = counters._table.clock()
        boundary = (begin // bucket + width) * bucket
        until = utc(boundary) if boundary < end.timestamp() else end
        events = [(_position(question.declared, values), values) for values in read(start=start, end=until)]
        # Chunks grow while a client pages through them: only an event's own time and key hold their place.
        yield from sorted(events, key=itemgetter(0))
        width = width * 2 if counters._table.clock() - asked_at < _SLICE_SECONDS else 1
        start = until


def _page(counters: Counters, kind: str, entries: Entries, question: Question) -> Document:
    """Entries after the page before, as many as a page holds, and the token of the page after it, if any."""
    last, page, size = question.next, list[Mapping[str, Any]](), 0
    deadline = counters._table.clock() + MAX_PAGE_SECONDS
    for position, values in entries:
        if values is None:
            if counters._table.clock() >= deadline:
                return {kind: page, "next": position.token}
        elif position > question.next:
            size += len(write_json(values))
            if len(page) == question.limit or (page and size > MAX_PAGE_BYTES):
                return {kind: page, "next": last.token}
            page.append(values)
            last = position
    return {kind: page, "next": None}


_READS: Final[Mapping[str, Callable[[Counters, Question], Document]]] = {
    "get": _get,
    "top": _top,
    "series": _series,
    "distribution": _distribution,
    "extremes": _extremes,
    "events": _events,
    "packed": _events,
}
"""By kind of declaration, or by what is asked of it: the read that answers; else one of a span."""


def group_document(name: str, group: Group) -> Document:
    return {"aggregate": name, **plain(group), "measures": plain_measures(group.measures)}


def fitting(entries: list[Document]) -> list[Document]:
    """As many of the first entries as an answer holds."""
    sizes = accumulate(len(write_json(entry)) for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_PAGE_BYTES]


def _position(event: Event, values: Mapping[str, Any]) -> Position:
    pk, sk = event._pk_template.render(values), event._sk_template.render(values)
    if event.packed is None:
        return Position(0, pk, sk)
    time = values[event.packed.time]
    return Position(event_seconds({"S": time} if isinstance(time, str) else {"N": str(time)}), pk, sk)


def plain_measures(measures: Mapping[str, Any]) -> Document:
    """Measures as JSON has them: the bins of a histogram are texts."""
    return {
        name: {str(key): count for key, count in value.items()} if isinstance(value, Mapping) else value
        for name, value in measures.items()
    }


def count_document(question: Question, answer: Document) -> Document:
    """Return an answer with the name of its declaration and the values of its group."""
    return {kind_of(question.declared).removesuffix("s"): question.declared.name, "values": question.values, **answer}


def plain(result: Group | WindowCount | Distribution | Extreme, shares: Iterable[str] = SHARES) -> Document:
    """Return a result by its names, moments as texts; of a distribution, its percentiles."""
    values = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "bins"}
    if isinstance(result, Distribution):
        percentiles = {share: result.p(float(share)) for share in shares}
        values = {"count": result.count, "percentiles": percentiles, **values}
    texts = {name: value.isoformat() for name, value in values.items() if isinstance(value, datetime)}
    return {name: texts.get(name, value) for name, value in values.items() if value is not None}


def openapi(declarations: Iterable[Declaration | Event], tenant: Bound = _NONE) -> Document:
    """Describe an API in OpenAPI 3.1, without the parameters of `tenant`, which claims of the caller decide."""
    paths: Document = {
        "/openapi.json": _operation("get", "openapi", "This OpenAPI document", {"type": "object"}, parameters=[])
    }
    declared = sorted(declarations, key=lambda each: each.name)
    for each in declared:
        for resource in resources_of(each):
            path, summary = (text[resource].format(each.name) for text in (PATHS, _SUMMARIES))
            asked, answer = _asked(each, resource, tenant), _answer(each, resource)
            paths[path] = _operation("get", f"{resource}_{each.name}", summary, answer, parameters=asked)
    problem = _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT})
    info = {"title": "Counters", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": {"Problem": problem}}}


def _asked(declared: Declaration | Event, resource: str, tenant: Bound) -> list[Document]:
    """The fields of a question, then its options with their defaults."""
    required, names = fields_of(declared, resource)
    parameters: list[Document] = [
        {"name": name, "in": "query", "required": name in required, "schema": _TEXT} for name in names or ()
    ]
    for name in options_of(declared, resource):
        schema = {**_TEXT, **OPTIONS[name].schema}
        if name == "limit":
            default, most = limits_of(declared, resource)
            schema |= {"type": "integer", "minimum": 1, "maximum": most, "default": default}
        if name == "last" and not isinstance(declared, Event):
            schema["default"] = _text(default_last(declared))
        described = {"required": False, "description": OPTIONS[name].description, "schema": schema}
        parameters.append({"name": name, "in": "query", **described})
    return [each for each in parameters if each["name"] not in tenant]


def _answer(declared: Declaration | Event, resource: str) -> Document:
    kind = kind_of(declared)
    if isinstance(declared, Event):
        return _object({"event": _TEXT, "events": _array(declared.json_schema), "next": _NEXT})
    values = _object(dict.fromkeys(group_fields(declared), _TEXT))
    if kind == "extremes":
        value = {"value": {"anyOf": [_NUMBER, _TIME]}, "items": _NUMBER, "shown": _TEXTS, **_COMPLETE}
        return _object({kind: _TEXT, "values": values}, dict.fromkeys(ORDERS, _array(_object(value))))
    if not isinstance(declared, Aggregate) or kind != "get":
        shares = {"percentiles": {"type": "object", "additionalProperties": _NUMBER_OR_NULL}}
        ends = {} if kind == "distribution" else _ENDS
        count = _COUNT if kind in ("window", "active") else {"count": _NUMBER, **shares, **_COMPLETE, **ends}
        count = {"series": _array(_object(count))} if resource == "series" else count
        return _object({kind.removesuffix("s"): _TEXT, "values": values, **count})
    shown = {*declared.measures} if declared.ranking is None or resource != "top" else {declared.ranking.measure}
    measures = {
        name: _NUMBERS if isinstance(kept, Histogram) else _NUMBER_OR_NULL if isinstance(kept, Average) else _NUMBER
        for name, kept in declared.measures.items()
        if name in shown
    }
    group = _object({"aggregate": _TEXT, "values": values, "measures": _object(measures), **_COMPLETE})
    if resource == "top":
        return _object({"aggregate": _TEXT, "groups": _array(group)})
    page = _object({"aggregate": _TEXT, "groups": _array(group), "next": _NEXT})
    return group if fields_of(declared, resource)[0] == declared.fields else {"anyOf": [group, page]}


def _text(duration: timedelta) -> str:
    minutes = max(1, duration // timedelta(minutes=1))
    return next(f"{minutes // unit}{name}" for unit, name in ((1440, "d"), (60, "h"), (1, "m")) if not minutes % unit)


def _object(members: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> Document:
    return {"type": "object", "required": list(members), "properties": {**members, **optional}}


def _array(items: Document) -> Document:
    return {"type": "array", "items": items}


def _operation(method: str, name: str, summary: str, answer: Document, **asked: Any) -> Document:
    success = {"description": "Success", "content": {"application/json": {"schema": answer}}}
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = {"200": success, "default": {"description": "Problem details (RFC 9457)", "content": content}}
    return {method: {"summary": summary, "operationId": name, **asked, "responses": responses}}
