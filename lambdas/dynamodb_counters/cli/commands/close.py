"""``counters close``: close a billing period, and export what it counted."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any, Final, cast

import click

from dynamodb_counters._control.statuses import Statuses
from dynamodb_counters._declarations import Window
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._items.decimals import format_number
from dynamodb_counters._items.key_templates import is_hashed
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._timeline.calendars import NAMED_PERIODS, Period
from dynamodb_counters.cli.arguments import fields_of
from dynamodb_counters.cli.commands.window import count_document
from dynamodb_counters.cli.session import Session, shared, with_dry_run
from dynamodb_counters.cli.show.console import visible
from dynamodb_counters.cli.show.formats import grid, number

_NUMBERS: Final = ("count", "adjustment", "total")
_TIMES: Final = ("start", "end", "closed_at")


@click.command()
@click.argument("name")
@click.argument("given", nargs=-1, metavar="PERIOD=WHICH [FIELD=VALUE]…")
@click.option("--tz", default="UTC", help="Time zone, such as Europe/Berlin.")
@click.option("--anchor", type=int, default=1, help="Day on which months begin.")
@click.option("--export", type=click.Choice(["csv", "jsonl"]), help="Print a line per group, for other programs.")
@with_dry_run
@shared
def close(
    session: Session,
    name: str,
    given: tuple[str, ...],
    *,
    export: str | None,
    dry_run: bool,
    yes: bool,
    **calendar: Any,
) -> int:
    """Close a billing period of the window NAME, such as month=2026-10: its numbers stand from then on.

    Closes it for one group; without fields for all of them, which are found by reading the whole table. Later events
    are the adjustment of the next period. A period that is closed already is shown as it stands.
    """
    window = session.find(Window, name)
    values = fields_of(given, (*NAMED_PERIODS, *window.fields), needed=())
    periods = [(kind, values.pop(kind)) for kind in NAMED_PERIODS if kind in values]
    if len(periods) != 1:
        raise click.UsageError(f"name one period: {', '.join(f'{kind}=…' for kind in NAMED_PERIODS)}")
    [(kind, which)] = periods
    if values:
        fields_of([f"{field}={value}" for field, value in values.items()], window.fields)
    groups, hashed = ([values], 0) if values or not window.fields else _groups(session, window)
    if not dry_run and not session.confirm(f"Close {kind} {which} of {name} for {len(groups)} group(s)?", yes=yes):
        return 1
    rows = []
    for each in groups:
        reader = session.counters.window(window, each)
        read = reader.statement if dry_run else reader.close
        found = read(cast("Period", kind), which, **calendar)
        rows.append({"window": name, "values": each, **count_document(found)})
    if hashed:
        session.tell(f"left out: {hashed} group(s) with keys too long to show their fields; close each by its fields")
    if export is not None:
        lines = _csv(window, rows) if export == "csv" else "".join(f"{write_json(row)}\n" for row in rows)
        if session.out.is_terminal:
            # Values may hold what steers it.
            lines = "\n".join(map(visible, lines.split("\n")))
        session.out.file.write(lines)
        return int(hashed > 0)
    shown = grid(*window.fields, *_NUMBERS, *_TIMES, numbers=_NUMBERS)
    for row in rows:
        shown.add_row(*_cells(window, row, number))
    session.emit({"statements": rows}, shown)
    return int(hashed > 0)


def _groups(session: Session, window: Window) -> tuple[list[dict[str, str]], int]:
    """The groups of a window, by the buckets that the table holds, and how many more have keys that are hashed."""
    current = Statuses.of_table(session.counters._table).current(window)  # noqa: SLF001
    keys = set[str]()
    with session.progress("buckets", 0) as show:
        found = session.table.of_types(current.name, ConsistentRead=False, ProjectionExpression=PK)
        for buckets, item in enumerate(found, 1):
            keys.add(item[PK]["S"])
            show(buckets)
    shown = sorted(key for key in keys if not is_hashed(key))
    return [current._pk_template.parse(key) for key in shown], len(keys) - len(shown)


def _csv(window: Window, rows: list[dict[str, Any]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([*window.fields, *_NUMBERS, *_TIMES])
    writer.writerows(_cells(window, row, format_number) for row in rows)
    return written.getvalue()


def _cells(window: Window, row: dict[str, Any], number: Callable[[Any], str]) -> list[str]:
    values = [row["values"][field] for field in window.fields]
    return [*values, *(number(row[one]) for one in _NUMBERS), *(row[one] or "" for one in _TIMES)]
