"""``counters accept`` and ``counters retract``: accept one event, typed by hand, or take it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters.cli.arguments import typed
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, required=True, metavar="ATTRIBUTE=TEXT|ATTRIBUTE:=JSON…")
@shared
def accept(session: Session, name: str, attributes: tuple[str, ...]) -> int:
    """Accept one event of the declaration NAME, with its attributes: price:=9.5 is a number, id=1 what is declared.

    Without a declared type, id=1 is a text.

    Prints what became of it, such as `accepted` or `duplicate`. Exit code 1: it is neither. See `replay` for files.
    """
    event = session.find(Event, name)
    outcome = session.counters.accept(event, values_of(event, attributes))
    if outcome.status == "rejected":
        raise click.UsageError(str(outcome.reason))
    document = {"status": outcome.status, "reason": outcome.reason}
    session.emit(document, ": ".join(text for text in (outcome.status, outcome.reason) if text))
    return DONE if outcome.status in ("accepted", "duplicate") else FOUND


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


def values_of(event: Event, given: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise click.UsageError(f"invalid attribute {one!r}: expected attribute=text or attribute:=JSON")
        if name in values:
            raise click.UsageError(f"the attribute {name!r} is given twice")
        try:
            values |= {name: read_json(text)} if is_json else typed(event, {name: text})
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"invalid attribute {one!r}: expected JSON after := ({error})") from None
    return values
