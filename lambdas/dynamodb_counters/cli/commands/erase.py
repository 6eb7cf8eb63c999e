"""``counters erase``: erase events from a table and its quarantine; see docs/erasure.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from dynamodb_counters._control.deployments import deployed_declarations
from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters.cli.arguments import fields_of
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared, with_dry_run, with_sources
from dynamodb_counters.cli.show.formats import grid, number
from dynamodb_counters.errors import EraseError

_PLACES: Final = {
    "events": "the table",
    "packed": "chunks",
    "quarantined": "the quarantine",
    "uncounted": "of these, to be counted yet",
    "pages": "pages of backfills and verifications that are over",
    "runs": "backfills and verifications whose pages stay until an hour after they end",
    "left": "copies that stay, because they wait to be counted",
}


@click.command()
@click.argument("name")
@click.argument("fields", nargs=-1, required=True, metavar="FIELD=VALUE…")
@click.option("--counts", type=click.Choice(["keep", "take_back"]), required=True, help="As expired, or as retracted.")
@click.option(
    "--uncounted", type=click.Choice(["refuse", "drop"]), default="refuse", help="Copies that wait for counting."
)
@with_dry_run
@shared
def erase(session: Session, name: str, fields: Sequence[str], *, dry_run: bool, yes: bool, **how: Any) -> int:
    """Erase the events NAME with these values of their key, wherever copies of them lie.

    Run it again once the stream's records are counted, at the latest after 24 hours.
    """
    known = [session.declarations] if session.declared else deployed_declarations(session.table)
    event = declared_event(known, name)
    values = fields_of(fields, event.fields, needed=())
    eraser = Eraser(session.table, event, values)
    if dry_run:
        _show(session, "found", eraser.find())
        return DONE
    if not yes:
        found = [f"{_PLACES[field]}: {number(count)}" for field, count in asdict(eraser.find()).items() if count]
        session.tell(f"found: {', '.join(found) or 'nothing'}")
    if not session.confirm(f"Erase them? Counts: {how['counts']}.", yes=yes):
        return FOUND
    _show(session, "erased", eraser.erase(**how))
    session.tell("Run it again once the stream's records are counted, at the latest after 24 hours.")
    return DONE


def declared_event(deployments: Iterable[tuple[Declaration, ...] | None], name: str) -> Event:
    """The event of this name, as the first of some deployments has it that knows it."""
    for declarations in deployments:
        for one in with_sources(declarations or ()):
            if isinstance(one, Event) and one.name == name:
                return one
    raise EraseError(f"no deployment of the table counts an event {name!r}: give its declarations")


def _show(session: Session, what: str, found: Erased) -> None:
    shown = grid("place", what, numbers=(what,))
    for field, count in asdict(found).items():
        if count or field == "events":
            shown.add_row(_PLACES[field], number(count))
    session.emit({what: asdict(found)}, shown)
