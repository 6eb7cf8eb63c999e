"""``counters drop``: delete the items of generations that backfills have replaced, and of removed declarations."""

from __future__ import annotations

from typing import Any

import click

from dynamodb_counters._backfill.dropping import Dropping
from dynamodb_counters._backfill.wiring import ServiceTime
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.runs import with_pace
from dynamodb_counters.cli.session import Session, shared, with_dry_run
from dynamodb_counters.cli.show.formats import counted, number


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@with_pace
@with_dry_run
@shared
def drop(session: Session, *, dry_run: bool, yes: bool, **manner: Any) -> int:
    """Delete items of counts that a backfill has replaced two days ago, or earlier.

    With NAME also those of a declaration that was removed then. It scans the table; run it again if it breaks off.
    """
    described = session.table.client.describe_table(TableName=session.table.name)["Table"]
    items = described.get("ItemCount", 0)
    if not dry_run and not session.confirm(f"Scan {number(items)} items, and delete those that are unused?", yes=yes):
        return FOUND
    now = session.service_time or ServiceTime(session.table)
    dropping = Dropping(table=session.table, now=now, dry_run=dry_run, **manner)
    with session.progress("scanned", items) as show:
        for scanned in dropping.steps():
            show(scanned)
    found = dict(sorted(dropping.dropped.items()))
    verb = "would delete" if dry_run else "deleted"
    lines = [f"{name}: {verb} {counted(count, 'item')}" for name, count in found.items()]
    lines = lines or ["nothing is left over"]
    lines.append(f"{number(dropping.scanned)} items scanned, {number(round(dropping.pace.consumed))} units")
    session.emit({"dropped": found, "scanned": dropping.scanned, "units": dropping.pace.consumed}, lines)
    return DONE
