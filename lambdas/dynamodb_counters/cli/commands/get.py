"""``counters get`` and all that reads: ``series``, ``top``, ``events``, ``explain`` and ``thresholds``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import click
from rich.bar import Bar
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from dynamodb_counters._control.counted_names import NameStates
from dynamodb_counters._declarations import TimeWeighted, Window
from dynamodb_counters._declarations.measures import DIVISION
from dynamodb_counters._fold.crossing_events import event_entry
from dynamodb_counters._http.requests import read_json
from dynamodb_counters._http.resources import Document, answer
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import CROSSING_PREFIX
from dynamodb_counters._reads.events import explain as explain_question
from dynamodb_counters._reads.question import MAX_LIMIT, ORDERS, SPAN, Position, Question, calendar_of, kind_of
from dynamodb_counters._reads.table_reads import query
from dynamodb_counters.cli.output import (
    ACCENT,
    HEADING,
    QUIET,
    grid,
    group_text,
    moment_text,
    number,
    pairs,
    span,
    stamp,
)
from dynamodb_counters.cli.session import DONE, FOUND, Session, asking, moment, options, shared

_SHARE: Final = "0.95"
"""Of the percentiles that are asked for, the one that is drawn."""
_GROUP: Final = options(
    click.argument("name"),
    click.argument("group", nargs=-1, metavar="[FIELD=VALUE]…"),
)


def _reading(resource: str, names: Sequence[str], text: str) -> click.Command:
    """A command that asks a declaration, prints the answer, of a level with its integral, then says what it lacks."""
    pages = [click.option("--all", "everything", is_flag=True, help="All pages.")] if "next" in names else []

    @click.command(resource, help=text)
    @options(_GROUP, asking(*names), *pages)
    @shared
    def read(session: Session, name: str, group: tuple[str, ...], *, everything: bool = False, **choices: Any) -> None:
        if everything:
            choices["limit"] = choices["limit"] or str(MAX_LIMIT)
        question = session.ask(resource, name, group, choices)
        document = page = answer(session.counters, question)
        while everything and page.get("next"):
            page = answer(session.counters, replace(question, next=Position.parse("next", page["next"])))
            [listed] = page.keys() & _SHOWN.keys()
            document |= {listed: document[listed] + page[listed], "next": page["next"]}
        declared, consistent = question.declared, question.consistent
        if resource == "get" and isinstance(declared, Window) and isinstance(declared.measure, TimeWeighted):
            start, end = (datetime.fromisoformat(document[end]) for end in ("start", "end"))
            level = session.counters.window(declared, question.values).integral(start, end, consistent=consistent)
            unit_hours = DIVISION.divide(Decimal(level.value), Decimal(3600))
            document |= {"opening": level.opening, "closing": level.closing, "unit_hours": unit_hours}
        show = next((show for part, show in _SHOWN.items() if part in document), _count)
        session.emit(document, show(question, document))
        if resource != "events" and not NameStates.of_table(session.table).complete(declared):
            session.tell(f"not complete: `counters backfill {name}` counts what was there before")
        if document.get("next"):
            session.tell(f"there are more: --next {document['next']}, or --all")

    return read


get: Final = _reading(
    "get",
    (*SPAN, "p", "order", "limit", "next", "scan", "consistent"),
    """Read one group of NAME; what counts by time, over a span of it.

    Without the fields of its sort key, all groups of the partition are listed; without any, with --scan, all groups.
    """,
)
top: Final = _reading("top", ("limit",), "Rank the groups of the aggregate NAME, the greatest first.")
events: Final = _reading(
    "events",
    (*SPAN, "limit", "next", "consistent"),
    """List events of the declaration NAME that have these values.

    The fields of their partition key are needed; of packed events the tenant, if they have one, and the last 24 hours
    are listed unless a span is given.
    """,
)
series: Final = _reading(
    "series",
    (*SPAN, "step", "tz", "anchor", "rolling", "p", "consistent"),
    "Count one group of the window NAME step by step, and draw it; or active members, or a percentile.",
)


def _measures(_: Question, group: Document) -> RenderableType:
    measures = group["measures"]
    plain = {name: number(value) for name, value in measures.items() if not isinstance(value, Mapping)}
    parts: list[RenderableType] = [pairs(plain, numbers=True)] if plain else []
    for name, bins in measures.items():
        if isinstance(bins, Mapping):
            greatest = max(bins.values(), default=0)
            table = grid(name, "count", "", numbers=(name, "count"))
            for text, count in bins.items():
                table.add_row(text, number(count), Bar(greatest, 0, count, width=40, color=ACCENT))
            parts += ["", table] if parts else [table]
    return Lines(*parts)


def _groups(question: Question, page: Document) -> RenderableType:
    groups, measures = page["groups"], question.declared.measures
    if question.resource == "top":
        return _ranked(question, groups)
    table = grid(*question.declared.fields, *measures, numbers=tuple(measures))
    for each in groups:
        cells = [f"{len(one)} bins" if isinstance(one, Mapping) else number(one) for one in each["measures"].values()]
        table.add_row(*each["values"].values(), *cells)
    table.columns[0].style = HEADING if groups else ""
    return table


def _ranked(question: Question, ranked: Sequence[Document]) -> RenderableType:
    measure = question.declared.ranking.measure
    table = grid("#", *question.declared.fields, measure, "", numbers=("#", measure))
    scores = [each["measures"][measure] for each in ranked]
    greatest = max(scores, default=0)
    for place, (each, score) in enumerate(zip(ranked, scores, strict=True), 1):
        drawn = Bar(float(greatest), 0, float(score), width=30, color=ACCENT)
        table.add_row(str(place), *each["values"].values(), number(score), drawn)
    table.columns[0].style = QUIET
    return table


def _extremes(question: Question, answer: Document) -> RenderableType:
    names = question.declared._sk_template.fields[1:]
    table = grid("", "#", "value", "items", *names, numbers=("#", "value", "items"))
    for order in (each for each in ORDERS if each in answer):
        for place, each in enumerate(answer[order], 1):
            value = each["value"]
            text = moment_text(datetime.fromisoformat(value)) if isinstance(value, str) else number(value)
            table.add_row(order if place == 1 else "", str(place), text, number(each["items"]), *each["shown"].values())
    table.columns[0].style = QUIET
    return table


def _events(question: Question, page: Document) -> RenderableType:
    listed = page["events"]
    columns = dict.fromkeys((*question.declared.fields, *(name for each in listed for name in each)))
    texts = (str, bytes, bool, Mapping, list, set)
    numeric = [name for name in columns if not any(isinstance(each.get(name), texts) for each in listed)]
    table = grid(*columns, numbers=numeric)
    for each in listed:
        table.add_row(*("" if value is None else str(value) for value in map(each.get, columns)))
    return table


def _count(_: Question, answer: Document) -> RenderableType:
    rows: dict[str, str | Text] = {"count": Text(number(answer["count"]), HEADING)}
    for share, value in answer.get("percentiles", {}).items():
        rows["max" if share == "1" else f"p{float(share) * 100:g}"] = number(value)
    for label, name in (("from", "start"), ("to", "end")):
        rows |= {label: moment_text(datetime.fromisoformat(answer[name]))} if name in answer else {}
    levels = (name for name in ("opening", "closing", "unit_hours") if name in answer)
    return pairs(
        rows | {name.replace("_", "-"): number(answer[name]) for name in levels}, numbers="start" not in answer
    )


def _bars(question: Question, answer: Document) -> RenderableType:
    declared, unit, step = question.declared, timedelta(seconds=question.declared._unit), question.step_length
    what, length = "count", timedelta(0)
    if question.rolling is not None:
        what, length, step = f"members of {span(question.rolling)}", question.rolling - unit, unit
    share = _SHARE if _SHARE in question.p else question.p[0]
    if kind_of(declared) == "distributions":
        what = f"p{float(share) * 100:g}"
    counts = answer["series"]
    drawn = [each["percentiles"][share] or 0 if "percentiles" in each else each["count"] for each in counts]
    # Neither different members nor percentiles of several steps add up.
    is_sum = isinstance(declared, Window)
    zone, _ = calendar_of(declared, question.values, question.tz, question.anchor, step)
    table, greatest = grid("from", what, "", numbers=(what,), keep=("from",)), float(max(drawn))
    for each, value in zip(counts, drawn, strict=True):
        start = moment_text(datetime.fromisoformat(each["start"]) + length, zone)
        table.add_row(start, number(value), Bar(greatest, 0, float(value), width=40, color=ACCENT))
    all_of = f"{number(sum(drawn))} in all" if is_sum else f"{number(max(drawn))} at most"
    text = f"{declared.name} {group_text(question.values)}".rstrip()
    each_bar = span(step) if isinstance(step, timedelta) else f"1 {step}"
    return Lines(Text.assemble((text, HEADING), (f"  {all_of}, {each_bar} per bar", QUIET)), "", table)


_SHOWN: Final = {"measures": _measures, "groups": _groups, "events": _events, "series": _bars, "extremes": _extremes}
"""By what an answer has, what shows it; else it is a count."""


@click.command()
@_GROUP
@asking(*SPAN)
@click.option("--limit", default=20, type=click.IntRange(0), help="Lines to show.")
@click.option("--scan", is_flag=True, help="Read the whole table, if nothing less will do.")
@shared
def explain(session: Session, name: str, group: tuple[str, ...], *, limit: int, scan: bool, **when: Any) -> int:
    """Show why a group of NAME counts what it counts: the events, items or groups that it counts, and what differs.

    Exit code 1: the number differs from the sum of its lines.
    """
    question = session.ask("get", name, group, when)
    explained = explain_question(session.table, question, scan=scan, limit=limit)
    table = grid("key", "time", "adds", keep=("adds",))
    for line in explained.lines:
        table.add_row(group_text(line.key), line.time, group_text(line.adds))
    rest = f", {number(len(explained.lines))} of them shown" if len(explained.lines) < explained.count else ""
    total = f"{group_text(explained.numbers) or 0}: {number(explained.count)} lines{rest}"
    differs = f"differs by {group_text(explained.difference)}: {explained.reason}" if explained.difference else ""
    session.emit(asdict(explained), Lines(table, *filter(None, (total, differs))))
    return FOUND if explained.difference else DONE


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
    shown = grid("at (UTC)", "threshold", "group", "level", "", "old", "new", numbers=("level", "old", "new"))
    for one in listed:
        level, *others = (number(one.get(part)) for part in ("level", "old", "new"))
        shown.add_row(one["at"], one["threshold"], group_text(one["group"]), level, one["direction"], *others)
    session.emit({"fired": listed, "more": len(crossings) > limit}, shown if listed else "")
    if len(crossings) > limit:
        session.tell(f"there are more: --limit {2 * limit}")


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
