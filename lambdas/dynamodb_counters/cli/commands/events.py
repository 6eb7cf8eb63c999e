"""``counters events``, ``accept`` and ``retract``: accepted events as they lie in the table; one more, or one less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import click
from rich.table import Table as Grid

from dynamodb_counters._declarations import Event
from dynamodb_counters._http.lossless_json import read_json
from dynamodb_counters.cli.arguments import fields_of, moment, typed, with_consistent
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import grid


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--since", "start", type=moment, help="The events' times from here on. ISO 8601; without an offset, UTC.")
@click.option("--until", "end", type=moment, help="The events' times before this.")
@click.option("--time", help="Attribute with the time of an event that is not packed, for --since and --until.")
@click.option(
    "--after", default="", show_default=False, metavar="SORT KEY", help="Begin after it, as the page before said."
)
@click.option("--limit", default=20, type=click.IntRange(1), help="Events of a page.")
@click.option("--all", "everything", is_flag=True, help="All pages.")
@with_consistent
@shared
def events(
    session: Session, name: str, attributes: tuple[str, ...], *, limit: int, everything: bool, **asked: Any
) -> None:
    """List events of the declaration NAME that have these values.

    The fields of their partition key are needed; of packed events the tenant, if they have one.
    """
    event = session.find(Event, name)
    values = fields_of(attributes, None, needed=event.packed._tenants if event.packed else event._pk_template.fields)
    read = session.counters.events(event, values, **asked)
    listed = list(read if everything else islice(read, limit + 1))
    page = listed if everything else listed[:limit]
    has_more = len(listed) > len(page)
    following = event._sk_template.render(page[-1]) if has_more and event.packed is None else None
    session.emit({"event": name, "events": page, "more": has_more, "next": following}, _rows(event, page))
    if has_more:
        said = f"--after '{following}'" if following else "narrow them by --since"
        session.tell(f"there are more: {said}, or --all")


def _rows(event: Event, page: list[dict[str, Any]]) -> Grid:
    columns = dict.fromkeys((*event.fields, *(name for one in page for name in one)))
    texts = (str, bytes, bool, Mapping, list, set)
    numeric = [name for name in columns if not any(isinstance(one.get(name), texts) for one in page)]
    shown = grid(*columns, numbers=numeric)
    for one in page:
        shown.add_row(*("" if value is None else str(value) for value in map(one.get, columns)))
    return shown


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
    outcome = session.counters.accept(event, _values_of(event, attributes))
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
    found = session.counters.retract(event, _values_of(event, attributes))
    session.emit({"retracted": found}, "retracted" if found else "there is no such event")
    return DONE if found else FOUND


def _values_of(event: Event, given: Sequence[str]) -> dict[str, Any]:
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
