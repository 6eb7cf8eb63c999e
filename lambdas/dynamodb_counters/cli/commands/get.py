"""``counters get``, ``top``, ``window`` and ``series``: groups, leaderboards, and counts over spans of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import click
from rich.bar import Bar
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from dynamodb_counters._control.counted_names import NameStates
from dynamodb_counters._declarations import Aggregate, TimeWeighted, Window
from dynamodb_counters._declarations.composites import TIMED, group_fields, read_by
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.parameters import ORDERS, leaderboard_fields
from dynamodb_counters._http.resources import distribution_json, document_of, group_json
from dynamodb_counters._reads.group_reads import read_extremes
from dynamodb_counters._reads.span_reads import ActiveReader, Distribution, DistributionReader, read_distribution
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters._timeline.tiers import DAY, HOUR, MINUTE, PERIODS, Period, time_zone
from dynamodb_counters.cli.output import (
    ACCENT,
    HEADING,
    QUIET,
    SHARES,
    WARNING,
    distribution_rows,
    grid,
    group_text,
    moment_text,
    number,
    pairs,
    span,
    stamp,
)
from dynamodb_counters.cli.session import Session, duration, fields_of, shared, span_of, with_consistent, with_span

_MOST_POINTS: Final = 46
"""Bars that one looks at together."""

_MINUTES: Final = tuple(MINUTE * times for times in (1, 2, 5, 10, 15, 30))
_STEPS: Final = (1, 5, 15, 30, *_MINUTES, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY)


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--limit", type=click.IntRange(1), help="Most groups to list. Default: 100; of extremes, 10.")
@with_consistent
@shared
def get(session: Session, name: str, group: tuple[str, ...], *, limit: int | None, consistent: bool) -> None:
    """Read one group of the aggregate NAME; without the fields of its sort key, all groups of the partition.

    Percentiles without a time show count and percentiles; extremes, the largest and the smallest values.
    """
    aggregate = session.find(Aggregate, name)
    if (read := read_by(aggregate)) in TIMED:
        raise click.UsageError(f"{name!r} counts over spans of time: `counters window {name}`")
    values = fields_of(group, group_fields(aggregate), needed=aggregate._listed_by)
    limit = limit or (10 if read == "extremes" else 100)
    more = False
    if read == "distribution":
        spread = read_distribution(session.table, aggregate, values, consistent=consistent)
        document = {"distribution": name, "values": values, **distribution_json(spread, SHARES)}
        session.emit(document, pairs(distribution_rows(spread), numbers=True))
    elif read == "extremes":
        _emit_extremes(session, aggregate, values, limit, *ORDERS, consistent=consistent)
    elif values.keys() == set(aggregate.fields):
        found = session.counters.get(aggregate, values, consistent=consistent)
        session.emit(group_json(name, found), _pairs_of(found))
    else:
        groups = session.counters.scan(aggregate, values, consistent=consistent)
        listed = [one for _, one in islice(groups, limit + 1)]
        more = len(listed) > limit
        document = {"aggregate": name, "groups": [group_json(name, one) for one in listed[:limit]], "more": more}
        session.emit(document, _rows(aggregate, listed[:limit]))
    if not NameStates.of_table(session.table).complete(aggregate):
        session.tell(f"not complete: `counters backfill {aggregate.name}` counts what was there before")
    if more:
        session.tell(f"there are more: --limit {2 * limit}")


@click.command()
@click.argument("name")
@click.argument("leaderboard", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--limit", default=10, type=click.IntRange(1), help="Most groups.")
@click.option("--smallest", is_flag=True, help="The smallest values, of extremes.")
@shared
def top(session: Session, name: str, leaderboard: tuple[str, ...], *, limit: int, smallest: bool) -> None:
    """Rank the groups of the aggregate NAME, the greatest first; or list the values of a group of the extremes NAME."""
    aggregate = session.find(Aggregate, name)
    if read_by(aggregate) == "extremes":
        values = fields_of(leaderboard, group_fields(aggregate))
        _emit_extremes(session, aggregate, values, limit, ORDERS[smallest])
        return
    if smallest:
        raise click.UsageError("--smallest is for extremes: leaderboards are read from the greatest on")
    if aggregate.ranking is None:
        known = sorted({one.name for one in session.declarations if isinstance(one, Aggregate) and one.ranking})
        raise click.UsageError(f"{name!r} is not ranked; ranked are: {', '.join(known) or 'none'}")
    values = fields_of(leaderboard, leaderboard_fields(aggregate))
    found = session.counters.top(aggregate, values, count=limit)
    measure = aggregate.ranking.measure
    shown = grid("#", *aggregate.fields, measure, "", numbers=("#", measure))
    greatest = max((one.score for one in found), default=0)
    for place, one in enumerate(found, 1):
        drawn = Bar(float(greatest), 0, float(one.score), width=30, color=ACCENT)
        shown.add_row(str(place), *one.values.values(), number(one.score), drawn)
    shown.columns[0].style = QUIET
    ranked = [{"values": dict(one.values), "score": one.score} for one in found]
    session.emit({"aggregate": name, "leaderboard": values, "measure": measure, "ranked": ranked}, shown)


def _emit_extremes(
    session: Session, aggregate: Aggregate, values: dict[str, str], count: int, *ends: str, consistent: bool = False
) -> None:
    read = partial(read_extremes, session.table, aggregate, values, count, consistent=consistent)
    found = {end: read(forward=end == "smallest") for end in ends}
    names = aggregate._sk_template.fields[1:]
    shown = grid("", "#", "value", "items", *names, numbers=("#", "value", "items"))
    for end, extremes in found.items():
        for place, one in enumerate(extremes, 1):
            value = moment_text(one.value) if isinstance(one.value, datetime) else number(one.value)
            shown.add_row(end if place == 1 else "", str(place), value, number(one.items), *one.shown.values())
    shown.columns[0].style = QUIET
    told = {end: [*map(document_of, extremes)] for end, extremes in found.items()}
    session.emit({"extremes": aggregate.name, "values": values, **told}, shown)


def _pairs_of(found: Group) -> RenderableType:
    plain = {name: number(value) for name, value in found.measures.items() if not isinstance(value, Mapping)}
    parts: list[RenderableType] = [pairs(plain, numbers=True)] if plain else []
    for name, bins in found.measures.items():
        if isinstance(bins, Mapping):
            top = max(bins.values(), default=0)
            shown = grid(name, "count", "", numbers=(name, "count"))
            for one, count in bins.items():
                named = one if isinstance(one, str) else number(one)
                shown.add_row(named, number(count), Bar(top, 0, count, width=40, color=ACCENT))
            parts += ["", shown] if parts else [shown]
    return Lines(*parts)


def _rows(aggregate: Aggregate, groups: list[Group]) -> RenderableType:
    shown = grid(*aggregate.fields, *aggregate.measures, numbers=tuple(aggregate.measures))
    for one in groups:
        cells = [f"{len(each)} bins" if isinstance(each, Mapping) else number(each) for each in one.measures.values()]
        shown.add_row(*one.values.values(), *cells)
    shown.columns[0].style = HEADING if groups else ""
    return shown


Reader: TypeAlias = WindowReader | ActiveReader | DistributionReader
_Rows: TypeAlias = dict[str, str | Text]


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@with_span
@with_consistent
@shared
def window(session: Session, name: str, group: tuple[str, ...], *, consistent: bool, **when: Any) -> None:
    """Count one group of the window NAME over a span of time; or of several, as in usage,errors.

    Active members show how many there were; percentiles, count and percentiles; a level, its ends and integral.
    """
    given = [session.find_timed(one) for one in name.split(",")]
    documents, rows = [], _Rows()
    for declared in given:
        values = fields_of(group, group_fields(declared))
        reader = reader_of(session, declared, values)
        document, shown = _counted(session, declared, reader, consistent=consistent, **when)
        documents.append({"window": declared.name, "values": values, **document})
        rows |= {label if len(given) == 1 else f"{declared.name}: {label}": value for label, value in shown.items()}
    session.emit(documents[0] if len(documents) == 1 else {"windows": documents}, pairs(rows))


def reader_of(session: Session, declared: Window | Aggregate, values: dict[str, str]) -> Reader:
    if isinstance(declared, Window):
        return session.counters.window(declared, values)
    kind = ActiveReader if read_by(declared) == "active" else DistributionReader
    return kind(session.table, declared, values)


def count_document(found: WindowCount | Distribution, shares: Sequence[str] = SHARES) -> dict[str, Any]:
    """A count with the interval it covers; its percentiles, if it has some."""
    if isinstance(found, Distribution):
        return distribution_json(found, shares)
    document = document_of(found)
    ends = {name: getattr(found, name) for name in ("start", "end") if document.get(name)}
    return document | {name: stamp(end.timestamp()) for name, end in ends.items()}


def _counted(
    session: Session, declared: Window | Aggregate, reader: Reader, *, consistent: bool, **when: Any
) -> tuple[dict[str, Any], _Rows]:
    """The count of a span; of a level, its ends and its integral, too."""
    start, end = span_of(session.clock(), **when)
    counted: WindowCount | Distribution
    if when["last"] is not None:
        counted = reader.last(when["last"], as_of=end, consistent=consistent)
    else:
        counted = reader.between(start, end, consistent=consistent)
    document, rows = count_document(counted), _span_rows(counted)
    is_level = isinstance(declared, Window) and isinstance(declared.measure, TimeWeighted)
    if is_level and isinstance(reader, WindowReader) and isinstance(counted, WindowCount):
        level = reader.integral(counted.start, counted.end, consistent=consistent)
        told = {"opening": level.opening, "closing": level.closing, "unit_hours": level.per(timedelta(hours=1))}
        rows |= {name.replace("_", "-"): number(each) for name, each in told.items()}
        document |= told
    return document, rows


def _span_rows(found: WindowCount | Distribution) -> _Rows:
    told = distribution_rows(found) if isinstance(found, Distribution) else {}
    rows = {**told, "count": Text(number(found.count), HEADING)}
    rows |= {label: moment_text(end) for label, end in (("from", found.start), ("to", found.end)) if end is not None}
    if not found.complete:
        rows["complete"] = Text("no: backfill it", WARNING)
    return rows


Step = timedelta | Period


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@with_span
@click.option("--step", "given", help=f"Such as 15m, or {', '.join(PERIODS)}. Default: by the span.")
@click.option("--tz", default="UTC", help="Time zone, such as Europe/Berlin.")
@click.option("--rolling", type=duration, help="A trailing span per unit of time, such as 30d, of active members.")
@click.option("--p", default=0.95, type=click.FloatRange(0, 1), help="The percentile, of percentiles.")
@with_consistent
@shared
def series(
    session: Session,
    name: str,
    group: tuple[str, ...],
    *,
    given: str | None,
    tz: str,
    rolling: timedelta | None,
    p: float,
    consistent: bool,
    **when: Any,
) -> None:
    """Count one group of the window NAME step by step, and draw it; or active members, or a percentile."""
    declared = session.find_timed(name)
    values = fields_of(group, group_fields(declared))
    reader = reader_of(session, declared, values)
    start, end = span_of(session.clock(), **when)
    unit = declared._unit
    step = _step(given, end - start, unit)
    zone = time_zone(tz)
    if isinstance(step, timedelta) and when["last"] is not None:
        # The last step is the one that has begun: steps begin at round times.
        end = _rounded_up(end, step, zone)
        start = _rounded_up(start, step, zone)
    found: Sequence[WindowCount | Distribution]
    if rolling is None:
        found = reader.series(start, end, step=step, tz=zone, consistent=consistent)
    elif isinstance(reader, ActiveReader) and given is None:
        found, step = reader.rolling(start, end, rolling, consistent=consistent), timedelta(seconds=unit)
    else:
        raise click.UsageError("--rolling is for active members, by their unit of time: leave out --step")
    # Neither different members nor percentiles of several steps add up.
    adds_up = isinstance(declared, Window)
    drawn = [(one.p(p) or 0) if isinstance(one, Distribution) else one.count for one in found]
    together = sum(drawn) if adds_up else max(drawn)
    document = {
        "window": name,
        "values": values,
        "step": int(step.total_seconds()) if isinstance(step, timedelta) else step,
        "tz": tz,
        "total" if adds_up else "most": together,
        "series": [count_document(one, [f"{p:g}"]) for one in found],
    }
    length = timedelta(0) if rolling is None else rolling - timedelta(seconds=unit)
    what = "count" if rolling is None else f"members of {span(rolling)}"
    what = f"p{p * 100:g}" if isinstance(found[0], Distribution) else what
    shown, greatest = grid("from", what, "", numbers=(what,), keep=("from",)), float(max(drawn))
    starts = ["" if one.start is None else moment_text(one.start + length, zone) for one in found]
    for start_text, value in zip(starts, drawn, strict=True):
        shown.add_row(start_text, number(value), Bar(greatest, 0, float(value), width=40, color=ACCENT))
    each = span(step) if isinstance(step, timedelta) else f"1 {step}"
    all_of = f"{number(together)} {'in all' if adds_up else 'at most'}"
    head = Text.assemble((f"{name} {group_text(values)}".rstrip(), HEADING), (f"  {all_of}, {each} per bar", QUIET))
    session.emit(document, Lines(head, "", shown))


def _step(given: str | None, length: timedelta, unit: int) -> Step:
    if given is not None:
        return cast("Period", given) if given in PERIODS else duration(given)
    fitting = (one for one in _STEPS if one >= unit and length.total_seconds() / one <= _MOST_POINTS)
    return timedelta(seconds=next(fitting, DAY))


def _rounded_up(when: datetime, step: timedelta, zone: object) -> datetime:
    """The next multiple of a step, counted from local midnight."""
    local = when.astimezone(zone)  # type: ignore[arg-type]
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    behind = (local - midnight) % step
    return when if not behind else when + step - behind
