"""Answers to questions as JSON documents, alike for HTTP and for the terminal: counts and events, page by page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, TypeAlias

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event, Packed, Window
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.requests import write_json
from dynamodb_counters._items.conversions import event_seconds
from dynamodb_counters._reads.group_reads import Extreme, read_extremes
from dynamodb_counters._reads.question import ORDERS, SHARES, Position, Question, kind_of
from dynamodb_counters._reads.span_reads import ActiveReader, Distribution, DistributionReader, read_distribution
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import SpanReader, WindowReader, series_spans
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import Interval, Span, read_cost, utc
from dynamodb_counters.errors import InvalidArgumentError

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
Read: TypeAlias = Callable[..., Iterable[Mapping[str, Any]]]
Entries: TypeAlias = Iterable[tuple[Position, Mapping[str, Any] | None]]
"""What to list, in order, with its positions; a position alone is one where a page may end."""


@dataclass(frozen=True)
class Documents:
    """Answers to questions about the counts and events of a table."""

    counters: Counters
    clock: Callable[[], float]

    def answer(self, question: Question) -> Document:
        """Read what a question asks for."""
        kind = question.resource if question.resource in ("top", "series") else kind_of(question.declared)
        return _READS[kind](self, question)

    @property
    def table(self) -> Table:
        return self.counters._table  # noqa: SLF001 - the readers of this package


def _get(documents: Documents, question: Question) -> Document:
    aggregate, values, consistent = question.declared, question.values, question.consistent
    if question.is_whole:
        return group_document(aggregate.name, documents.counters.get(aggregate, values, consistent=consistent))
    groups = documents.counters.scan(aggregate, values, after=question.next.sk, consistent=consistent)
    listed = ((Position(0, "", key), group_document(aggregate.name, group)) for key, group in groups)
    return {"aggregate": aggregate.name, **_page(documents, "groups", listed, question)}


def _top(documents: Documents, question: Question) -> Document:
    aggregate = question.declared
    ranked = documents.counters.top(aggregate, question.values, count=question.limit)
    # A group that is deleted meanwhile has no values, if its key is hashed.
    ranked = [each for each in ranked if each.values.keys() == {*aggregate.fields}]
    groups = documents.counters.get_many([(aggregate, each.values) for each in ranked])
    entries = [
        {**group_document(aggregate.name, group), "score": each.score}
        for each, group in zip(ranked, groups, strict=True)
    ]
    return {"aggregate": aggregate.name, "ranked": fitting(entries)}


def _span(documents: Documents, question: Question) -> Document:
    [count] = _counts(documents, question, [question.interval])
    return count_document(question, plain(count, question.p))


def _series(documents: Documents, question: Question) -> Document:
    counts = _counts(documents, question, question.steps)
    return count_document(question, {"series": [plain(count, question.p) for count in counts]})


def _counts(
    documents: Documents, question: Question, intervals: Sequence[Interval]
) -> Sequence[WindowCount | Distribution]:
    declared, kind = question.declared, _READERS[kind_of(question.declared)]
    if question.is_bounded and isinstance(declared, Window):
        require_cost(series_spans(declared, intervals))
    elif question.is_bounded and (units := (intervals[-1].end - intervals[0].start) // declared._unit) > MAX_UNITS:
        raise InvalidArgumentError("span", f"{units} units of {declared.name!r}", f"at most {MAX_UNITS}")
    reader: SpanReader[Any, Any] = kind(documents.table, declared, question.values)
    return reader._counted(intervals, consistent=question.consistent)


def _distribution(documents: Documents, question: Question) -> Document:
    table, declared = documents.table, question.declared
    distribution = read_distribution(table, declared, question.values, consistent=question.consistent)
    return count_document(question, plain(distribution, question.p))


def _extremes(documents: Documents, question: Question) -> Document:
    table, declared, limit = documents.table, question.declared, question.limit
    read = partial(read_extremes, table, declared, question.values, limit, consistent=question.consistent)
    orders = ORDERS if question.order is None else (question.order,)
    ends = {order: fitting([plain(each) for each in read(forward=order == "smallest")]) for order in orders}
    return {"extremes": declared.name, "values": question.values, **ends}


def _events(documents: Documents, question: Question) -> Document:
    """Events by time and key, or plain ones by their sort key."""
    event, read = question.declared, partial(documents.counters.events, question.declared, question.values)
    read = partial(read, consistent=question.consistent)
    if event.packed is None:
        is_timed = (question.last, question.start, question.end, question.time) != (None,) * 4
        ends = dict(zip(("start", "end"), question.ends, strict=True)) if is_timed else {}
        listed = read(after=question.next.sk, time=question.time, **ends)
        entries: Entries = ((_position(event, values), values) for values in listed)
    else:
        entries = _by_time(documents, event.packed, question, read)
    return {"event": event.name, **_page(documents, "events", entries, question)}


def _by_time(documents: Documents, packed: Packed, question: Question, read: Read) -> Entries:
    """Each event with its position, and a position alone where a span of time begins that takes another read."""
    start, end = question.ends
    start, bucket, width = max(start, utc(question.next.seconds)), packed._bucket_seconds, 1
    while start < end:
        begin = math.floor(start.timestamp())
        yield Position(begin, "", ""), None
        asked_at = documents.clock()
        boundary = (begin // bucket + width) * bucket
        until = utc(boundary) if boundary < end.timestamp() else end
        events = [(_position(question.declared, values), values) for values in read(start=start, end=until)]
        # Chunks grow while a client pages through them: only an event's own time and key hold their place.
        yield from sorted(events, key=itemgetter(0))
        width = width * 2 if documents.clock() - asked_at < _SLICE_SECONDS else 1
        start = until


def _page(documents: Documents, kind: str, entries: Entries, question: Question) -> Document:
    """Entries after the page before, as many as a page holds, and the token of the page after it, if any."""
    last, page, size = question.next, list[Mapping[str, Any]](), 0
    deadline = documents.clock() + MAX_PAGE_SECONDS
    for position, values in entries:
        if values is None:
            if documents.clock() >= deadline:
                return {kind: page, "next": position.token}
        elif position > question.next:
            size += len(write_json(values))
            if len(page) == question.limit or (page and size > MAX_PAGE_BYTES):
                return {kind: page, "next": last.token}
            page.append(values)
            last = position
    return {kind: page, "next": None}


_READERS: Final = {"window": WindowReader, "active": ActiveReader, "distributions": DistributionReader}
_READS: Final[Mapping[str, Callable[[Documents, Question], Document]]] = {
    "get": _get,
    "top": _top,
    "window": _span,
    "series": _series,
    "active": _span,
    "distributions": _span,
    "distribution": _distribution,
    "extremes": _extremes,
    "events": _events,
    "packed": _events,
}
"""By kind of declaration, or by what is asked of it: the read that answers."""


def group_document(name: str, group: Group) -> Document:
    return {
        "aggregate": name,
        "values": group.values,
        "measures": plain_measures(group.measures),
        "complete": group.complete,
    }


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


def require_cost(spans: Sequence[Span]) -> None:
    """Refuse what takes too many read units."""
    if (cost := read_cost(spans)) > MAX_READ_UNITS:
        expected = f"at most {MAX_READ_UNITS}; declare the `longest` of each window"
        raise InvalidArgumentError("span", f"about {cost:.0f} read units", expected)


def plain_measures(measures: Mapping[str, Any]) -> Document:
    """Measures as JSON has them: the bins of a histogram are texts."""
    return {
        name: {str(key): count for key, count in value.items()} if isinstance(value, Mapping) else value
        for name, value in measures.items()
    }


def count_document(question: Question, answer: Document) -> Document:
    """Return an answer with the name of its declaration and the values of its group."""
    return {kind_of(question.declared).removesuffix("s"): question.declared.name, "values": question.values, **answer}


def plain(result: WindowCount | Distribution | Extreme, shares: Iterable[str] = SHARES) -> Document:
    """Return a result by its names, moments as texts; of a distribution, its percentiles."""
    values = {each.name: getattr(result, each.name) for each in fields(result)}
    if isinstance(result, Distribution):
        percentiles = {share: result.p(float(share)) for share in shares}
        values = {"count": result.count, "percentiles": percentiles, **values}
        values = {name: value for name, value in values.items() if name != "bins" and value is not None}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
