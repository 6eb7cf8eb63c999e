"""``counters drop``: delete the items of generations that backfills have replaced, and of removed declarations."""

from __future__ import annotations

import click

from dynamodb_counters._backfill.dropping import Dropping
from dynamodb_counters._backfill.wiring import ServiceTime
from dynamodb_counters.cli.arguments import Rate
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import number


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.option("--units-per-second", type=Rate(), help="Most units. Default: all.")
@click.option("--segments", type=click.IntRange(1, 100), default=4, show_default=True, help="Scanned at once.")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted, and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared
def drop(
    session: Session, names: tuple[str, ...], *, units_per_second: float | None, segments: int, dry_run: bool, yes: bool
) -> int:
    """Delete items of counts that a backfill has replaced two days ago, or earlier.

    With NAME also those of a declaration that was removed then. It scans the table; run it again if it breaks off.
    """
    described = session.table.client.describe_table(TableName=session.table.name)["Table"]
    items = described.get("ItemCount", 0)
    if not dry_run and not session.confirm(f"Scan {number(items)} items, and delete those that are unused?", yes=yes):
        return FOUND
    dropping = Dropping(
        table=session.table,
        now=session.service_time or ServiceTime(session.table),
        names=names,
        segments=segments,
        units_per_second=units_per_second,
        dry_run=dry_run,
    )
    with session.progress("scanned", items) as advance:
        before = 0
        for scanned in dropping.steps():
            advance(scanned - before)
            before = scanned
    found = dict(sorted(dropping.dropped.items()))
    verb = "would delete" if dry_run else "deleted"
    lines = [f"{name}: {verb} {number(count)} item{'s' * (count != 1)}" for name, count in found.items()]
    lines = lines or ["nothing is left over"]
    lines.append(f"{number(dropping.scanned)} items scanned, {number(round(dropping.pace.consumed))} units")
    session.emit({"dropped": found, "scanned": dropping.scanned, "units": dropping.pace.consumed}, lines)
    return DONE
