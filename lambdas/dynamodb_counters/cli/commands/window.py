"""``counters window``: how many in the last hours, or between two moments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import click
from rich.text import Text

from dynamodb_counters._declarations import Aggregate, TimeWeighted, Window
from dynamodb_counters._declarations.composites import group_fields, read_by
from dynamodb_counters._http.resources import distribution_json, document_of
from dynamodb_counters._reads.span_reads import ActiveReader, Distribution, DistributionReader
from dynamodb_counters._reads.window_counts import WindowCount
from dynamodb_counters._reads.window_reader import WindowReader
from dynamodb_counters.cli.arguments import fields_of, span_of, with_consistent, with_span
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

Reader: TypeAlias = WindowReader | ActiveReader | DistributionReader
_Rows: TypeAlias = dict[str, str | Text]


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@with_span
@with_consistent
@shared
def window(session: Session, name: str, group: tuple[str, ...], *, consistent: bool, **when: Any) -> None:
    """Count one group of the window NAME over a span of time; or of several, as in usage,errors.

    Active members show how many there were; percentiles, count and percentiles; a level, its ends and integral.
    """
    given = [session.find_timed(one) for one in name.split(",")]
    documents, rows = [], _Rows()
    for declared in given:
        values = fields_of(group, group_fields(declared))
        reader = reader_of(session, declared, values)
        document, shown = _counted(session, declared, reader, consistent=consistent, **when)
        documents.append({"window": declared.name, "values": values, **document})
        rows |= {label if len(given) == 1 else f"{declared.name}: {label}": value for label, value in shown.items()}
    session.emit(documents[0] if len(documents) == 1 else {"windows": documents}, pairs(rows))


def reader_of(session: Session, declared: Window | Aggregate, values: dict[str, str]) -> Reader:
    if isinstance(declared, Window):
        return session.counters.window(declared, values)
    kind = ActiveReader if read_by(declared) == "active" else DistributionReader
    return kind(session.table, declared, values)


def count_document(found: WindowCount | Distribution, shares: Sequence[str] = SHARES) -> dict[str, Any]:
    """A count with the interval it covers; its percentiles, if it has some."""
    if isinstance(found, Distribution):
        return distribution_json(found, shares)
    document = document_of(found)
    ends = {name: getattr(found, name) for name in ("start", "end") if document.get(name)}
    return document | {name: stamp(end.timestamp()) for name, end in ends.items()}


def _counted(
    session: Session, declared: Window | Aggregate, reader: Reader, *, consistent: bool, **when: Any
) -> tuple[dict[str, Any], _Rows]:
    """The count of a span; of a level, its ends and its integral, too."""
    start, end = span_of(session.clock(), **when)
    counted: WindowCount | Distribution
    if when["last"] is not None:
        counted = reader.last(when["last"], as_of=end, consistent=consistent)
    else:
        counted = reader.between(start, end, consistent=consistent)
    document, rows = count_document(counted), _rows(counted)
    is_level = isinstance(declared, Window) and isinstance(declared.measure, TimeWeighted)
    if is_level and isinstance(reader, WindowReader) and isinstance(counted, WindowCount):
        level = reader.integral(counted.start, counted.end, consistent=consistent)
        told = {"opening": level.opening, "closing": level.closing, "unit_hours": level.per(timedelta(hours=1))}
        rows |= {name.replace("_", "-"): number(each) for name, each in told.items()}
        document |= told
    return document, rows


def _rows(found: WindowCount | Distribution) -> _Rows:
    told = distribution_rows(found) if isinstance(found, Distribution) else {}
    rows = {**told, "count": Text(number(found.count), HEADING)}
    rows |= {label: moment_text(end) for label, end in (("from", found.start), ("to", found.end)) if end is not None}
    if not found.complete:
        rows["complete"] = Text("no: backfill it", WARNING)
    if not found.as_declared:
        rows["as declared"] = Text("no: by the definition before, until a backfill", WARNING)
    return rows
