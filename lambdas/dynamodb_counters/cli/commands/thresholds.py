"""``counters thresholds``: what has fired, and events of it."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice
from typing import Any

import click
from rich.console import RenderableType

from dynamodb_counters._fold.crossing_events import LASTING, event_entry, in_requests
from dynamodb_counters._fold.records import table_of
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
@click.option("--limit", type=click.IntRange(1), help="The latest so many. Default: 20; of --replay, all.")
@click.option("--replay", is_flag=True, help="Send the crossings to EventBridge again, the oldest first.")
@click.option("--test", is_flag=True, help='Send an event of NAME that has "test": true.')
@click.option("--bus", default="default", help="Name or ARN of the event bus.")
@shared
def thresholds(session: Session, name: str, *, limit: int | None, replay: bool, test: bool, **given: Any) -> None:
    """List the crossings of thresholds, or of the one of this NAME, the latest first; `describe` has the thresholds."""
    watched: list[Any] = [each.declaration for each in session.plan.armed.values()]
    armed = {one.name: (aggregate, one) for aggregate in watched for one in aggregate._thresholds}
    ends = zip((given["since"], given["until"]), ("0", ":"), strict=True)
    first, end = (stamp(one.timestamp()) if one else other for one, other in ends)
    most = limit or (10**9 if replay else 20)
    found = _fired(session, [name] if name else [*armed], (first, end), most + 1)
    if name not in armed and (test or (name and not found)):
        raise click.UsageError(f"no threshold {name!r} is armed; there is: {', '.join(sorted(armed)) or 'none'}")
    if replay or test:
        sent = found[:most][::-1] if replay else []
        sent += [_example(*armed[name], stamp(session.clock()))] if test else []
        refused = _send(session, sent, given["bus"])
        session.emit({"sent": len(sent) - refused}, f"{len(sent) - refused:,} sent")
        if refused:
            raise TimeoutError(f"EventBridge can never take {refused:,} of the crossings")
        return
    told = [read_json(event_entry(item, "", "")["Detail"]) for item in found[:most]]
    session.emit({"fired": told, "more": len(found) > most}, _crossings(told))
    if len(found) > most:
        session.tell(f"there are more: --limit {2 * most}")


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


def _example(aggregate: Any, threshold: Any, at: str) -> Image:
    """A crossing of the highest level that has not happened, by a group that there is not."""
    texts = {"threshold": threshold.name, "aggregate": aggregate.name, "measure": threshold.measure}
    texts |= {"level": str(threshold.at[-1]), "direction": threshold.direction.replace("both", "up")}
    texts |= {"id": f"test-{at}", "at": at, "sequence": "0" * 40}
    group = {"M": {field: {"S": "test"} for field in aggregate.fields}}
    return {**{name: {"S": text} for name, text in texts.items()}, "group": group, "test": {"BOOL": True}}


def _send(session: Session, crossings: list[Image], bus: str) -> int:
    """Send crossings in order; return how many of them EventBridge can never take."""
    refused = 0
    table = session.table.client.describe_table(TableName=session.table.name)["Table"]
    for request in in_requests(crossings):
        entries = [event_entry(one, table_of(table["LatestStreamArn"]), bus) for one in request]
        for one, answer in zip(request, session.client("events").put_events(Entries=entries)["Entries"], strict=True):
            if answer.get("ErrorCode") in LASTING:
                session.tell(f"refused: {one['id']['S']}: {answer['ErrorCode']}: {answer.get('ErrorMessage', '')}")
                refused += 1
            elif "ErrorCode" in answer:
                raise TimeoutError(f"EventBridge refuses crossings from {entries[0]['Time']} on: {answer['ErrorCode']}")
    return refused
