"""``counters get``: what a group of an aggregate counts."""

from __future__ import annotations

import click
from rich.table import Table as Grid

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters.cli.arguments import fields_of
from dynamodb_counters.cli.session import Session, shared


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--consistent", is_flag=True, help="Read strongly consistently, at twice the read units.")
@shared
def get(session: Session, name: str, group: tuple[str, ...], *, consistent: bool) -> None:
    """Read one group of the aggregate NAME."""
    aggregate = session.find(Aggregate, name)
    values = fields_of(group, aggregate.fields)
    found = session.counters.get(aggregate, values, consistent=consistent)
    grid = Grid.grid(padding=(0, 2))
    for measure, value in found.measures.items():
        grid.add_row(measure, f"{value:,}" if isinstance(value, int) else str(value))
    session.emit({"aggregate": name, "group": dict(found.values), "measures": dict(found.measures)}, grid)
