"""``counters window``: how many in the last hours, between two moments, or in a billing period."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import click
from rich.text import Text

from dynamodb_counters._declarations import Window
from dynamodb_counters._reads.window_counts import Statement, WindowCount
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters._timeline.calendars import NAMED_PERIODS, Period
from dynamodb_counters.cli.arguments import duration, fields_of, moment, span_of
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import HEADING, WARNING, moment_text, number, pairs, stamp


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@click.option("--last", type=duration, help="Such as 24h, 15m or 7d.")
@click.option("--since", type=moment, help="ISO 8601; without an offset, UTC.")
@click.option("--until", type=moment, help="Default: now.")
@click.option("--period", type=click.Choice(NAMED_PERIODS), help="A billing period instead: the current one.")
@click.option("--of", help="Name of the period: 2026-10-03, 2026-W40, 2026-10 or 2026.")
@click.option("--tz", help="Time zone of the period, such as Europe/Berlin. Default: UTC.")
@click.option("--anchor", type=int, help="Day on which months begin. Default: 1.")
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
    period: str | None,
    of: str | None,
    tz: str | None,
    anchor: int | None,
    compare: bool,
    consistent: bool,
) -> None:
    """Count one group of the window NAME over a span of time; or of several, as in usage,errors."""
    if period is None and (of, tz, anchor) != (None, None, None):
        raise click.UsageError("--of, --tz and --anchor are those of a period: add --period")
    if period is not None and (last or since or until or compare):
        raise click.UsageError("--period is a span of its own: leave out --last, --since, --until, --compare")
    given = [session.find(Window, one) for one in name.split(",")]
    documents, rows = [], dict[str, str | Text]()
    for declared in given:
        values = fields_of(group, declared.fields, needed=declared.fields)
        reader = session.counters.window(declared, values)
        document: dict[str, Any] = {"window": declared.name, "values": values}
        if period is not None:
            named = cast("Period", period), of, tz or "UTC"
            statement = reader.statement(*named, anchor=1 if anchor is None else anchor, consistent=consistent)
            document |= statement_document(statement)
            rows |= _rows(declared, given, statement)
        else:
            start, end = span_of(session.clock(), last, since, until)
            found, previous = _counted(reader, last, start, end, compare=compare, consistent=consistent)
            document |= count_document(found)
            rows |= _rows(declared, given, found)
            if previous is not None:
                rows |= {"before": number(previous.count), "change": _change(found, previous)}
                document["previous"] = count_document(previous)
        documents.append(document)
    session.emit(documents[0] if len(documents) == 1 else {"windows": documents}, pairs(rows))


def count_document(found: WindowCount | Statement) -> dict[str, Any]:
    """A count with the interval it covers."""
    ends = {"start": stamp(found.start.timestamp()), "end": stamp(found.end.timestamp())}
    return {"count": found.count, **ends, "complete": found.complete, "as_declared": found.as_declared}


def statement_document(found: Statement) -> dict[str, Any]:
    """A statement with its adjustment, its total, and when it was closed."""
    closed = None if found.closed_at is None else stamp(found.closed_at.timestamp())
    return {**count_document(found), "adjustment": found.adjustment, "total": found.total, "closed_at": closed}


def _counted(
    reader: WindowReader, last: timedelta | None, start: datetime, end: datetime, *, compare: bool, consistent: bool
) -> tuple[WindowCount, WindowCount | None]:
    if compare:
        compared = reader.compare(end - start, as_of=end, consistent=consistent)
        return compared.current, compared.previous
    if last is not None:
        return reader.last(last, as_of=end, consistent=consistent), None
    return reader.between(start, end, consistent=consistent), None


def _rows(declared: Window, given: list[Window], found: WindowCount | Statement) -> dict[str, str | Text]:
    rows: dict[str, str | Text] = {
        "count": Text(number(found.count), HEADING),
        "from": moment_text(found.start),
        "to": moment_text(found.end),
    }
    if isinstance(found, Statement):
        closed = "open" if found.closed_at is None else f"closed at {moment_text(found.closed_at)}"
        rows |= {"adjustment": number(found.adjustment), "total": number(found.total), "period": closed}
    if not found.complete:
        rows["complete"] = Text("no: backfill it", WARNING)
    if not found.as_declared:
        rows["as declared"] = Text("no: by the definition before, until a backfill", WARNING)
    return rows if len(given) == 1 else {f"{declared.name}: {label}": value for label, value in rows.items()}


def _change(found: WindowCount, previous: WindowCount) -> str:
    change = found.count - previous.count
    ratio = f" ({float(change / previous.count):+.1%})" if previous.count else ""
    return f"{'+' if change > 0 else ''}{number(change)}{ratio}"
