"""The resources of the counter API: counts and events as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from http import HTTPStatus
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Histogram, Window
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._fold.contributions import MAX_GROUP_BYTES
from dynamodb_counters._http.event_pages import MAX_PAGE_BYTES, EventListing, page_of
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._http.parameters import (
    GROUP_OPTIONS,
    GROUPS_OPTIONS,
    MAX_COUNT,
    MAX_STEPS,
    SERIES_OPTIONS,
    TOP_OPTIONS,
    WINDOW_OPTIONS,
    Position,
    QueryParameters,
    event_parameters,
    leaderboard_fields,
)
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._http.tenancy import filled_in
from dynamodb_counters._reads.bucket_queries import series_spans
from dynamodb_counters._reads.rankings import Ranked
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._timeline.calendars import steps
from dynamodb_counters._timeline.intervals import Interval, Span, plan_queries, read_cost
from dynamodb_counters._timeline.times import utc

Bound: TypeAlias = Mapping[str, str]
_NONE: Final[Bound] = MappingProxyType({})

MAX_READ_UNITS: Final = 650
"""Read units of one window or series, eventually consistent: 366 days of a window that declares its key only."""

_Declared = TypeVar("_Declared", Aggregate, Window, Event)


class CountResources:
    """The counts of the given declarations, and the given events; no others can be requested.

    Every request says which fields the caller's claims have `bound`, and gets nothing of others' values.
    """

    def __init__(
        self, counters: Counters, declarations: Iterable[Declaration | Event], clock: Callable[[], float]
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._declarations: dict[str, Declaration | Event] = {declared.name: declared for declared in declarations}

    def group(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        parameters = QueryParameters.parse(query_string, aggregate.fields, GROUP_OPTIONS, bound)
        values = parameters.values(aggregate.fields)
        return _group_json(name, self._counters.get(aggregate, values, consistent=parameters.consistent()))

    def batch(self, document: object, bound: Bound = _NONE) -> dict[str, Any]:
        """Read groups of any aggregates, as a request's body lists them."""
        wanted = [self._requested_group(index, entry, bound) for index, entry in enumerate(_batch_entries(document))]
        groups = self._counters.get_many(wanted)
        found = [_group_json(aggregate.name, group) for (aggregate, _), group in zip(wanted, groups, strict=True)]
        if len(_fitting(found)) < len(found):
            raise bad_request(f"the groups take more than {MAX_PAGE_BYTES} bytes of JSON: request fewer")
        return {"groups": found}

    def groups(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        """List the groups of an aggregate in one partition, page by page."""
        aggregate = self._declared(name, Aggregate)
        if aggregate.write_shards > 1:
            raise bad_request(f"{name!r} is sharded over several partitions; request one group at a time")
        fields = aggregate._pk_template.fields
        parameters = QueryParameters.parse(query_string, fields, GROUPS_OPTIONS, bound)
        values, consistent = parameters.values(fields), parameters.consistent()
        groups = self._counters.scan(aggregate, values, after=parameters.after().sk, consistent=consistent)
        listed = ((Position(0, "", key), _group_json(name, group)) for key, group in groups)
        page = page_of(listed, parameters, self._clock)
        return {"groups": page.found, "next": page.next}

    def top(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        fields = leaderboard_fields(aggregate)
        parameters = QueryParameters.parse(query_string, fields, TOP_OPTIONS, bound)
        ranked = self._counters.top(aggregate, parameters.values(fields), count=parameters.count())
        entries = [{"values": dict(one.values), "score": one.score, **_standing(one)} for one in ranked]
        return {"aggregate": name, "ranked": _fitting(entries)}

    def histogram(self, name: str, measure: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        if not isinstance(aggregate.measures.get(measure), Histogram):
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no histogram {measure!r} in {name!r}")
        parameters = QueryParameters.parse(query_string, aggregate.fields, GROUP_OPTIONS, bound)
        values = parameters.values(aggregate.fields)
        group = self._counters.get(aggregate, values, consistent=parameters.consistent())
        bins = [{"bin": key, "count": count} for key, count in sorted(group[measure].items())]
        return {"aggregate": name, "measure": measure, "values": values, "bins": bins, **_standing(group)}

    def window(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        window = self._declared(name, Window)
        parameters = QueryParameters.parse(query_string, window.fields, WINDOW_OPTIONS, bound)
        values, last, as_of = parameters.values(window.fields), parameters.last(window), parameters.as_of(self._clock())
        interval = Interval.ending_at(as_of.timestamp(), last, window._unit)
        _require_affordable(plan_queries(window._kept_tiers, interval))
        count = self._counters.window(window, values).last(last, as_of=as_of, consistent=parameters.consistent())
        return {"window": name, "values": values, **_count_json(count)}

    def series(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        window = self._declared(name, Window)
        parameters = QueryParameters.parse(query_string, window.fields, SERIES_OPTIONS, bound)
        values, last = parameters.values(window.fields), parameters.last(window)
        step = parameters.step(last)
        if last % step or last // step > MAX_STEPS:
            raise bad_request(
                f"invalid step: expected 'last' to be a multiple of it, at most {MAX_STEPS} times as long"
            )
        interval = Interval.ending_at(parameters.as_of(self._clock()).timestamp(), last, window._unit)
        _require_affordable(series_spans(window, steps(interval.start, interval.end, step, UTC, window._unit)))
        counts = self._counters.window(window, values).series(utc(interval.start), utc(interval.end), step=step)
        return {"window": name, "values": values, "series": [_count_json(count) for count in counts]}

    def events(self, name: str, query_string: str, bound: Bound = _NONE) -> dict[str, Any]:
        event = self._declared(name, Event)
        parameters = QueryParameters.parse(query_string, *event_parameters(event), bound)
        page = EventListing(self._counters, event, parameters, self._clock).page()
        return {"event": name, "events": page.found, "next": page.next}

    def _declared(self, name: str, kind: type[_Declared]) -> _Declared:
        declared = self._declarations.get(name)
        if not isinstance(declared, kind):
            names = [other.name for other in self._declarations.values() if isinstance(other, kind)]
            detail = f"no {kind.__name__.lower()} {name!r:.120}; available: {', '.join(names) or 'none'}"
            raise ProblemError(HTTPStatus.NOT_FOUND, detail)
        return declared

    def _requested_group(self, index: int, entry: object, bound: Bound) -> tuple[Aggregate, Mapping[str, str]]:
        where = f"groups[{index}]"
        if not isinstance(entry, Mapping) or entry.keys() != {"aggregate", "values"}:
            raise bad_request(f"invalid {where}: expected an object with members 'aggregate' and 'values'")
        name, values = entry["aggregate"], entry["values"]
        if not isinstance(name, str):
            raise bad_request(f"invalid {where}.aggregate: expected a string")
        aggregate = self._declared(name, Aggregate)
        if isinstance(values, Mapping):
            values = filled_in(values, bound)
        if not isinstance(values, Mapping) or values.keys() != set(aggregate.fields):
            members = f"members {', '.join(aggregate.fields)}" if aggregate.fields else "no members"
            raise bad_request(f"invalid {where}.values: expected an object with {members}")
        if not all(isinstance(value, str) for value in values.values()):
            raise bad_request(f"invalid {where}.values: expected strings")
        if sum(map(len, values.values())) > MAX_GROUP_BYTES:
            raise bad_request(f"invalid {where}.values: expected at most {MAX_GROUP_BYTES} bytes, as a group has")
        return aggregate, values


def _batch_entries(document: object) -> list[object]:
    entries = document.get("groups") if isinstance(document, Mapping) and len(document) == 1 else None
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_COUNT:
        raise bad_request(f"invalid body: expected an object with member 'groups', an array of 1 to {MAX_COUNT}")
    return entries


def _fitting(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the first entries as an answer holds."""
    sizes = accumulate(len(write_json(entry)) for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= MAX_PAGE_BYTES]


def _require_affordable(spans: Sequence[Span]) -> None:
    if (cost := read_cost(spans)) > MAX_READ_UNITS:
        detail = f"the window takes about {cost:.0f} read units, limit: {MAX_READ_UNITS}; declare it as its `longest`"
        raise bad_request(f"invalid last: {detail}")


def _group_json(name: str, group: Group) -> dict[str, Any]:
    measures = {
        measure: {str(key): count for key, count in value.items()} if isinstance(value, Mapping) else value
        for measure, value in group.measures.items()
    }
    return {"aggregate": name, "values": dict(group.values), "measures": measures, **_standing(group)}


def _count_json(count: WindowCount) -> dict[str, Any]:
    ends = {"start": count.start.isoformat(), "end": count.end.isoformat()}
    return {"count": count.count, **ends, **_standing(count)}


def _standing(read: Group | Ranked | WindowCount) -> dict[str, Any]:
    return {"complete": read.complete, "as_declared": read.as_declared}
