"""The resources of the counter API: which declarations a stranger may ask, and how a request asks them; and OpenAPI.

Answers are JSON documents, alike for HTTP and for the terminal: counts and events, page by page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import accumulate
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

from counters_lambda.http_api.requests import PROBLEM_JSON, ProblemError, require_own, write_json
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Average, Declaration, Event, Histogram, Packed, Window
from dynamodb_counters._declarations.composites import group_fields
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._reads import question as questions
from dynamodb_counters._reads.group_reads import Distribution, Extreme, list_groups, read_distribution, read_extremes
from dynamodb_counters._reads.question import ORDERS, SHARES, Position, Question, fields_of, kind_of, limits_of
from dynamodb_counters._reads.rank_reads import RangeCount, Rank, read_ranks
from dynamodb_counters._reads.span_reads import WindowCount, queries_of, read_spans
from dynamodb_counters._tiers import read_cost, utc
from dynamodb_counters.errors import InvalidArgumentError

Bound: TypeAlias = Mapping[str, str]
Document: TypeAlias = dict[str, Any]
Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]  # In order; a page may end at a mere position.

MAX_PAGE_BYTES: Final = 1_000_000  # Bytes of JSON, which is escaped once more in a function's response of 6 MB at most.
MAX_PAGE_SECONDS: Final = 2.0  # After this, a page ends with what was found: a filter may find nothing for long.
_MAX_READ_UNITS: Final = 650  # Of a span, eventually consistent: 366 days of a window that declares its key only.
_MAX_BATCH: Final = 100  # Groups of a batch.
_SLICE_SECONDS: Final = 0.1
_NONE: Final[Bound] = MappingProxyType({})
PATHS: Final = {"get": "/v1/{}"} | {name: f"/v1/{{}}/{name}" for name in ("series", "top", "events")}


class CountResources:
    """Counts and events of the given declarations, of no values but those to which a caller is `bound`."""

    def __init__(self, counters: Counters, declarations: Iterable[Declaration | Event]) -> None:
        self._counters, self.served = counters, tuple(declarations)

    def read(self, name: str, query_string: str, bound: Bound = _NONE, *, resource: str = "get") -> Document:
        declared = self._declared(name, resource, bound)
        try:
            pairs = parse_qsl(query_string, keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError:
            raise ProblemError("invalid query string: expected UTF-8 with at most 100 parameters") from None
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ProblemError("a parameter is given more than once")
        options = {name: values.pop(name) for name in questions.options_of(declared, resource) if name in values}
        now = self._counters._table.clock()
        values = {**bound, **values}
        require_own(values, bound)
        return answer(self._counters, Question.parse(declared, resource, options, values, now, is_bounded=True))

    def batch(self, document: object, bound: Bound = _NONE) -> Document:
        """Read whole groups of any aggregates, as the body of a request lists them."""
        match document:
            case {"groups": [*entries], **rest} if not rest and 1 <= len(entries) <= _MAX_BATCH:
                groups = [self._entry(f"groups[{index}]", entry, bound) for index, entry in enumerate(entries)]
            case _:
                raise ProblemError(f"invalid body: expected an object with 'groups', an array of 1 to {_MAX_BATCH}")
        results = zip(groups, self._counters.get_many(groups), strict=True)
        answers = [group_document(declared.name, group) for (declared, _), group in results]
        if len(fitting(answers)) < len(answers):
            raise ProblemError(f"the answer takes more than {MAX_PAGE_BYTES} bytes of JSON: request fewer")
        return {"groups": answers}

    def _entry(self, where: str, entry: object, bound: Bound) -> tuple[Any, Document]:
        match entry:
            case {"aggregate": str(name), "values": Mapping() as values, **rest} if not rest:
                own = {**bound, **values}
                require_own(own, bound)
                return self._declared(name, "batch", bound), own
        raise ProblemError(f"invalid {where}: expected an object with 'aggregate', a string, and 'values', an object")

    def _declared(self, name: str, resource: str, bound: Bound) -> Any:
        served = {declared.name: declared for declared in self.served if _is_served(declared, resource)}
        if name not in served:
            what = "counts" if resource in ("get", "batch") else resource
            detail = f"no {what} {name!r:.120}; available: {', '.join(served) or 'none'}"
            raise ProblemError(detail, HTTPStatus.NOT_FOUND)
        if unbound := bound.keys() - {*limits_of(served[name], resource)}:
            detail = f"{min(unbound)!r}, which the caller's claim decides, is no parameter here"
            raise ProblemError(detail, HTTPStatus.FORBIDDEN)
        return served[name]


def _is_served(declared: Declaration | Event, resource: str) -> bool:
    is_plain = isinstance(declared, Aggregate) and kind_of(declared) == "get"
    return is_plain if resource == "batch" else resource in questions.resources_of(declared)


def answer(counters: Counters, question: Question) -> Document:
    kind = question.resource if question.resource == "top" else kind_of(question.declared)
    return _READS.get(kind, _counts)(counters, question)


def _get(counters: Counters, question: Question) -> Document:
    aggregate, values, consistent = question.declared, question.values, question.consistent
    if values.keys() >= {*aggregate.fields}:
        return group_document(aggregate.name, counters.get(aggregate, values, consistent=consistent))
    start = question.next
    after = (start.pk, start.sk) if start.sk else None
    groups = list_groups(counters._table, aggregate, values, after, scan=question.scan, consistent=consistent)
    # A Scan has no order of keys: a position is after all that the client has had.
    numbered = enumerate(groups, max(start.seconds, 0) + 1)
    entries = (
        (Position(number, *identity), group_document(aggregate.name, group)) for number, (identity, group) in numbered
    )
    return {"aggregate": aggregate.name, **_page(counters, "groups", entries, question)}


def _top(counters: Counters, question: Question) -> Document:
    aggregate = question.declared
    groups = counters.top(aggregate, question.values, count=question.limit)
    # A group that is deleted meanwhile has no values, if its key is hashed.
    entries = [group_document(aggregate.name, group) for group in groups if group.values]
    return {"aggregate": aggregate.name, "groups": fitting(entries)}


def _counts(counters: Counters, question: Question) -> Document:
    declared, table, is_series = question.declared, counters._table, question.resource == "series"
    if kind_of(declared) == "distribution":
        distribution = read_distribution(table, declared, question.values, consistent=question.consistent)
        return count_document(question, plain(distribution, question.p))
    intervals = question.steps if is_series else [question.interval]
    if isinstance(declared, Window):
        cost = read_cost(queries_of(declared, intervals))
    else:
        # Each unit of time has a page of 4 KB at most, unless it has split.
        cost = (intervals[-1].end - intervals[0].start) / declared._unit / 2
    if question.is_bounded and cost > _MAX_READ_UNITS:
        expected = f"at most {_MAX_READ_UNITS}; declare the `longest` of each window"
        raise InvalidArgumentError("span", f"about {cost:.0f} read units", expected)
    spans = read_spans(table, declared, question.values, intervals, consistent=question.consistent)
    counts = [plain(span, question.p) for span in spans]
    return count_document(question, {"series": counts} if is_series else counts[0])


def _extremes(counters: Counters, question: Question) -> Document:
    declared, orders = question.declared, ORDERS if question.order is None else (question.order,)
    read = partial(read_extremes, counters._table, declared, question.values, consistent=question.consistent)
    ends = {order: fitting([plain(extreme) for extreme in read(order, question.limit)]) for order in orders}
    return {"extremes": declared.name, "values": question.values, **ends}


def _ranks(counters: Counters, question: Question) -> Document:
    return {"ranks": question.declared.name, "values": question.values, **plain(read_ranks(counters._table, question))}


def _events(counters: Counters, question: Question) -> Document:
    event = question.declared
    read = partial(counters.events, event, question.values, consistent=question.consistent)
    if event.packed is None:
        entries: Entries = ((_position(event, values), values) for values in read(after=question.next.sk))
    else:
        entries = _by_time(counters, event.packed, question, read)
    return {"event": event.name, **_page(counters, "events", entries, question)}


def _by_time(counters: Counters, packed: Packed, question: Question, read: Callable[..., Any]) -> Entries:
    """Yield each event with its position, and a position alone where a span of time begins that takes another read."""
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
    """Return entries after the page before, as many as a page holds, and the token of the page after it, if any."""
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


_READS: Final = {"get": _get, "top": _top, "extremes": _extremes, "ranks": _ranks, "events": _events, "packed": _events}
"""By kind of declaration, or "top" of any: the read that answers; else one of counts by time or bin."""


def group_document(name: str, group: Group) -> Document:
    """Return a group as JSON has it: the bins of a histogram are texts."""
    histograms = {
        measure: {str(key): count for key, count in value.items()}
        for measure, value in group.measures.items()
        if isinstance(value, Mapping)
    }
    return {"aggregate": name, **plain(group), "measures": {**group.measures, **histograms}}


def fitting(entries: list[Document]) -> list[Document]:
    """Return as many of the first entries as an answer holds."""
    sizes = accumulate(len(write_json(entry)) for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_PAGE_BYTES]


def _position(event: Event, values: Mapping[str, Any]) -> Position:
    pk, sk = event._pk_template.render(values), event._sk_template.render(values)
    if event.packed is None:
        return Position(0, pk, sk)
    time = values[event.packed.time]
    return Position(event_seconds({"S": time} if isinstance(time, str) else {"N": str(time)}), pk, sk)


def count_document(question: Question, answer: Document) -> Document:
    return {kind_of(question.declared).removesuffix("s"): question.declared.name, "values": question.values, **answer}


def plain(
    result: Group | WindowCount | Distribution | Extreme | Rank | RangeCount, shares: Iterable[str] = SHARES
) -> Document:
    """Return a result by its names, moments as texts; of a distribution, its percentiles."""
    values = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "bins"}
    if isinstance(result, Distribution):
        percentiles = {share: result.p(float(share)) for share in shares}
        values = {"count": result.count, "percentiles": percentiles, **values}
    texts = {name: value.isoformat() for name, value in values.items() if isinstance(value, datetime)}
    return {name: texts.get(name, value) for name, value in values.items() if value is not None}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_NUMBER_OR_NULL: Final = {"type": ["number", "null"]}
_NEXT: Final = {"next": {"type": ["string", "null"]}}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final = {"type": "string", "format": "date-time"}
_LIMITS: Final = {"type": "integer", "minimum": 1, "maximum": questions.MAX_LIMIT}
_COMPLETE: Final = {"complete": {"type": "boolean", "description": "Whether all there is has been counted"}}
_COUNT: Final = {"count": _NUMBER, **_COMPLETE}
_SHARES: Final = {**_COUNT, "percentiles": {"type": "object", "additionalProperties": _NUMBER_OR_NULL}}
_ENDS: Final = {"start": _TIME, "end": _TIME}
_RANK_MEMBERS: Final = dict.fromkeys(("rank", "score", "ties", "count"), _NUMBER)
_MEASURES: Final = {Average: _NUMBER_OR_NULL, Histogram: {"type": "object", "additionalProperties": _NUMBER}}
_COUNTS: Final[Mapping[str, Document]] = {
    "window": {**_COUNT, **_ENDS},
    "active": {**_COUNT, **_ENDS},
    "distributions": {**_SHARES, **_ENDS},
    "distribution": _SHARES,
    "extremes": {},
    "ranks": {"of": _NUMBER, "as_of": _TIME, **_COMPLETE},
}
"""By kind of declaration: the members of an answer, besides its values."""


def openapi(declarations: Iterable[Declaration | Event], tenant: Bound = _NONE) -> Document:
    """Describe an API in OpenAPI 3.1, without the parameters of `tenant`, which claims of the caller decide."""
    declarations = sorted(declarations, key=attrgetter("name"))
    paths = {
        PATHS[resource].format(declared.name): {"get": _operation(declared, resource, tenant)}
        for declared in declarations
        for resource in questions.resources_of(declared)
    }
    if names := [declared.name for declared in declarations if _is_served(declared, "batch")]:
        paths.setdefault("/v1/batch", {})["post"] = _batch(names)
    problem = _object({"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT})
    info = {"title": "Counters", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": {"Problem": problem}}}


def _operation(declared: Declaration | Event, resource: str, tenant: Bound) -> Document:
    required, fields = fields_of(declared, resource)
    parameters: list[Any] = [{"name": name, "required": name in required, "schema": _TEXT} for name in fields or ()]
    for name in questions.options_of(declared, resource):
        schema = {**_TEXT, **questions.OPTIONS[name].schema}
        if name == "limit":
            schema |= _LIMITS | {"default": questions.default_limit(declared, resource)}
        parameters.append({"name": name, "description": questions.OPTIONS[name].description, "schema": schema})
    free = [{"in": "query", **parameter} for parameter in parameters if parameter["name"] not in tenant]
    responses = _responses(_answer(declared, resource))
    return {"operationId": f"{resource}_{declared.name}", "parameters": free, "responses": responses}


def _batch(names: list[str]) -> Document:
    entry = _object({"aggregate": {"enum": names}, "values": _TEXTS}) | {"additionalProperties": False}
    groups = {"groups": {**_array(entry), "minItems": 1, "maxItems": _MAX_BATCH}}
    content = {"application/json": {"schema": _object(groups) | {"additionalProperties": False}}}
    group = _object({"aggregate": _TEXT, "values": _TEXTS, "measures": {"type": "object"}, **_COMPLETE})
    answer = _responses(_object({"groups": _array(group)}))
    return {"operationId": "batch", "requestBody": {"required": True, "content": content}, "responses": answer}


def _responses(answer: Document) -> Document:
    problem = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    success = {"description": "Success", "content": {"application/json": {"schema": answer}}}
    return {"200": success, "default": {"description": "Problem details (RFC 9457)", "content": problem}}


def _answer(declared: Declaration | Event, resource: str) -> Document:
    if isinstance(declared, Event):
        return _object({"event": _TEXT, "events": _array(declared.json_schema), **_NEXT})
    kind, fields = kind_of(declared), dict.fromkeys(group_fields(declared), _TEXT)
    of_member = {*(fields_of(declared, resource)[1] or ())} - fields.keys()
    values = {"values": _object(fields, dict.fromkeys(sorted(of_member), _TEXT))}
    if kind in _COUNTS:
        counts = {"series": _array(_object(_COUNTS[kind]))} if resource == "series" else _COUNTS[kind]
        value = {"value": {"anyOf": [_NUMBER, _TIME]}, "items": _NUMBER, "shown": _TEXTS, **_COMPLETE}
        ends = {"extremes": dict.fromkeys(ORDERS, _array(_object(value))), "ranks": _RANK_MEMBERS}.get(kind, {})
        return _object({kind.replace("distributions", "distribution"): _TEXT, **values, **counts}, ends)
    assert isinstance(declared, Aggregate)
    measures = {name: _MEASURES.get(type(measure), _NUMBER) for name, measure in declared.measures.items()}
    if resource == "top" and declared.ranking is not None:
        measures = {declared.ranking.measure: _NUMBER}
    group = _object({"aggregate": _TEXT, **values, "measures": _object(measures), **_COMPLETE})
    groups = {"aggregate": _TEXT, "groups": _array(group)}
    if resource == "top":
        return _object(groups)
    is_whole = fields_of(declared, resource)[0] == declared.fields
    return group if is_whole else {"anyOf": [group, _object({**groups, **_NEXT})]}


def _object(members: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})) -> Document:
    return {"type": "object", "required": list(members), "properties": {**members, **optional}}


def _array(items: Document) -> Document:
    return {"type": "array", "items": items}
