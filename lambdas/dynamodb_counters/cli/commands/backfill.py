"""``counters backfill`` and ``counters drop``: count what the table held before; delete counts that were replaced."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

import click
from rich.filesize import decimal

from dynamodb_counters._backfill.backfill import Backfill, Dropping, opening, wanted
from dynamodb_counters._backfill.feeds import ServiceTime
from dynamodb_counters._control.control import read_control, read_declarations
from dynamodb_counters._control.deployments import last_declarations
from dynamodb_counters._control.run_items import generation_of
from dynamodb_counters._declarations import Aggregate, Declaration, Event
from dynamodb_counters._declarations.groups import base_name
from dynamodb_counters._items.bookkeeping import READ_UNIT_BYTES
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.runs import Worked, runner_of, with_manner, with_pace, work_off
from dynamodb_counters.cli.session import Session, shared, with_dry_run
from dynamodb_counters.cli.show.formats import counted, moment_text, number, span
from dynamodb_counters.errors import BackfillError

_UNITS_PER_ITEM: Final = 0.03
"""Write units of the pages that a scan writes."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@with_manner
@with_dry_run
@shared
def backfill(session: Session, names: tuple[str, ...], *, run: str, dry_run: bool, yes: bool, **manner: Any) -> int:
    """Count what the table holds already, while the stream goes on.

    By default all declarations that do not count everything there is, or wait with a changed definition.
    Aggregates over them come along. Readers use the new counts when they are complete.
    """
    if run:
        if names or dry_run:
            raise click.UsageError("--run goes on with what the run began with: no names, no --dry-run")
        require_kind(run, "backfill")
        return _work(session, (), run=run, **manner)
    planned = _planned(session, names)
    listed, size = ", ".join(planned["names"]), f"{number(planned['items'])} items, {decimal(planned['bytes'])}"
    if dry_run or not listed:
        would = f"would backfill {listed}: {size}; about {number(planned['units'])} units"
        session.emit(planned, would if listed else "Nothing to backfill: all count all there is, as declared.")
        return DONE
    if not session.confirm(f"Backfill {listed}: scan {size}?", yes=yes):
        return FOUND
    return _work(session, names, run=run, **manner)


def require_kind(run: str, kind: str) -> None:
    """Refuse the id of another kind of run."""
    number_of, letter, rest = run.partition("r")
    if not (number_of.isdecimal() and letter and rest):
        raise click.BadParameter(f"{run!r}: expected the id of a run, as it was printed", param_hint="--run")
    if (generation_of(run) > 0) != (kind == "backfill"):
        other = "counters verify" if kind == "backfill" else "counters backfill"
        raise click.BadParameter(f"{run!r} is a run of `{other}`", param_hint="--run")


def _work(session: Session, names: Collection[str], **manner: Any) -> int:
    work = runner_of(session, Backfill, names=names, **manner)
    worked = work_off(session, work, "backfill")
    seen = read_control(session.table)
    filled = sorted(name for name, reads in seen.reads.items() if reads == generation_of(worked.run))
    declared = last_declarations(session.table, BackfillError)
    kept = {one.name: _kept(one) for one in declared if one.name in filled}
    whole = {name: session.clock() - min(each).total_seconds() for name, each in kept.items() if each}
    document = {**worked.document(), "names": filled, "whole_since": whole}
    document |= {"settled": work.settled, "withheld": work.withheld}
    session.emit(document, _told(worked, filled, whole, work))
    return DONE


def _told(worked: Worked, filled: list[str], whole: dict[str, float], work: Backfill) -> list[str]:
    if worked.was_complete:
        return [f"run {worked.run} was complete: {', '.join(filled) or 'its counts have been replaced since'}"]
    one, many = "entry of the quarantine", "entries of the quarantine"
    entries = [f"{counted(work.settled, one, many)} settled"] if work.settled else []
    if work.withheld > 0:
        lacking = counted(work.withheld, f"{one} waits: it", f"{many} wait: they")
        entries.append(f"{lacking} could not be counted")
    lines = [f"{', '.join(filled)}: counted all there is, in {span(worked.seconds)}"]
    lines[0] += f"; {number(worked.items)} items scanned, {number(round(worked.units))} units"
    lines += [f"{name}: whole back to {moment_text(at)}; earlier events may have expired" for name, at in whole.items()]
    return [*lines, *entries, "Readers use these counts within a minute."]


def _planned(session: Session, names: Collection[str]) -> dict[str, Any]:
    seen = read_control(session.table)
    if seen.history is None:
        raise BackfillError("nothing counts this table yet: deploy the aggregator, and wait for its first batch")
    declared = last_declarations(session.table, BackfillError)
    folded = read_declarations(session.table, seen.history.at(session.clock()).deployment) or ()
    chosen = wanted(names, seen, declared, folded)
    opened = opening(chosen, declared, folded, seen, 1).generations if chosen else ()
    return {"names": [base_name(declaration.name) for declaration in opened], **scanned(session)}


def scanned(session: Session) -> dict[str, int]:
    """Items and bytes that a run scans, and about how many units."""
    names = filter(None, (session.table.name, read_control(session.table).source))
    tables: list[Any] = [session.table.client.describe_table(TableName=name)["Table"] for name in names]
    items, size = (sum(table.get(each, 0) for table in tables) for each in ("ItemCount", "TableSizeBytes"))
    # The scan is strongly consistent.
    return {"items": items, "bytes": size, "units": round(size / READ_UNIT_BYTES + items * _UNITS_PER_ITEM)}


def _kept(declaration: Declaration) -> list[timedelta]:
    """The retentions of what a declaration counts, and its groups' own."""
    source = declaration.source
    below = _kept(source) if isinstance(source, Aggregate) else []
    if isinstance(source, Event) and source.retention is not None and declaration.on_expiry == "keep":
        below.append(source.retention)
    if isinstance(declaration, Aggregate) and declaration.retention is not None:
        below.append(declaration.retention)
    return below


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
