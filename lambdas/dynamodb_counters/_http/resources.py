"""The resources of the counter API: counts and events as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import accumulate, islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Window
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._declarations.kinds import group_fields, longest_of, read_by
from dynamodb_counters._explain.explainer import make_explainer
from dynamodb_counters._http.event_pages import MAX_PAGE_BYTES, Clock, event_page, page_of
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.parameters import (
    MAX_COUNT,
    MAX_EXPLAINED,
    MAX_STEPS,
    OPTIONS,
    ORDERS,
    PATHS,
    Position,
    QueryParameters,
    body_values,
    event_parameters,
    explained_by,
    leaderboard_fields,
)
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._reads.active_reads import ActiveReader
from dynamodb_counters._reads.bucket_queries import Asked, count_intervals, count_series, series_spans
from dynamodb_counters._reads.distributions import Distribution, DistributionReader, read_distribution
from dynamodb_counters._reads.extreme_reads import Extreme, read_extremes
from dynamodb_counters._reads.rankings import Ranked
from dynamodb_counters._reads.span_reader import SpanReader
from dynamodb_counters._reads.statements import closed_periods, read_statements
from dynamodb_counters._reads.window_counts import Statement, WindowCount
from dynamodb_counters._timeline.calendars import steps
from dynamodb_counters._timeline.intervals import Span, plan_queries, read_cost
from dynamodb_counters._timeline.times import utc

Bound: TypeAlias = Mapping[str, str]
Values: TypeAlias = dict[str, str]
Fields: TypeAlias = tuple[str, ...]
_NONE: Final[Bound] = MappingProxyType({})

MAX_READ_UNITS: Final = 650
"""Read units of one window or series, eventually consistent: 366 days of a window that declares its key only."""

MAX_UNITS: Final = 1300
"""Units of time of one read of percentiles: a page each, of 4 KB at most unless it has split, so 650 read units."""

_BATCH: Final = {"groups": ("aggregate", ()), "windows": ("window", OPTIONS["batch"])}
"""By the member of a batch: the member of an entry that names a declaration, and its options."""

_FIELDS: Final[dict[str, Callable[[Any], Fields]]] = {"groups": attrgetter("_listed_by"), "top": leaderboard_fields}
"""Fields that a request names, where these are not those of one group."""

_Counted = TypeVar("_Counted")


class CountResources:
    """The counts of the given declarations, and the given events; no others can be requested.

    Every request says which fields the caller's claims have `bound`, and gets nothing of others' values. Limits can be
    set of the aggregates whose names are `limited`; those of declarations whose names are `explained` can be explained.
    """

    def __init__(
        self,
        counters: Counters,
        declarations: Iterable[Declaration | Event],
        clock: Clock,
        limited: Collection[str] = (),
        explained: Collection[str] = (),
    ) -> None:
        self._counters = counters
        self._limited = limited
        self._table = counters._table  # noqa: SLF001 - the readers of many windows at once
        self._clock = clock
        self._served = dict[str, dict[str, Declaration | Event]]()
        for one in declarations:
            read = read_by(one) if isinstance(one, Aggregate) else "window" if isinstance(one, Window) else "events"
            self._served.setdefault(_section(read), {})[one.name] = one
            if one.name in explained:
                self._served.setdefault("explanations", {})[one.name] = one

    def get(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate, parameters, values = self._asked("get", name, query_string, bound)
        return group_json(name, self._counters.get(aggregate, values, consistent=parameters.consistent()))

    def set_limit(self, name: str, document: object, bound: Bound = _NONE) -> dict[str, Any]:
        """Store a group's limit; null takes it away."""
        if name not in self._limited:
            available = ", ".join(self._limited) or "none"
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no limits of {name!r:.120} to set; available: {available}")
        if not isinstance(document, Mapping) or not {"limit"} <= document.keys() <= {"limit", "values"}:
            raise bad_request("invalid body: expected an object with members limit, values")
        aggregate, limit = self._declared(name, "aggregates"), document["limit"]
        values = body_values("values", document.get("values", {}), aggregate.fields, bound)
        self._counters.set_limit(aggregate, limit, values)
        return {"aggregate": name, "values": values, "limit": limit}

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
        counted = self._counters.get_many([(aggregate, parameters.by_name) for aggregate, parameters in groups])
        found = {
            "groups": [group_json(one.name, group) for (one, _), group in zip(groups, counted, strict=True)],
            "windows": self._windows(windows, consistent=False),
        }
        answers = [*found["groups"], *found["windows"]]
        if len(_fitting(answers)) < len(answers):
            raise bad_request(f"the answer takes more than {MAX_PAGE_BYTES} bytes of JSON: request fewer")
        return {kind: found[kind] for kind in entries}

    def groups(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate, parameters, values = self._asked("groups", name, query_string, bound)
        consistent = parameters.consistent()
        groups = self._counters.scan(aggregate, values, after=parameters.after().sk, consistent=consistent)
        listed = ((Position(0, "", key), group_json(name, group)) for key, group in groups)
        return page_of("groups", listed, parameters, self._clock)

    def top(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate, parameters, values = self._asked("top", name, query_string, bound)
        ranked = self._counters.top(aggregate, values, count=parameters.integer("count"))
        return {"aggregate": name, "ranked": _fitting([*map(document_of, ranked)])}

    def window(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        window, parameters, _ = self._asked("window", name, query_string, bound)
        [found] = self._windows([(window, parameters)], consistent=parameters.consistent())
        return found

    def closed(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        """The statements of a group's last closed periods, in order."""
        window, parameters, values = self._asked("closed", name, query_string, bound)
        closed = closed_periods(self._table, window, values, last=parameters.integer("count"))
        return {"window": name, "values": values, "closed": [*map(document_of, closed)]}

    def _windows(self, asked: Sequence[tuple[Window, QueryParameters]], *, consistent: bool) -> list[dict[str, Any]]:
        """Counts of spans, and statements of periods, each kind at once."""
        now, is_period = self._clock(), ["period" in parameters.by_name for _, parameters in asked]
        spans: dict[bool, list[Asked]] = {True: [], False: []}
        for (window, parameters), named in zip(asked, is_period, strict=True):
            values, interval = parameters.values(window.fields), parameters.interval(window, now)
            spans[named].append((window, values, interval))
        _require_affordable([*spans[True], *spans[False]])

        def check(both: Sequence[Asked]) -> None:
            _require_affordable([*spans[False], *both])

        statements = read_statements(self._table, spans[True], consistent=consistent, check=check)
        counts = count_intervals(self._table, spans[False], consistent=consistent)
        found = {True: map(document_of, statements), False: map(document_of, counts)}
        return [
            {"window": window.name, "values": parameters.values(window.fields), **next(found[named])}
            for (window, parameters), named in zip(asked, is_period, strict=True)
        ]

    def series(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        window, parameters, values = self._asked("series", name, query_string, bound)
        interval = parameters.interval(window, self._clock(), is_series=True)
        step, zone, anchor = parameters.step(interval), parameters.zone(), parameters.integer("anchor")
        length = timedelta(seconds=interval.end - interval.start)
        if isinstance(step, timedelta) and length % step:
            raise bad_request(f"invalid step: expected the span, {length}, to be a multiple of it")
        intervals = steps(interval.start, interval.end, step, zone, window._unit, anchor=anchor)
        if len(intervals) > MAX_STEPS:
            raise bad_request(f"invalid step: expected at most {MAX_STEPS} steps, not {len(intervals)}")
        _require_cost(series_spans(window, intervals))
        counts = count_series(self._table, window, values, intervals, consistent=False)
        return {"window": name, "values": values, "series": [*map(document_of, counts)]}

    def active(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate, parameters, values = self._asked("active", name, query_string, bound)
        found = self._between(ActiveReader(self._table, aggregate, values), aggregate, parameters)
        return {"active": name, "values": values, **document_of(found)}

    def distributions(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate, parameters, values = self._asked("distributions", name, query_string, bound)
        shares = parameters.shares()
        if aggregate._shelved:
            found = self._between(DistributionReader(self._table, aggregate, values), aggregate, parameters)
        else:
            found = read_distribution(self._table, aggregate, values, consistent=parameters.consistent())
        return {"distribution": name, "values": values, **distribution_json(found, shares)}

    def extremes(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        """The first values of a group, from either end; one, if only that is kept."""
        aggregate, parameters, values = self._asked("extremes", name, query_string, bound)
        order, count = parameters.order(aggregate._only or ORDERS[0]), parameters.integer("count")
        asked = {"consistent": parameters.consistent(), "forward": order == "smallest"}
        found = read_extremes(self._table, aggregate, values, 1 if aggregate._only else count, **asked)
        return {"extremes": name, "values": values, order: _fitting([*map(document_of, found)])}

    def _asked(self, resource: str, name: str, query_string: str, bound: Bound) -> tuple[Any, QueryParameters, Values]:
        """The declaration that a request reads, its parameters, and the values that it names."""
        declared = self._declared(name, _section(resource))
        named = _FIELDS.get(resource, group_fields)(declared)
        if resource in ("distributions", "explain"):
            resource = explained_by(declared) if resource == "explain" else read_by(declared)
        parameters = QueryParameters.parse(query_string, named, OPTIONS[resource], bound)
        return declared, parameters, parameters.values(named)

    def _between(
        self, reader: SpanReader[Aggregate, _Counted], aggregate: Aggregate, parameters: QueryParameters
    ) -> _Counted:
        span = parameters.interval(aggregate, self._clock())
        if longest_of(aggregate) is None and (units := (span.end - span.start) // aggregate._unit) > MAX_UNITS:
            raise bad_request(f"invalid span: {aggregate.name!r} has {units} units in it, limit: {MAX_UNITS}")
        return reader.between(utc(span.start), utc(span.end), consistent=parameters.consistent())

    def explain(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        """The first lines that add up to a group's number, if Queries reach them."""
        declared, parameters, values = self._asked("explain", name, query_string, bound)
        ends: tuple[datetime | None, datetime | None] = None, None
        if explained_by(declared) == "explain":
            span = parameters.interval(declared, self._clock())
            if isinstance(declared, Window):
                _require_affordable([(declared, values, span)])
            ends = utc(span.start), utc(span.end)
        feeds = self._counters._feeds(None, quick=True)  # noqa: SLF001 - the stream that explanations read
        explainer = make_explainer(self._table, feeds, declared, values, ends, most=MAX_EXPLAINED)
        if not explainer.reach.ranges:
            units = explainer.reach.units
            raise bad_request(f"{name!r} is explained by a Scan, {units:,} read units: use `counters explain`")
        found = explainer.explained()
        limit = parameters.integer("limit")
        lines = [line.document() for line in islice(found.lines(), limit + 1)]
        shown = _fitting(lines[:limit])
        told = {"numbers": found.numbers, "position": dict(found.position), "difference": found.difference}
        return {"explanation": name, "values": values, **told, "lines": shown, "more": len(shown) < len(lines)}

    def events(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        event = self._declared(name, "events")
        parameters = QueryParameters.parse(query_string, *event_parameters(event), bound)
        return {"event": name, **event_page(self._counters, event, parameters, self._clock)}

    def _declared(self, name: str, section: str) -> Any:
        """The declaration of a name among those whose paths begin with a section."""
        known = self._served.get(section, {})
        if name not in known:
            detail = f"no {section.removesuffix('s')} {name!r:.120}; available: {', '.join(known) or 'none'}"
            raise ProblemError(HTTPStatus.NOT_FOUND, detail)
        return known[name]

    def _requested(self, kind: str, index: int, entry: object, bound: Bound) -> tuple[Any, QueryParameters]:
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
        return declared, QueryParameters({**values, **texts})


def _section(resource: str) -> str:
    return PATHS[resource][0].partition("/")[0]


def _fitting(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the first entries as an answer holds."""
    sizes = accumulate(len(write_json(entry)) for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_PAGE_BYTES]


def _require_affordable(asked: Sequence[Asked]) -> None:
    _require_cost([span for window, _, interval in asked for span in plan_queries(window._kept_tiers, interval)])


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


def document_of(read: Group | Ranked | WindowCount | Statement | Distribution | Extreme) -> dict[str, Any]:
    """All that was read by its names, moments as texts; of a statement, the total too."""
    found = {one.name: getattr(read, one.name) for one in fields(read)}
    if isinstance(read, Statement):
        found["total"] = read.total
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}
