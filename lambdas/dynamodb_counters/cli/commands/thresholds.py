"""``counters thresholds``: what has fired."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice
from typing import Any

import click
from rich.console import RenderableType

from dynamodb_counters._fold.crossing_events import event_entry
from dynamodb_counters._http.requests import read_json
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import CROSSING_PREFIX
from dynamodb_counters._reads.table_reads import query
from dynamodb_counters.cli.output import grid, group_text, number, stamp
from dynamodb_counters.cli.session import Session, moment, shared


@click.command()
@click.argument("name", default="")
@click.option("--since", type=moment, help="Crossings from here on. ISO 8601; without an offset, UTC.")
@click.option("--until", type=moment, help="Crossings before this.")
@click.option("--limit", type=click.IntRange(1), default=20, help="The latest so many.")
@shared
def thresholds(session: Session, name: str, *, limit: int, **given: Any) -> None:
    """List the crossings of thresholds, or of the one of this NAME, the latest first; `describe` has the thresholds."""
    watched: list[Any] = [each.declaration for each in session.plan.armed.values()]
    armed = sorted(threshold.name for aggregate in watched for threshold in aggregate._thresholds)
    ends = zip((given["since"], given["until"]), ("0", ":"), strict=True)
    first, end = (stamp(when.timestamp()) if when else other for when, other in ends)
    crossings = _fired(session, [name] if name else armed, (first, end), limit + 1)
    if name and name not in armed and not crossings:
        raise click.UsageError(f"no threshold {name!r} is armed; there is: {', '.join(armed) or 'none'}")
    listed = [read_json(event_entry(item, "", "")["Detail"]) for item in crossings[:limit]]
    session.emit({"fired": listed, "more": len(crossings) > limit}, _crossings(listed))
    if len(crossings) > limit:
        session.tell(f"there are more: --limit {2 * limit}")


def _crossings(fired: list[dict[str, Any]]) -> RenderableType:
    shown = grid("at (UTC)", "threshold", "group", "level", "", "old", "new", numbers=("level", "old", "new"))
    for one in fired:
        level, *others = (number(one.get(name)) for name in ("level", "old", "new"))
        shown.add_row(one["at"], one["threshold"], group_text(one["group"]), level, one["direction"], *others)
    return shown if fired else ""


def _fired(session: Session, names: list[str], span: tuple[str, str], most: int) -> list[Image]:
    """Items of the outbox, the latest first; keys of thresholds that fire once have no time."""
    ranges = {span: most, ("once#", "once$"): None}
    places = [(f"{CROSSING_PREFIX}{name}#{digit:x}", each) for name in names for digit in range(16) for each in ranges]

    def read(place: tuple[str, tuple[str, str]]) -> list[Image]:
        items = query(session.table, *place, consistent=False, ScanIndexForward=False)
        return list(islice((one for one in items if span[0] <= one["at"]["S"] < span[1]), ranges[place[1]]))

    def order(one: Image) -> tuple[str, str, Decimal]:
        level = Decimal(one["level"]["S"])
        return one["at"]["S"], one["sequence"]["S"], level if one["direction"]["S"] == "up" else -level

    return sorted((one for items in session.table.each(read, places) for one in items), key=order, reverse=True)[:most]
