"""``counters top``: the first groups of a leaderboard."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import click
from rich.bar import Bar

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._declarations.kinds import group_fields, read_by
from dynamodb_counters._http.parameters import ORDERS, leaderboard_fields
from dynamodb_counters._http.resources import extreme_json
from dynamodb_counters._reads.extreme_reads import read_extremes
from dynamodb_counters.cli.arguments import fields_of
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import ACCENT, QUIET, grid, moment_text, number


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
        emit_extremes(session, aggregate, values, limit, ORDERS[smallest])
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


def emit_extremes(
    session: Session, aggregate: Aggregate, values: dict[str, str], count: int, *ends: str, consistent: bool = False
) -> None:
    count = 1 if aggregate._only else count
    read = partial(read_extremes, session.table, aggregate, values, count, consistent=consistent)
    found = {end: read(forward=end == "smallest") for end in ends}
    names = aggregate._sk_template.fields[1:]
    shown = grid("", "#", "value", "items", *names, numbers=("#", "value", "items"))
    for end, extremes in found.items():
        for place, one in enumerate(extremes, 1):
            value = moment_text(one.value) if isinstance(one.value, datetime) else number(one.value)
            shown.add_row(end if place == 1 else "", str(place), value, number(one.items), *one.shown.values())
    shown.columns[0].style = QUIET
    told = {end: [extreme_json(one) for one in extremes] for end, extremes in found.items()}
    session.emit({"extremes": aggregate.name, "values": values, **told}, shown)
