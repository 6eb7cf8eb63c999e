"""The resources of the counter API: counts and events as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Histogram, Window
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.event_pages import EventListing
from dynamodb_counters._http.parameters import (
    GROUP_OPTIONS,
    MAX_COUNT,
    MAX_STEPS,
    SERIES_OPTIONS,
    TOP_OPTIONS,
    WINDOW_OPTIONS,
    QueryParameters,
    event_parameters,
    leaderboard_fields,
)
from dynamodb_counters._http.problems import ProblemError, bad_request
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import utc

_Declared = TypeVar("_Declared", Aggregate, Window, Event)


class CountResources:
    """The counts of the given declarations, and the given events; no others can be requested."""

    def __init__(
        self, counters: Counters, declarations: Iterable[Declaration | Event], clock: Callable[[], float]
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._declarations: dict[str, Declaration | Event] = {declared.name: declared for declared in declarations}

    def group(self, name: str, query_string: str) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        parameters = QueryParameters.parse(query_string, aggregate.fields, GROUP_OPTIONS)
        values = parameters.values(aggregate.fields)
        return _group_json(name, self._counters.get(aggregate, values, consistent=parameters.consistent()))

    def batch(self, document: object) -> dict[str, Any]:
        """Read groups of any aggregates, as a request's body lists them."""
        wanted = [self._requested_group(index, entry) for index, entry in enumerate(_batch_entries(document))]
        groups = self._counters.get_many(wanted)
        return {
            "groups": [_group_json(aggregate.name, group) for (aggregate, _), group in zip(wanted, groups, strict=True)]
        }

    def groups(self, name: str, query_string: str) -> dict[str, Any]:
        """List the groups of an aggregate in one partition."""
        aggregate = self._declared(name, Aggregate)
        if aggregate.write_shards > 1:
            raise bad_request(f"{name!r} is sharded over several partitions; request one group at a time")
        fields = aggregate.pk_template.fields
        parameters = QueryParameters.parse(query_string, fields, GROUP_OPTIONS)
        groups = self._counters.group([aggregate], parameters.values(fields), consistent=parameters.consistent())
        return {"groups": [_group_json(name, group) for group in groups[name]]}

    def top(self, name: str, query_string: str) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        fields = leaderboard_fields(aggregate)
        parameters = QueryParameters.parse(query_string, fields, TOP_OPTIONS)
        ranked = self._counters.top(aggregate, parameters.values(fields), count=parameters.count())
        return {"aggregate": name, "ranked": [{"values": dict(one.values), "score": one.score} for one in ranked]}

    def histogram(self, name: str, measure: str, query_string: str) -> dict[str, Any]:
        aggregate = self._declared(name, Aggregate)
        if not isinstance(aggregate.measures.get(measure), Histogram):
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no histogram {measure!r} in {name!r}")
        parameters = QueryParameters.parse(query_string, aggregate.fields, GROUP_OPTIONS)
        values = parameters.values(aggregate.fields)
        counts = self._counters.histogram(aggregate, values, measure, consistent=parameters.consistent())
        bins = [{"bin": key, "count": count} for key, count in sorted(counts.items())]
        return {"aggregate": name, "measure": measure, "values": values, "bins": bins}

    def window(self, name: str, query_string: str) -> dict[str, Any]:
        window = self._declared(name, Window)
        parameters = QueryParameters.parse(query_string, window.fields, WINDOW_OPTIONS)
        values = parameters.values(window.fields)
        count = self._counters.window(
            window,
            values,
            last=parameters.last(),
            as_of=parameters.as_of(self._clock()),
            consistent=parameters.consistent(),
        )
        return {"window": name, "values": values, **_count_json(count)}

    def series(self, name: str, query_string: str) -> dict[str, Any]:
        window = self._declared(name, Window)
        parameters = QueryParameters.parse(query_string, window.fields, SERIES_OPTIONS)
        values = parameters.values(window.fields)
        last, step = parameters.last(), parameters.step()
        if last % step or last // step > MAX_STEPS:
            raise bad_request(
                f"invalid step: expected 'last' to be a multiple of it, at most {MAX_STEPS} times as long"
            )
        interval = Interval.ending_at(parameters.as_of(self._clock()).timestamp(), last, window.unit)
        counts = self._counters.series(window, values, utc(interval.start), utc(interval.end), step=step)
        return {"window": name, "values": values, "series": [_count_json(count) for count in counts]}

    def events(self, name: str, query_string: str) -> dict[str, Any]:
        event = self._declared(name, Event)
        parameters = QueryParameters.parse(query_string, *event_parameters(event))
        page = EventListing(self._counters, event, parameters, self._clock).page()
        return {"event": name, "events": page.events, "next": page.end and page.end.token}

    def _declared(self, name: str, kind: type[_Declared]) -> _Declared:
        declared = self._declarations.get(name)
        if not isinstance(declared, kind):
            names = [other.name for other in self._declarations.values() if isinstance(other, kind)]
            detail = f"no {kind.__name__.lower()} {name!r}; available: {', '.join(names) or 'none'}"
            raise ProblemError(HTTPStatus.NOT_FOUND, detail)
        return declared

    def _requested_group(self, index: int, entry: object) -> tuple[Aggregate, Mapping[str, str]]:
        where = f"groups[{index}]"
        if not isinstance(entry, Mapping) or entry.keys() != {"aggregate", "values"}:
            raise bad_request(f"invalid {where}: expected an object with members 'aggregate' and 'values'")
        name, values = entry["aggregate"], entry["values"]
        if not isinstance(name, str):
            raise bad_request(f"invalid {where}.aggregate: expected a string")
        aggregate = self._declared(name, Aggregate)
        if not isinstance(values, Mapping) or values.keys() != set(aggregate.fields):
            members = f"members {', '.join(aggregate.fields)}" if aggregate.fields else "no members"
            raise bad_request(f"invalid {where}.values: expected an object with {members}")
        if not all(isinstance(value, str) for value in values.values()):
            raise bad_request(f"invalid {where}.values: expected strings")
        return aggregate, values


def _batch_entries(document: object) -> list[object]:
    entries = document.get("groups") if isinstance(document, Mapping) and len(document) == 1 else None
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_COUNT:
        raise bad_request(f"invalid body: expected an object with member 'groups', an array of 1 to {MAX_COUNT}")
    return entries


def _group_json(name: str, group: Group) -> dict[str, Any]:
    measures = {
        measure: {str(key): count for key, count in value.items()} if isinstance(value, Mapping) else value
        for measure, value in group.measures.items()
    }
    return {"aggregate": name, "values": dict(group.values), "measures": measures}


def _count_json(count: WindowCount) -> dict[str, Any]:
    return {"count": count.count, "start": count.start.isoformat(), "end": count.end.isoformat()}
