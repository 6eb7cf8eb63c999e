"""``counters explain``: the events that make a number, adding up to it; also as a file that others can check."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Group as Lines

from dynamodb_counters._backfill.wiring import feeds_of
from dynamodb_counters._explain.explainer import make_explainer
from dynamodb_counters._explain.lines import Explanation
from dynamodb_counters._price_file import PRICES
from dynamodb_counters.cli.arguments import fields_of, span_of, with_span
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import grid, group_text, number


@click.command()
@click.argument("name")
@click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…")
@with_span
@click.option("--limit", default=20, type=click.IntRange(0), help="Lines to show.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="All lines, as .jsonl or .csv.")
@click.option("--yes", is_flag=True, help="Do not ask before the whole table is read.")
@shared
def explain(
    session: Session, name: str, group: tuple[str, ...], *, limit: int, out: Path | None, yes: bool, **when: Any
) -> int:
    """Show why a group of NAME counts what it counts: events, items or groups that add up to it, and the rest.

    A window needs a span of time. Without some fields of a group, all groups of the partition are explained. Exit code
    1: the number differs from what is explained.
    """
    if out is not None and out.suffix not in (".jsonl", ".csv"):
        raise click.UsageError(f"--out {out}: expected a name that ends in .jsonl or .csv")
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
            file.writelines(found.file("csv" if out.suffix == ".csv" else "jsonl"))
    listed = list(islice(found.lines(), limit))
    told = [line.document() for line in listed]
    document = {**found.document(), "lines": told, "difference": found.difference}
    session.emit(document, _shown(found, listed))
    return FOUND if found.difference else DONE


def _shown(found: Explanation, listed: list[Any]) -> Lines:
    shown, kinds = grid("what", "key", "time", "adds", "why", keep=("what", "adds")), Counter[str]()
    for line in listed:
        key = group_text({**line.key, **line.group}) or line.source
        shown.add_row(line.kind, key, line.time, group_text(line.adds), line.reason)
    for line in found.lines():
        kinds[line.kind] += 1
    parts = ", ".join(f"{number(count)} {kind}" for kind, count in kinds.items())
    rest = f"; {number(len(listed))} of {number(kinds.total())} lines shown" if len(listed) < kinds.total() else ""
    position = ", ".join(f"{shard} {at}" for shard, at in found.position.items())
    summary = f"{group_text(found.numbers) or 0}: {parts or 'nothing'}{rest}"
    return Lines(shown, summary, f"at {position or 'the beginning'}")
