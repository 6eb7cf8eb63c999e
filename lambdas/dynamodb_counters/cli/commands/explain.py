"""``counters explain``: the events that make a number."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from rich.console import Group as Lines

from dynamodb_counters._reads import explanation
from dynamodb_counters._reads.question import SPAN
from dynamodb_counters.cli.output import grid, group_text, number
from dynamodb_counters.cli.session import DONE, FOUND, Session, asking, shared


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@asking(*SPAN)
@click.option("--limit", default=20, type=click.IntRange(0), help="Lines to show.")
@click.option("--scan", is_flag=True, help="Read the whole table, if nothing less will do.")
@shared
def explain(session: Session, name: str, group: tuple[str, ...], *, limit: int, scan: bool, **when: Any) -> int:
    """Show why a group of NAME counts what it counts: the events, items or groups that it counts, and what differs.

    Exit code 1: the number differs from the sum of its lines.
    """
    question = session.ask("get", name, group, when)
    explained = explanation.explain(session.table, question, scan=scan, limit=limit)
    table = grid("key", "time", "adds", keep=("adds",))
    for line in explained.lines:
        table.add_row(group_text(line.key), line.time, group_text(line.adds))
    rest = f", {number(len(explained.lines))} of them shown" if len(explained.lines) < explained.count else ""
    total = f"{group_text(explained.numbers) or 0}: {number(explained.count)} lines{rest}"
    differs = f"differs by {group_text(explained.difference)}: {explained.reason}" if explained.difference else ""
    session.emit(asdict(explained), Lines(table, *filter(None, (total, differs))))
    return FOUND if explained.difference else DONE
