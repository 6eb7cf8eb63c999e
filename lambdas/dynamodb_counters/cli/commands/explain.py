"""``counters explain``: the events that make a number."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group as Lines

from dynamodb_counters._explain.explainer import Explanation, make_explainer
from dynamodb_counters._items.conversions import format_number
from dynamodb_counters._reads.question import SPAN
from dynamodb_counters.cli.output import grid, group_text, number
from dynamodb_counters.cli.session import DONE, FOUND, Session, asking, fields_of, shared


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
    """
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
