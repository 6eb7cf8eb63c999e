"""``counters window``: how many in the last hours, or between two moments."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click
from rich.text import Text

from dynamodb_counters._declarations import Window
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters.cli.arguments import duration, fields_of, moment, span_of
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import HEADING, moment_text, number, pairs, stamp


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--last", type=duration, help="Such as 24h, 15m or 7d.")
@click.option("--since", type=moment, help="ISO 8601; without an offset, UTC.")
@click.option("--until", type=moment, help="Default: now.")
@click.option("--compare", is_flag=True, help="With the same length before.")
@click.option("--consistent", is_flag=True, help="Read strongly consistently, at twice the read units.")
@shared
def window(
    session: Session,
    name: str,
    group: tuple[str, ...],
    *,
    last: timedelta | None,
    since: datetime | None,
    until: datetime | None,
    compare: bool,
    consistent: bool,
) -> None:
    """Count one group of the window NAME over a span of time."""
    declared = session.find(Window, name)
    values = fields_of(group, declared.fields, needed=declared.fields)
    start, end = span_of(session.clock(), last, since, until)
    previous = None
    if compare:
        compared = session.counters.window(declared, values).compare(end - start, as_of=end, consistent=consistent)
        found, previous = compared.current, compared.previous
    elif last is not None:
        found = session.counters.window(declared, values).last(last, as_of=end, consistent=consistent)
    else:
        found = session.counters.window(declared, values).between(start, end, consistent=consistent)
    rows: dict[str, str | Text] = {
        "count": Text(number(found.count), HEADING),
        "from": moment_text(found.start),
        "to": moment_text(found.end),
    }
    document: dict[str, Any] = {"window": name, "group": values, **count_document(found)}
    if previous is not None:
        rows["before"] = number(previous.count)
        rows["change"] = _change(found, previous)
        document["previous"] = count_document(previous)
    session.emit(document, pairs(rows))


def count_document(found: WindowCount) -> dict[str, Any]:
    """A count with the interval it covers."""
    return {"count": found.count, "start": stamp(found.start.timestamp()), "end": stamp(found.end.timestamp())}


def _change(found: WindowCount, previous: WindowCount) -> str:
    change = found.count - previous.count
    ratio = f" ({float(change / previous.count):+.1%})" if previous.count else ""
    return f"{'+' if change > 0 else ''}{number(change)}{ratio}"
