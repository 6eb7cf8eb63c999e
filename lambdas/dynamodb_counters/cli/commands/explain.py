"""``counters explain``: the events that make a number, and the numbers that an event makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Group as Lines

from dynamodb_counters._control.run_items import Held, folded_alone, sums_of
from dynamodb_counters._declarations import Aggregate, Event, Window
from dynamodb_counters._explain.explainer import Explanation, make_explainer
from dynamodb_counters._explain.reach import Question, Reach, shown
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._reads.question import SPAN
from dynamodb_counters._timeline.tiers import TOTAL
from dynamodb_counters.cli.output import grid, group_text, number
from dynamodb_counters.cli.session import DONE, FOUND, Session, asking, fields_of, shared, with_sources


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@asking(*SPAN)
@click.option("--limit", default=20, type=click.IntRange(0), help="Lines to show.")
@click.option("--yes", is_flag=True, help="Do not ask before the whole table is read.")
@shared
def explain(session: Session, name: str, group: tuple[str, ...], *, limit: int, yes: bool, **when: Any) -> int:
    """Show why a group of NAME counts what it counts: what differs, then the events, items or groups that it counts.

    A window needs a span of time. Without some fields of a group, all groups of the partition are explained. Exit code
    1: the number differs from the sum of its lines.

    Of an event NAME with the fields of its key: in which groups, buckets and thresholds it counts, or why it does not.
    Exit code 1: there is no such event.
    """
    for event in with_sources(session.declarations):
        if isinstance(event, Event) and event.name == name:
            return _explain_event(session, event, fields_of(group, event.fields))
    declared = session.find_counted(name)
    needed = [field for field in declared._pk_template.fields if field in declared.fields]
    values = fields_of(group, declared.fields, needed=needed)
    explainer = make_explainer(session.table, declared, values, session.ends(when))
    units, queries = explainer.reach.units, len(explainer.reach.ranges)
    scan = f"a Scan of the table, {units:,} read units"
    session.tell(f"Queries: {queries:,}, at a read unit per 4 KB" if queries else scan)
    if not queries and not session.confirm("Read the whole table?", yes=yes):
        return FOUND
    found = explainer.explain(limit=limit)
    numbers = {
        each: {measure: format_number(value) for measure, value in sums.items()}
        for each, sums in (("numbers", found.numbers), ("difference", found.difference))
    }
    listed = {each: [line.document() for line in getattr(found, each)] for each in ("differences", "lines")}
    session.emit({**numbers, **listed, "count": found.count}, _table(found))
    return FOUND if found.differences else DONE


def _table(found: Explanation) -> Lines:
    table = grid("key", "time", "adds", "why", keep=("adds",))
    for line in (*found.differences, *found.lines):
        key = group_text({**line.key, **line.group}) or ("difference" if line.reason else "")
        table.add_row(key, line.time, group_text(line.adds), line.reason)
    rest = f", {number(len(found.lines))} of them shown" if len(found.lines) < found.count else ""
    differs = f"; differs by {group_text(found.difference) or 0}" if found.differences else ""
    return Lines(table, f"{group_text(found.numbers) or 0}: {number(found.count)} lines{rest}{differs}")


def _explain_event(session: Session, event: Event, key: dict[str, str]) -> int:
    """Show where an event counts; groups that count these groups are not shown."""
    row = _event(session, event, key)
    counts = list(_counts(session, event, row)) if row is not None else []
    table = grid("declaration", "group", "adds", "thresholds", "not counted, because")
    for one in counts:
        table.add_row(one["name"], group_text(one["group"]), group_text(one["adds"]), one["thresholds"], one["reason"])
    session.emit({"event": event.name, "found": row is not None, "counts": counts}, table)
    if row is None:
        session.tell("there is no such event: it never came, was retracted, or expired")
    return DONE if row is not None else FOUND


def _event(session: Session, event: Event, texts: dict[str, str]) -> Image | None:
    """Return the event as its item, or the last row of it, holds it; None if it was taken back."""
    counted = Aggregate("events", event, by=event.fields)
    question, plan, found = Question(counted, texts), Plan((counted,)), None
    for row, sign, held in Reach.of(question, session.table).rows(counted):
        folded = folded_alone(plan, frozenset((counted.name,)), row, session.clock(), held)
        if any(question.holds(group) for _, group in sums_of(folded)):
            found = row if sign > 0 else None
    return found


def _counts(session: Session, event: Event, row: Image) -> Iterator[dict[str, Any]]:
    plan = session.plan
    for name, program in sorted(plan.programs.items()):
        declared = program.layout.declaration
        if declared.source.name != event.name:
            continue
        armed = ", ".join(one.name for one in getattr(declared, "_thresholds", ()))
        folded = folded_alone(plan, frozenset((name,)), row, session.clock(), Held({}, None, ""))
        sums = {group: numbers for (counts, group), numbers in sums_of(folded).items() if counts == name}
        for group, numbers in sums.items():
            adds = {each: format_number(one) for each, one in numbers.items()}
            adds = {TOTAL: adds[TOTAL]} if isinstance(declared, Window) else adds
            yield {"name": name, "group": shown(declared, group), "adds": adds, "thresholds": armed, "reason": ""}
        if not sums:
            reason = "; ".join(each.reason for each in folded.unfoldable) or (
                "it is late by now" if folded.late else ""
            )
            reason = reason or "`where` leaves it out, or it adds 0"
            yield {"name": name, "group": {}, "adds": {}, "thresholds": armed, "reason": reason}
