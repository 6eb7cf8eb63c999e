"""``counters get`` and ``counters top``: groups of an aggregate, all of a partition, or the first of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from itertools import islice

import click
from rich.bar import Bar
from rich.console import Group as Lines
from rich.console import RenderableType

from dynamodb_counters._control.control import Statuses
from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.composites import TIMED, group_fields, read_by
from dynamodb_counters._declarations.groups import Group
from dynamodb_counters._http.parameters import ORDERS, leaderboard_fields
from dynamodb_counters._http.resources import distribution_json, document_of, group_json
from dynamodb_counters._reads.group_reads import read_extremes
from dynamodb_counters._reads.span_reads import read_distribution
from dynamodb_counters.cli.arguments import fields_of, with_consistent
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import (
    ACCENT,
    HEADING,
    QUIET,
    SHARES,
    distribution_rows,
    grid,
    moment_text,
    number,
    pairs,
)


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
    complete, as_declared = Statuses.of_table(session.table).standing(aggregate)
    if not complete:
        session.tell(f"not complete: `counters backfill {aggregate.name}` counts what was there before")
    if not as_declared:
        session.tell(f"by the definition before: `counters backfill {aggregate.name}` counts by the new one")
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
