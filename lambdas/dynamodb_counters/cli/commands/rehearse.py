"""``counters rehearse``: what changed declarations would have counted, before they are deployed."""

from __future__ import annotations

import runpy
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Group
from rich.filesize import decimal

from dynamodb_counters._backfill.rehearsal import Rehearsal
from dynamodb_counters._control.control import read_control
from dynamodb_counters._declarations import Aggregate, Composite, Declaration, Window, flatten
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.cli.arguments import moment
from dynamodb_counters.cli.commands.backfill import scanned
from dynamodb_counters.cli.commands.diff import from_templates
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.runs import runner_of, with_manner, work_off
from dynamodb_counters.cli.session import Session, shared, with_dry_run
from dynamodb_counters.cli.show.formats import grid, group_text, number, span

_COLUMNS: Final = ("declaration", "values", "attribute", "counted", "rehearsed", "difference", "percent")


@click.command()
@click.argument("new", type=click.Path(exists=True, path_type=Path))
@click.option("--since", type=moment, help="Groups by time that begin from here on. ISO 8601; without an offset, UTC.")
@click.option("--limit", "most", type=click.IntRange(1), default=20, help="The largest so many differences.")
@with_manner
@with_dry_run
@shared
def rehearse(session: Session, new: Path, *, since: datetime | None, dry_run: bool, yes: bool, **manner: Any) -> int:
    """Compare what is counted with what the declarations in NEW would have counted, group by group.

    NEW is a Python file with declarations, a template that `cdk synth` wrote or a folder of them, or encoded
    declarations. Nothing is deployed. Exit code 1: groups differ.
    """
    work = runner_of(session, Rehearsal, declared=_declared(session, new), **manner)
    work.begin = work.begin if since is None else since.timestamp()
    price = scanned(session)
    size = f"{number(price['items'])} items, {decimal(price['bytes'])}; about {number(price['units'])} units"
    if not work.names or dry_run:
        session.emit(price, f"would scan {size}" if work.names else "Nothing to rehearse: all count the same.")
        return DONE
    if not manner["run"] and not session.confirm(f"Rehearse {new.name}: scan {size}?", yes=yes):
        return FOUND
    worked = work_off(session, work, f"rehearse {new}")
    totals, largest = ([_row(*each) for each in found] for found in (work.sums(), work.largest))
    found = {
        "compared": work.compared,
        "differing": work.differing,
        "uncounted": work.uncounted,
        "totals": totals,
        "differences": largest,
    }
    shown = grid(*_COLUMNS, numbers=_COLUMNS[3:], keep=("declaration", "attribute"))
    for name, values, attribute, *numbers, percent in map(dict.values, [*totals, *largest]):
        change = "" if percent is None else f"{percent:+,.1f} %"
        shown.add_row(name, group_text(values) or "in total", attribute, *map(number, numbers), change)
    if work.uncounted:
        session.tell(f"not all of these declarations can count {number(work.uncounted)} of the items or rows")
    summary = f"{number(work.differing)} of {number(work.compared)} groups differ; {span(worked.seconds)}"
    session.emit({**worked.document(), **found}, Group(shown, f"{summary}, {number(round(worked.units))} units"))
    return FOUND if work.differing else DONE


def _row(*found: Any) -> dict[str, Any]:
    *_, old, _, by = found
    percent = round(100 * Decimal(by) / abs(Decimal(old)), 2) if old else None
    return dict(zip(_COLUMNS, (*found, percent), strict=True))


def _declared(session: Session, path: Path) -> tuple[Declaration, ...]:
    if path.is_dir() or path.suffix == ".json":
        return decode(from_templates(path, None, read_control(session.table).aggregator)[1])
    if path.suffix != ".py":
        return decode(path.read_text(encoding="utf-8").strip())
    sys.path.insert(0, str(path.parent))
    try:
        named = runpy.run_path(str(path)).values()
    except (Exception, SystemExit) as error:
        raise click.UsageError(f"{str(path)!r} fails: {type(error).__name__}: {error}") from error
    each = [one for value in named for one in (value if isinstance(value, list | tuple) else [value])]
    parts = {
        part.name: part for part in flatten(one for one in each if isinstance(one, Aggregate | Window | Composite))
    }
    if not parts:
        raise click.UsageError(f"{str(path)!r} declares nothing")
    return tuple(parts.values())
