"""Why a number is what it is: the events that its group counts, each with what it adds, and what differs.

The group is read, then what it counts, then the group again. A line is the fold of one item by the registered
definition. Whatever the lines do not come to is a difference, with what may explain it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import localcontext
from typing import Any, Final

from dynamodb_counters._backfill.verification import WAITS, counted, judge, quarantined_groups, with_score
from dynamodb_counters._control.registry import Registry, read_registry
from dynamodb_counters._control.run_items import Run, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Event, Window
from dynamodb_counters._declarations.definitions import same_definition
from dynamodb_counters._declarations.groups import canonical_fields, with_below
from dynamodb_counters._explain.reach import Question, Reach
from dynamodb_counters._fold.contributions import UNFOLDABLE
from dynamodb_counters._fold.item_layout import GroupKey, ItemLayout, group_of_item, late_parts, require_kept
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._items.conditions import Image, reader, text_reader
from dynamodb_counters._items.conversions import EXACT, Number, event_seconds, format_number
from dynamodb_counters._items.derived_fields import parts_of, tier_of
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import Interval, seconds_of, utc
from dynamodb_counters.errors import ChangedError, InvalidArgumentError, UncountedError

LINES: Final = 1000
"""Most lines that an explanation holds, unless it is told otherwise: all of them add up."""


CHANGED: Final = "it changed while it was explained: explain it again"
INCOMPLETE: Final = "its declaration does not count everything yet: backfill it"
LATE: Final = "its time is over: what came late was not counted"
UNEXPLAINED: Final = (
    "nothing shows why: records may be on their way, so explain it again later; then verify, and repair"
)


@dataclass(frozen=True, slots=True)
class Line:
    """An event, item or group that counts, or a difference.

    Parameters
    ----------
    adds : mapping of str to int or Decimal
        How much it adds to the number, by measure; of a difference, how much the number has beyond the lines.
    key, time, group : str or mapping of str to str
        What identifies it, when it happened, and which of several groups it is in.
    reason : str
        What may explain a difference.
    """

    adds: Mapping[str, Number]
    key: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    group: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it; numbers are texts, which no reader rounds."""
        texts = {name: value for name in ("key", "time", "group", "reason") if (value := getattr(self, name))}
        return {**texts, "adds": {name: format_number(number) for name, number in self.adds.items()}}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a number is what it is: what its lines add up to, and what differs.

    Parameters
    ----------
    numbers : mapping of str to int or Decimal
        The groups' sums, by measure; of a window, ``total``.
    lines : sequence of Line
        The first events, items or groups that count, by time and key.
    count : int
        How many there are in all.
    differences : sequence of Line
        By group, how much its number has beyond all lines, and what may explain it.

    Examples
    --------
    >>> found = counters.explain(VIEWS, {"url": "/"})  # doctest: +SKIP
    >>> found.numbers, found.count, found.difference  # doctest: +SKIP
    ({'views': 17}, 17, {})
    """

    numbers: Mapping[str, Number]
    lines: Sequence[Line]
    count: int
    differences: Sequence[Line]

    @property
    def difference(self) -> dict[str, Number]:
        """The number less the sum of all lines, by measure."""
        sums: dict[str, Number] = {}
        with localcontext(EXACT):
            for line in self.differences:
                _add(sums, line.adds)
        return sums


def _add(sums: dict[str, Number], numbers: Mapping[str, Number], sign: int = 1) -> None:
    for name, number in numbers.items():
        sums[name] = sums.get(name, 0) + sign * number
        if not sums[name]:
            del sums[name]


@dataclass(slots=True)
class Explainer:
    """Explains the groups that are asked for as they are when it is called."""

    table: Table
    question: Question
    reach: Reach
    registry: Registry
    _sums: dict[GroupKey, dict[str, Number]] = field(default_factory=dict)
    _counts: Counter[GroupKey] = field(default_factory=Counter)

    def explain(self, *, scan: bool = True, limit: int = LINES) -> Explanation:
        """Explain them; `scan` is whether the whole table may be read."""
        if not self.reach.ranges and not scan:
            raise InvalidArgumentError("scan", scan, f"True, for a Scan that takes {self.reach.units:,} read units")
        declared, question, begun = self.question.declaration, self.question, self.table.clock()
        plan = Plan(tuple(with_below(_timeless(declared))))
        self._sums, self._counts = {}, Counter()
        before = question.read(self.table)
        numbers: dict[str, Number] = {}
        missing: dict[GroupKey, dict[str, Number]] = {}
        with localcontext(EXACT):
            # Of none, it would read none.
            most, lines = max(limit, 1), self._lines(plan, begun)
            first = heapq.nsmallest(most, lines, key=lambda line: (line.time, *line.key.values()))[:limit]
            after = question.read(self.table)
            for group in {**after, **self._sums}:
                measures = counted(declared, group, after.get(group, []))
                measures.pop(SCORE, None)
                _add(numbers, question.part(group, measures))
                lacking = dict(self._sums.get(group, {}))
                _add(lacking, question.part(group, measures), -1)
                if lacking:
                    missing[group] = lacking
            changed = {group for group in missing if before.get(group, []) != after.get(group, [])}
            differences = list(self._differences(plan, begun, missing, after, changed)) if missing else []
        return Explanation(numbers, first, self._counts.total(), differences)

    def _lines(self, plan: Plan, now: float) -> Iterator[Line]:
        """Yield a line per event, item or group that counts; add it to the sums."""
        declared, question = self.question.declaration, self.question
        names, find_time = frozenset((declared.name,)), _time_reader(declared)
        for row, sign, held in self.reach.rows(declared):
            for (_, group), numbers in sums_of(folded_alone(plan, names, row, now, held)).items():
                part = question.part(group, numbers) if question.holds(group) else {}
                if part:
                    adds = {name: sign * number for name, number in part.items()}
                    _add(self._sums.setdefault(group, {}), adds)
                    self._counts[group] += 1
                    named = {} if question.spans else question.name(group)
                    yield Line(adds, _key_of(declared.source, row, held.keys), find_time(row), named)

    def _differences(
        self,
        plan: Plan,
        begun: float,
        missing: Mapping[GroupKey, Mapping[str, Number]],
        after: Mapping[GroupKey, list[Image]],
        changed: set[GroupKey],
    ) -> Iterator[Line]:
        """Yield how much groups have beyond their lines, with all that may explain it."""
        declared, now, layout = self.question.declaration, self.table.clock(), ItemLayout(self.question.declaration)
        # After the groups: what they lack because it waits is there by now.
        since, names = Run("", "verify", int(begun), (declared.name,)), self.registry.names
        origins = Origins(self.table.name, self.registry.source or None)
        waits, _ = quarantined_groups(self.table, origins, plan, since, names.values())
        may_exceed = read_registry(self.table).may_exceed(declared)
        for group, lacking in sorted(missing.items(), key=repr):
            waiting = waits[declared.name, group]
            is_late = late_parts(declared, group, now) or (layout.closing_time and layout.closing_time(group) <= now)
            causes = {
                INCOMPLETE: not names[declared.name].is_complete,
                CHANGED: group in changed,
                WAITS[waiting > 1].format(waiting): waiting,
                LATE: is_late,
            }
            why = [cause for cause, holds in causes.items() if holds]
            is_gone = not after.get(group)
            for verdict, reason, numbers in judge(
                declared, with_score(declared, lacking), may_exceed=may_exceed, is_gone=is_gone
            ):
                adds = {name: -number for name, number in numbers.items() if name != SCORE}
                reasons = [*why, *([reason] if reason else [])]
                if not why and verdict != "unknown":
                    reasons.insert(0, UNEXPLAINED)
                yield Line(adds, group=self.question.name(group), reason="; ".join(reasons))


def _timeless(declared: Declaration) -> Any:
    """Return the declaration without what depends on when an event comes: what is early waits, and late is a reason."""
    free: dict[str, Any] = {"retention": None}
    if isinstance(declared, Window):
        free |= {"future_tolerance": None, "tiers": tuple(tier.name for tier in declared._kept_tiers)}
    return replace(declared, **free)


def _time_reader(declared: Declaration) -> Any:
    source: Any = declared.source
    derived = [parts_of(name)[0] for name in declared.fields if tier_of(name)]
    packed = [source.packed.time] if isinstance(source, Event) and source.packed is not None else []
    time = declared.time if isinstance(declared, Window) else next(iter(derived + packed), None)
    if isinstance(source, Aggregate) or time is None:
        return lambda _: ""
    find = reader(time)

    def text(row: Image) -> str:
        with suppress(*UNFOLDABLE):
            return f"{utc(event_seconds(find(row))):%Y-%m-%dT%H:%M:%SZ}"  # type: ignore[arg-type]
        return ""

    return text


def _key_of(source: Any, row: Image, keys: Image) -> dict[str, str]:
    if isinstance(source, Aggregate) and (group := group_of_item(source, row)) is not None:
        return dict(zip(source.fields, group, strict=True))
    if isinstance(source, Event) and row.keys() >= {*source.fields}:
        return {name: text_reader(name, literal=True)(row) for name in source.fields}
    return {name: str(next(iter(value.values()))) for name, value in keys.items()}


def make_explainer(
    table: Table,
    declared: Any,
    values: Mapping[str, object],
    ends: tuple[datetime | None, datetime | None] = (None, None),
) -> Explainer:
    """Make what explains groups of a declaration, with its price."""
    wanted = getattr(declared, "_parts", (declared,))[-1]
    if not isinstance(wanted, Aggregate | Window) or isinstance(wanted.source, Direct):
        allowed = "an Aggregate of events or items, Window, Distinct, Percentiles, Extremes or ActiveMembers"
        raise InvalidArgumentError("declaration", getattr(declared, "name", declared), allowed)
    registry = read_registry(table)
    entry = registry.names.get(wanted.name)
    declaration = entry.declaration if entry is not None else None
    if declaration is None:
        raise UncountedError(wanted.name)
    if not same_definition(declaration, wanted):
        raise ChangedError(wanted.name)
    texts = canonical_fields(declaration, declaration.fields, values)
    if isinstance(declaration, Aggregate):
        require_kept(declaration, texts, table.clock())
    question = Question(declaration, texts, _interval(declaration, *ends))
    return Explainer(table, question, Reach.of(question, table, registry.source or ""), registry)


def _interval(declared: Declaration, start: datetime | None, end: datetime | None) -> Interval | None:
    if start is None or end is None:
        if start is not end:
            raise InvalidArgumentError("start" if start is None else "end", None, "both ends of a span, or neither")
        return None
    if not isinstance(declared, Window):
        raise InvalidArgumentError("start", start, f"no span: {declared.name!r} is no Window")
    begin, until = seconds_of("start", start), seconds_of("end", end)
    if begin >= until:
        raise InvalidArgumentError("end", end, "a moment after start")
    return Interval.around(begin, until, declared._unit)
