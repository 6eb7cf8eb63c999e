"""Answers to questions about counts, as plain documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration, Histogram, Window
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.parameters import MAX_COUNT, MAX_STEPS, Question
from dynamodb_counters._http.problems import ProblemError, refused
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._timeline.intervals import Interval
from dynamodb_counters._timeline.times import utc

_Declared = TypeVar("_Declared", Aggregate, Window)


class Reading:
    """The declarations that an API shows, and what it answers about them.

    Parameters
    ----------
    counters : Counters
        Where the counts are.
    declarations : iterable of Aggregate and Window
        What is shown; nothing else can be asked for.
    clock : callable
        Gives seconds since 1970.
    """

    def __init__(self, counters: Counters, declarations: Iterable[Declaration], clock: Callable[[], float]) -> None:
        self._counters = counters
        self._clock = clock
        self._declared: dict[str, Declaration] = {declared.name: declared for declared in declarations}

    def get(self, name: str, query: str) -> dict[str, Any]:
        """Answer what one group is."""
        aggregate = self._aggregate(name)
        asked = Question.parse(query, aggregate.fields, ["consistent"])
        values = asked.values(aggregate.fields)
        return _group(name, self._counters.get(aggregate, values, consistent=asked.consistent()))

    def get_many(self, document: object) -> dict[str, Any]:
        """Answer what many groups are."""
        wanted = [self._wanted(place, item) for place, item in enumerate(_items(document))]
        groups = self._counters.get_many(wanted)
        return {"groups": [_group(asked.name, group) for (asked, _), group in zip(wanted, groups, strict=True)]}

    def groups(self, name: str, query: str) -> dict[str, Any]:
        """Answer all groups of an aggregate that share a partition key."""
        aggregate = self._aggregate(name)
        if aggregate.write_shards > 1:
            raise refused(f"{name!r} is spread over several partition keys; ask for one group")
        fields = aggregate.pk_template.fields
        asked = Question.parse(query, fields, ["consistent"])
        found = self._counters.group([aggregate], asked.values(fields), consistent=asked.consistent())
        return {"groups": [_group(name, group) for group in found[name]]}

    def top(self, name: str, query: str) -> dict[str, Any]:
        """Answer who is first on a board."""
        aggregate = self._aggregate(name)
        fields = board_fields(aggregate)
        asked = Question.parse(query, fields, ["count"])
        ranked = self._counters.top(aggregate, asked.values(fields), count=asked.count())
        return {"aggregate": name, "ranked": [{"values": dict(one.values), "score": one.score} for one in ranked]}

    def histogram(self, name: str, measure: str, query: str) -> dict[str, Any]:
        """Answer how a measure is distributed."""
        aggregate = self._aggregate(name)
        if not isinstance(aggregate.measures.get(measure), Histogram):
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no histogram {measure!r} of {name!r}")
        asked = Question.parse(query, aggregate.fields, ["consistent"])
        values = asked.values(aggregate.fields)
        bins = self._counters.histogram(aggregate, values, measure, consistent=asked.consistent())
        counted = [{"bin": number, "count": count} for number, count in sorted(bins.items())]
        return {"aggregate": name, "measure": measure, "values": values, "bins": counted}

    def window(self, name: str, query: str) -> dict[str, Any]:
        """Answer how many in the last so long."""
        window = self._window(name)
        asked = Question.parse(query, window.fields, ["last", "as_of", "consistent"])
        values = asked.values(window.fields)
        last, as_of = asked.duration("last", "24h"), asked.as_of(self._clock())
        count = self._counters.window(window, values, last=last, as_of=as_of, consistent=asked.consistent())
        return {"window": name, "values": values, **_count(count)}

    def series(self, name: str, query: str) -> dict[str, Any]:
        """Answer how many in each step of the last so long."""
        window = self._window(name)
        asked = Question.parse(query, window.fields, ["last", "step", "as_of"])
        values = asked.values(window.fields)
        last, step = asked.duration("last", "24h"), asked.duration("step", "1h")
        if last % step or last // step > MAX_STEPS:
            raise refused(f"last is a whole number of steps, {MAX_STEPS} at most")
        whole = Interval.ending_at(asked.as_of(self._clock()).timestamp(), last, window.unit)
        counts = self._counters.series(window, values, utc(whole.start), utc(whole.end), step=step)
        return {"window": name, "values": values, "series": [_count(count) for count in counts]}

    def _aggregate(self, name: str) -> Aggregate:
        return self._known(name, Aggregate)

    def _window(self, name: str) -> Window:
        return self._known(name, Window)

    def _known(self, name: str, kind: type[_Declared]) -> _Declared:
        declared = self._declared.get(name)
        if not isinstance(declared, kind):
            known = ", ".join(other.name for other in self._declared.values() if isinstance(other, kind)) or "none"
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no {kind.__name__.lower()} {name!r}; there are: {known}")
        return declared

    def _wanted(self, place: int, item: object) -> tuple[Aggregate, Mapping[str, str]]:
        if not isinstance(item, Mapping) or item.keys() != {"aggregate", "values"}:
            raise refused(f"groups[{place}] is not an object of 'aggregate' and 'values'")
        name, values = item["aggregate"], item["values"]
        if not isinstance(name, str):
            raise refused(f"groups[{place}].aggregate is no string")
        aggregate = self._aggregate(name)
        if not isinstance(values, Mapping) or values.keys() != set(aggregate.fields):
            raise refused(f"groups[{place}].values is not an object of: {', '.join(aggregate.fields) or 'nothing'}")
        if not all(isinstance(value, str) for value in values.values()):
            raise refused(f"groups[{place}].values holds something else than strings")
        return aggregate, values


def board_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """Give the fields of an aggregate's board.

    Parameters
    ----------
    aggregate : Aggregate
        Which aggregate.

    Returns
    -------
    tuple of str
        Those a question must name.

    Raises
    ------
    ProblemError
        The aggregate is not ranked.
    """
    if aggregate.ranking is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, f"{aggregate.name!r} is not ranked")
    return tuple(name for name in aggregate.ranking.template.fields if name in aggregate.fields)


def _items(document: object) -> list[object]:
    items = document.get("groups") if isinstance(document, Mapping) and len(document) == 1 else None
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_COUNT:
        raise refused(f"the body is not an object of 'groups': an array of 1 to {MAX_COUNT}")
    return items


def _group(name: str, group: Group) -> dict[str, Any]:
    measures = {
        measure: {str(number): count for number, count in value.items()} if isinstance(value, Mapping) else value
        for measure, value in group.measures.items()
    }
    return {"aggregate": name, "values": dict(group.values), "measures": measures}


def _count(count: WindowCount) -> dict[str, Any]:
    return {"count": count.count, "start": count.start.isoformat(), "end": count.end.isoformat()}
