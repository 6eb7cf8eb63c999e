"""``counters explain`` and ``counters trace``: the events that make a number, and the numbers that an event makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Group as Lines

from dynamodb_counters._backfill.feeds import Source, applied_by, books, feeds_of
from dynamodb_counters._control.run_items import Held, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Event
from dynamodb_counters._explain.asked import Asked, reach_of
from dynamodb_counters._explain.explainer import make_explainer
from dynamodb_counters._explain.lines import Explanation, ImageLines
from dynamodb_counters._fold.records import ONE_TABLE, created_of, sequence_number
from dynamodb_counters._items.bookkeeping import is_discarded, stored_marks
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._price_file import PRICES
from dynamodb_counters.cli.output import grid, group_text, number, stamp
from dynamodb_counters.cli.session import DONE, FOUND, Session, fields_of, shared, span_of, with_span


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@with_span
@click.option("--limit", default=20, type=click.IntRange(0), help="Lines to show.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="All lines, as .jsonl.")
@click.option("--yes", is_flag=True, help="Do not ask before the whole table is read.")
@shared
def explain(
    session: Session, name: str, group: tuple[str, ...], *, limit: int, out: Path | None, yes: bool, **when: Any
) -> int:
    """Show why a group of NAME counts what it counts: events, items or groups that add up to it, and the rest.

    A window needs a span of time. Without some fields of a group, all groups of the partition are explained. Exit code
    1: the number differs from what is explained.
    """
    if out is not None and out.suffix != ".jsonl":
        raise click.UsageError(f"--out {out}: expected a name that ends in .jsonl")
    declared = session.find_counted(name)
    needed = [field for field in declared._pk_template.fields if field in declared.fields]
    values = fields_of(group, declared.fields, needed=needed)
    ends = span_of(session.clock(), **when) if any(when.values()) else (None, None)
    feeds = feeds_of(session.table, session.client("dynamodbstreams"))
    explainer = make_explainer(session.table, feeds, declared, values, ends)
    units, queries = explainer.reach.units, len(explainer.reach.ranges)
    dollars = f"{units:,} read units (${units * PRICES.of('dynamodb.read_unit'):.2f})"
    session.tell(f"Queries: {queries:,}, at a read unit per 4 KB" if queries else f"a Scan of the table, {dollars}")
    if not queries and not session.confirm("Read the whole table?", yes=yes):
        return FOUND
    found = explainer.explained()
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            file.writelines(found.file())
    listed = list(islice(found.lines(), limit))
    told = [line.document() for line in listed]
    document = {**found.document(), "lines": told, "difference": found.difference}
    session.emit(document, _shown(found, listed))
    return FOUND if found.difference else DONE


def _shown(found: Explanation, listed: list[Any]) -> Lines:
    shown = grid("what", "key", "time", "adds", "why", keep=("what", "adds"))
    for line in listed:
        key = group_text({**line.key, **line.group}) or line.source
        shown.add_row(line.kind, key, line.time, group_text(line.adds), line.reason)
    kinds = Counter(line.kind for line in found.lines())
    parts = ", ".join(f"{number(count)} {kind}" for kind, count in kinds.items())
    rest = f"; {number(len(listed))} of {number(kinds.total())} lines shown" if len(listed) < kinds.total() else ""
    position = ", ".join(f"{shard} {at}" for shard, at in found.position.items())
    summary = f"{group_text(found.numbers) or 0}: {parts or 'nothing'}{rest}"
    return Lines(shown, summary, f"at {position or 'the beginning'}")


@click.command()
@click.argument("name")
@click.argument("key", nargs=-1, required=True, metavar="FIELD=VALUE…")
@click.option("--position", is_flag=True, help="Search the stream's last 24 hours for its records.")
@shared
def trace(session: Session, name: str, key: tuple[str, ...], *, position: bool) -> int:
    """Show in which groups, buckets and thresholds the event NAME with this key counts, or why it does not.

    Groups that count these groups are not shown: `counters explain` shows what those count. Exit code 1: there is no
    such event.
    """
    event = session.find(Event, name)
    asked = Asked(Aggregate("trace", event, by=event.fields), fields_of(key, event.fields))
    item, row = _found(session, asked)
    counts = list(_counts(session, event, row)) if row is not None else []
    records = list(_records(session, item)) if position and item else []
    shown = grid("declaration", "group", "adds", "thresholds", "not counted, because")
    for one in counts:
        shown.add_row(one["name"], group_text(one["group"]), group_text(one["adds"]), one["thresholds"], one["reason"])
    told = [f"record {each['sequence']} of {each['shard']}, {each['at']}: {each['state']}" for each in records]
    session.emit({"event": name, "found": row is not None, "counts": counts, "records": records}, shown)
    if row is None:
        told.append("there is no such event: it never came, was retracted, or expired")
    for line in told:
        session.tell(line)
    return DONE if row is not None else FOUND


def _found(session: Session, asked: Asked) -> tuple[Image | None, Image | None]:
    """The item that holds the event, and the event; None if it was taken back."""
    of = ImageLines(asked, ONE_TABLE, session.clock())
    found: tuple[Image | None, Image | None] = None, None
    for item in reach_of(asked, Source(session.table, (PK, SK))).items():
        for row, sign in of.rows(item):
            if of.lines(row, {PK: item[PK], SK: item[SK]}, None):
                found = item, row if sign == "+" else None
    return found


def _counts(session: Session, event: Event, row: Image) -> Iterator[dict[str, Any]]:
    plan = session.plan
    read = {name for name, one in plan.programs.items() if one.layout.declaration.source.name == event.name}
    for name in sorted(read & plan.programs.keys()):
        layout = plan.programs[name].layout
        armed = ", ".join(one.name for one in getattr(layout.declaration, "_thresholds", ()))
        folded = folded_alone(plan, frozenset((name,)), row, session.clock(), Held({}, None, ""))
        sums = {group: numbers for (counts, group), numbers in sums_of(folded).items() if counts == name}
        reason = "; ".join(each.reason for each in folded.unfoldable) or ("it is late by now" if folded.late else "")
        if is_discarded(name, row, stored_marks(row)):
            reason = "it was discarded from the quarantine"
        common = {"name": name, "thresholds": armed}
        for group, numbers in sums.items():
            adds = {each: format_number(number) for each, number in numbers.items()}
            yield {**common, "group": layout.values(group), "adds": adds, "reason": ""}
        if not sums:
            yield {**common, "group": {}, "adds": {}, "reason": reason or "`where` leaves it out, or it adds 0"}


def _records(session: Session, item: Image) -> Iterator[dict[str, Any]]:
    """The records of an item, and whether every group has applied each."""
    stream = feeds_of(session.table, session.client("dynamodbstreams")).stream
    for shard in stream.shards():
        applied = applied_by([], {shard.id: list(books(session.table, shard.id))})[shard.id]
        for record in stream.records(shard.id):
            if record["dynamodb"]["Keys"] == {PK: item[PK], SK: item[SK]}:
                sequence, at = sequence_number(record), stamp(created_of(record))
                state = "counted" if sequence <= applied else "perhaps not counted in every group yet"
                yield {"shard": shard.id, "sequence": sequence.lstrip("0"), "at": at, "state": state}
