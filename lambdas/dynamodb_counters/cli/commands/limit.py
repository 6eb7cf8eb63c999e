"""``counters limit``: the limit of a group, of which thresholds are shares."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import click

from dynamodb_counters._declarations import Aggregate
from dynamodb_counters.cli.arguments import NUMBER, fields_of
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import number


@click.command()
@click.argument("name")
@click.argument("given", nargs=-1, metavar="[FIELD=VALUE]… [NUMBER|none]")
@shared
def limit(session: Session, name: str, given: tuple[str, ...]) -> None:
    """Show the limit of a group of the aggregate NAME, or set it to NUMBER or to none."""
    aggregate = session.find(Aggregate, name)
    *group, last = given if given and "=" not in given[-1] else (*given, "")
    values = fields_of(group, aggregate.fields)
    if last:
        wanted: Any = Decimal(last) if NUMBER.fullmatch(last) else {"none": None}.get(last, last)
        session.counters.set_limit(aggregate, wanted, values)
    found = session.counters.limit(aggregate, values)
    session.emit({"aggregate": name, "values": values, "limit": found}, "none" if found is None else number(found))
