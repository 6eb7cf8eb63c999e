"""``counters describe``: what a table counts, and whether all is well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import click
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.text import Text

from dynamodb_counters.cli import facts
from dynamodb_counters.cli.facts import Facts
from dynamodb_counters.cli.session import Session, UnknownDeclarationsError, shared
from dynamodb_counters.cli.show.formats import (
    ACCENT,
    BAD,
    GOOD,
    HEADING,
    QUIET,
    WARNING,
    grid,
    json_lines,
    number,
    pairs,
    reason_text,
    span,
    stamp,
)

_LATE: Final = 15 * 60
"""Seconds after which the last record that a checkpoint covers is worth a look."""

_MOST_REASONS: Final = 10


@click.command()
@click.option("--queue", "queues", multiple=True, metavar="URL", help="A dead-letter queue; may be repeated.")
@click.option("--peek", is_flag=True, help="Read each shard behind its checkpoint: what waits there, and how long.")
@shared
def describe(session: Session, queues: Sequence[str], *, peek: bool) -> None:
    """Show what the table counts, by which deployments, and how far: shards, quarantine, dead letters.

    Reads checkpoints and the whole quarantine, strongly consistently; --peek is one more reader of the stream, which
    serves two.
    """
    document: Facts = {"table": {**facts.of_table(session), "expiring": []}}
    try:
        document["declarations"] = facts.of_declarations(session)
        document["table"]["expiring"] = facts.of_retentions(session)
    except UnknownDeclarationsError as error:
        document |= {"declarations": [], "problem": str(error)}
    document["deployments"] = facts.of_deployments(session)
    stream = document["table"]["stream"]["arn"]
    document["shards"], document["stream_problem"] = facts.of_shards(session, stream, peek=peek)
    document |= facts.of_mappings(session, stream)
    document["quarantine"] = facts.of_quarantine(session)
    document["dead_letters"] = [facts.of_queue(session, queue) for queue in queues]
    session.emit(document, Lines(*_sections(document, session.clock())))


def _sections(document: Facts, now: float) -> Iterator[RenderableType]:
    yield _table(document["table"])
    yield from _section("Deployments", _deployments(document["deployments"], now))
    yield from _section("Shards", _shards(document["shards"]), document["stream_problem"])
    if document["mappings"] or document["mapping_problems"]:
        yield from _section("Mappings", _mappings(document))
    yield from _section("Quarantine", _quarantine(document["quarantine"]))
    if document["dead_letters"]:
        yield from _section("Dead letters", _queues(document["dead_letters"]))
    yield from _section("Declarations", _declarations(document), document.get("problem"))


def _section(title: str, content: RenderableType, problem: str | None = None) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, f"{HEADING} {ACCENT}")
    yield Padding(Text(problem, WARNING) if problem else content, (0, 0, 0, 2))


def _table(table: Facts) -> RenderableType:
    head = Text(table["name"], HEADING)
    head.append(f"  {table['status'].lower()}", GOOD if table["status"] == "ACTIVE" else WARNING)
    stream, ttl, names = table["stream"], table["ttl"], ", ".join(table["expiring"])
    idle = (
        f"disabled: {names} would expire, but stay (an emulator deletes nothing)"
        if names
        else "disabled: nothing would expire"
    )
    problem = table.get("problem", idle)
    expires = ttl["status"] in ("ENABLED", "ENABLING")
    billing = {"PAY_PER_REQUEST": "on demand", "PROVISIONED": "provisioned"}[table["billing"]]
    rows: dict[str, str | Text] = {
        "size": f"{number(table['items'])} items, {decimal(table['bytes'])}, as of the last six hours; {billing}",
        "stream": Text(stream["view"].replace("_", " ").lower()) if stream["enabled"] else Text("none", BAD),
        "TTL": f"{ttl['status'].lower()} on {ttl['attribute']}" if expires else Text(problem, WARNING),
        "indexes": ", ".join(table["indexes"]) or "none",
    }
    return Lines(head, Padding(pairs(rows), (0, 0, 0, 2)))


def _declarations(document: Facts) -> RenderableType:
    lines = list[str | Text]()
    for one in document["declarations"]:
        lines += json_lines(one["counts"])
        if one["waits"]:
            lines += [Text(f"{one['name']} waits for a backfill:", WARNING), *json_lines(one["waits"])]
    return Lines(*lines)


def _deployments(deployments: list[Facts], now: float) -> RenderableType:
    if not deployments:
        return Text("none: no aggregator has counted this table", WARNING)
    shown = grid("deployment", "for records from (UTC)", "changes", keep=("deployment", "for records from (UTC)"))
    for one in deployments:
        since = one["valid_from"]
        when = _clock(since) + (" (ahead)" if since > stamp(now) else "") if since else "the beginning"
        what = Text("cannot be read by this version", WARNING)
        if one["declarations"] is not None:
            what = Text(one["changes"] or f"declares {' '.join(one['declarations'])}")
        shown.add_row(one["deployment"], when, what)
    return shown


def _shards(shards: list[Facts]) -> RenderableType:
    is_peeked = any("uncovered_seconds" in one for one in shards)
    keep = ("shard", "state", "counted through (UTC)")
    more = [*(["waits"] if is_peeked else []), *([""] if any(_notes(one) for one in shards) else [])]
    shown = grid(*keep, "ago", *more, numbers=("ago", "waits"), keep=keep)
    for one in sorted(shards, key=lambda one: (not one["open"], one["shard"])):
        name = re.sub(r"^0+(?=\d)", "", one["shard"].removeprefix("shardId-"))
        known, waits = one["checkpoint"], one.get("uncovered_seconds")
        through, age = Text("no checkpoint", WARNING if one["open"] else QUIET), "-"
        if known is not None and known["created"] is None:
            through = Text("not reported yet", QUIET)
        elif known is not None:
            through, age = Text(_clock(known["created"])), span(known["age_seconds"])
        cells: list[str | Text] = [name, Text("open" if one["open"] else "closed", QUIET), through, age]
        if is_peeked:
            cells.append(Text("-", QUIET) if waits is None else Text(span(waits), WARNING if waits > _LATE else ""))
        shown.add_row(*cells, *([notes] if (notes := _notes(one)) else []))
    return shown


def _notes(shard: Facts) -> Text | None:
    known = shard["checkpoint"]
    if known is not None and known["lost_before"]:
        return Text(f"its checkpoint was lost before {known['lost_before']}", BAD)
    if known is not None and known["retrying"]:
        return Text("a batch is tried again", WARNING)
    return None


def _mappings(document: Facts) -> RenderableType:
    shown = grid("function", "stream of", "starts at", "state")
    for one in document["mappings"]:
        function, table = one["function"].split(":", 6)[-1], one["stream"].split("/")[1]
        shown.add_row(function, table, str(one["starts"]).lower().replace("_", " "), one["state"].lower())
    problems = [Text(problem, BAD) for problem in document["mapping_problems"]]
    return Lines(*([shown] if document["mappings"] else []), *problems)


def _quarantine(quarantine: Facts) -> RenderableType:
    redriven = f"; {number(quarantine['redriven'])} redriven" if quarantine["redriven"] else ""
    if not quarantine["waiting"]:
        return Text(f"empty{redriven}", GOOD)
    shown = grid("entries", "not counted by", "reason", numbers=("entries",))
    for one in quarantine["reasons"][:_MOST_REASONS]:
        names = ", ".join(one["declarations"]) or "all"
        shown.add_row(Text(number(one["entries"]), WARNING), names, reason_text(one["reason"]))
    more = len(quarantine["reasons"]) - _MOST_REASONS
    rest = f"; {number(more)} more reasons in --json" if more > 0 else ""
    return Lines(shown, Text(f"{number(quarantine['waiting'])} wait{redriven}{rest}", QUIET))


def _queues(queues: list[Facts]) -> RenderableType:
    shown = grid("queue", "messages", "in flight", numbers=("messages", "in flight"))
    for one in queues:
        waiting = Text(number(one["messages"]), WARNING if one["messages"] else GOOD)
        shown.add_row(one["queue"].rsplit("/", 1)[-1], waiting, number(one["in_flight"]))
    return shown


def _clock(stamp: str) -> str:
    """A moment below a heading that names its zone."""
    return stamp.replace("T", " ").removesuffix("Z")
