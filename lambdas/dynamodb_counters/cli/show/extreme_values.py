"""The values at the ends of a group."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters._http.resources import extreme_json
from dynamodb_counters._reads.extreme_reads import read_extremes
from dynamodb_counters.cli.session import Session
from dynamodb_counters.cli.show.formats import QUIET, grid, moment_text, number


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
