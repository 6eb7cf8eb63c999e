"""``counters window``: how many in the last hours, between two moments, or in a billing period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import click
from rich.text import Text

from dynamodb_counters._declarations import Aggregate, TimeWeighted, Window
from dynamodb_counters._declarations.kinds import group_fields, read_by
from dynamodb_counters._http.resources import distribution_json
from dynamodb_counters._reads.active_reads import ActiveReader
from dynamodb_counters._reads.distributions import Distribution, DistributionReader
from dynamodb_counters._reads.window_counts import Statement, WindowCount
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters._timeline.calendars import NAMED_PERIODS, Period
from dynamodb_counters.cli.arguments import duration, fields_of, moment, span_of
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import (
    HEADING,
    SHARES,
    WARNING,
    distribution_rows,
    moment_text,
    number,
    pairs,
    stamp,
)


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
    """Count one group of the window NAME over a span of time; or of several, as in usage,errors.

    Active members show how many there were; percentiles, count and percentiles; a level, its ends and integral.
    """
    if period is None and (of, tz, anchor) != (None, None, None):
        raise click.UsageError("--of, --tz and --anchor are those of a period: add --period")
    if period is not None and (last or since or until or compare):
        raise click.UsageError("--period is a span of its own: leave out --last, --since, --until, --compare")
    given = [session.find_timed(one) for one in name.split(",")]
    if (period or compare) and not all(isinstance(one, Window) for one in given):
        raise click.UsageError("--period and --compare are for windows alone")
    documents, rows = [], dict[str, str | Text]()
    for declared in given:
        fields = group_fields(declared)
        values = fields_of(group, fields, needed=fields)
        reader = reader_of(session, declared, values)
        document: dict[str, Any] = {"window": declared.name, "values": values}
        if period is not None and isinstance(reader, WindowReader):
            named = cast("Period", period), of, tz or "UTC"
            statement = reader.statement(*named, anchor=1 if anchor is None else anchor, consistent=consistent)
            document |= statement_document(statement)
            rows |= _rows(declared, given, statement)
        else:
            start, end = span_of(session.clock(), last, since, until)
            found, previous = _counted(reader, last, start, end, compare=compare, consistent=consistent)
            document |= count_document(found)
            rows |= _rows(declared, given, found)
            if _is_level(declared) and isinstance(reader, WindowReader) and isinstance(found, WindowCount):
                level = reader.integral(found.start, found.end, consistent=consistent)
                told = {"opening": level.opening, "closing": level.closing, "unit_hours": level.per(timedelta(hours=1))}
                document |= told
                rows |= _named(declared, given, {name.replace("_", "-"): number(each) for name, each in told.items()})
            if previous is not None and isinstance(found, WindowCount):
                rows |= {"before": number(previous.count), "change": _change(found, previous)}
                document["previous"] = count_document(previous)
        documents.append(document)
    session.emit(documents[0] if len(documents) == 1 else {"windows": documents}, pairs(rows))


def reader_of(
    session: Session, declared: Window | Aggregate, values: dict[str, str]
) -> WindowReader | ActiveReader | DistributionReader:
    """The reader of one group of what is counted by time."""
    if isinstance(declared, Window):
        return session.counters.window(declared, values)
    kind = ActiveReader if read_by(declared) == "active" else DistributionReader
    return kind(session.table, declared, values)


def _is_level(declared: Window | Aggregate) -> bool:
    return isinstance(declared, Window) and isinstance(declared.measure, TimeWeighted)


def count_document(found: WindowCount | Statement | Distribution) -> dict[str, Any]:
    """A count with the interval it covers, and its percentiles if it has some."""
    if isinstance(found, Distribution):
        return distribution_json(found, SHARES)
    ends = {"start": stamp(found.start.timestamp()), "end": stamp(found.end.timestamp())}
    return {"count": found.count, **ends, "complete": found.complete, "as_declared": found.as_declared}


def statement_document(found: Statement) -> dict[str, Any]:
    """A statement with its adjustment, its total, and when it was closed."""
    closed = None if found.closed_at is None else stamp(found.closed_at.timestamp())
    return {**count_document(found), "adjustment": found.adjustment, "total": found.total, "closed_at": closed}


def _counted(
    reader: WindowReader | ActiveReader | DistributionReader,
    last: timedelta | None,
    start: datetime,
    end: datetime,
    *,
    compare: bool,
    consistent: bool,
) -> tuple[WindowCount | Distribution, WindowCount | None]:
    if compare and isinstance(reader, WindowReader):
        compared = reader.compare(end - start, as_of=end, consistent=consistent)
        return compared.current, compared.previous
    if last is not None:
        return reader.last(last, as_of=end, consistent=consistent), None
    return reader.between(start, end, consistent=consistent), None


def _rows(
    declared: Window | Aggregate, given: Sequence[Window | Aggregate], found: WindowCount | Statement | Distribution
) -> dict[str, str | Text]:
    told = distribution_rows(found) if isinstance(found, Distribution) else {}
    rows = {**told, "count": Text(number(found.count), HEADING)}
    rows |= {label: moment_text(end) for label, end in (("from", found.start), ("to", found.end)) if end is not None}
    if isinstance(found, Statement):
        closed = "open" if found.closed_at is None else f"closed at {moment_text(found.closed_at)}"
        rows |= {"adjustment": number(found.adjustment), "total": number(found.total), "period": closed}
    if not found.complete:
        rows["complete"] = Text("no: backfill it", WARNING)
    if not found.as_declared:
        rows["as declared"] = Text("no: by the definition before, until a backfill", WARNING)
    return _named(declared, given, rows)


def _named(
    declared: Window | Aggregate, given: Sequence[Window | Aggregate], rows: Mapping[str, str | Text]
) -> dict[str, str | Text]:
    return {label if len(given) == 1 else f"{declared.name}: {label}": value for label, value in rows.items()}


def _change(found: WindowCount, previous: WindowCount) -> str:
    change = found.count - previous.count
    ratio = f" ({float(change / previous.count):+.1%})" if previous.count else ""
    return f"{'+' if change > 0 else ''}{number(change)}{ratio}"
