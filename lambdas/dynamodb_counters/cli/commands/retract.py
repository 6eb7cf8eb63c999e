"""``counters retract``: take back one event."""

from __future__ import annotations

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters.cli.commands.accept import values_of
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, required=True, metavar="ATTRIBUTE=TEXT|ATTRIBUTE:=JSON…")
@shared
def retract(session: Session, name: str, attributes: tuple[str, ...]) -> int:
    """Delete one event of the declaration NAME, by the attributes of its key; its counts go down.

    Exit code 1: there is none, unless it expired or has not come yet.
    """
    event = session.find(Event, name)
    found = session.counters.retract(event, values_of(event, attributes))
    session.emit({"retracted": found}, "retracted" if found else "there is no such event")
    return DONE if found else FOUND
