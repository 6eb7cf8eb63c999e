"""``counters get`` and all that reads: ``events`` and ``explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from string import hexdigits
from typing import Any, Final

import click

from counters_cli.output import group_text, number, pairs, stamp, table
from counters_cli.session import Exit, Session, command
from counters_lambda.counting.crossings import crossing_details
from counters_lambda.http_api.resources import Document, answer
from dynamodb_counters._declarations import TimeWeighted, Window
from dynamodb_counters._declarations.measures import DIVISION
from dynamodb_counters._items.schema import CROSSING_PREFIX
from dynamodb_counters._reads.events import explain as explain_question
from dynamodb_counters._reads.question import MAX_LIMIT, OPTIONS, ORDERS, SPAN, Position, Question, options_of
from dynamodb_counters._registry import threshold_name

_GROUP: Final = {"name": "NAME", "group": "[FIELD=VALUE]…"}
_OF_ALL_KINDS: Final = ("aggregate", "window", "active", "distribution", "extremes", "ranks", "complete")


@command(*OPTIONS, "top", "all_pages", **_GROUP)
def get(session: Session, name: str, group: Sequence[str], *, top: bool, all_pages: bool, **choices: Any) -> None:
    """Read one group of NAME; what counts by time, over a span of it, or with --step or --rolling step by step.

    Without the fields of its sort key, all groups of the partition are listed; without any, with --scan, all groups.
    """
    resource = "top" if top else "series" if choices["step"] or choices["rolling"] else "get"
    question = session.ask(resource, name, group, choices)
    document, declared = _answer(session, question, choices, all_pages=all_pages), question.declared
    if resource == "get" and isinstance(declared, Window) and isinstance(declared.measure, TimeWeighted):
        start, end = (datetime.fromisoformat(document[end]) for end in ("start", "end"))
        window = session.counters.window(declared, question.values)
        level = window.integral(start, end, consistent=question.consistent)
        unit_hours = DIVISION.divide(Decimal(level.value), Decimal(3600))
        document |= {"opening": level.opening, "closing": level.closing, "unit_hours": unit_hours}
    _show(session, document)
    if not session.registry.entries[declared.name].is_complete:
        session.tell(f"not complete: `counters backfill {name}` counts what was there before")


@command(*SPAN, "limit", "next", "consistent", "all_pages", **_GROUP)
def events(session: Session, name: str, group: Sequence[str], *, all_pages: bool, **choices: Any) -> None:
    """List events of the declaration NAME that have these values; or crossings of the threshold NAME.

    The fields of their partition key are needed; of packed events the tenant, if they have one, and the last 24 hours
    are listed unless a span is given. Of a threshold, all that fired, or what --since and --until select.
    """
    if threshold_name(name) not in session.registry.entries:
        question = session.ask("events", name, group, choices)
        _show(session, _answer(session, question, choices, all_pages=all_pages))
        return
    if group or any(value for option, value in choices.items() if option not in ("start", "end")):
        raise click.UsageError(f"invalid options of the threshold {name!r}: expected --since and --until alone")
    start, end = (stamp(choices[end].timestamp()) if choices[end] else "" for end in ("start", "end"))
    pks = [f"{CROSSING_PREFIX}{name}#{digit}" for digit in hexdigits[:16]]
    outbox = chain.from_iterable(session.table.each(lambda pk: [*session.table.partition(pk)], pks))
    crossings = [
        event for event in crossing_details(outbox) if start <= event["at"] and not (end and event["at"] >= end)
    ]
    _show(session, {"threshold": name, "events": crossings, "next": None})


def _answer(session: Session, question: Question, choices: Mapping[str, Any], *, all_pages: bool) -> Document:
    """Answer a question, or with all its pages, which then are long ones."""
    has_pages = "next" in options_of(question.declared, question.resource, is_bounded=False)
    if all_pages and has_pages and choices["limit"] is None:
        question = replace(question, limit=MAX_LIMIT)
    document = page = answer(session.counters, question)
    while all_pages and page.get("next"):
        page = answer(session.counters, replace(question, next=Position.parse("next", page["next"])))
        lists = {name: document[name] + rows for name, rows in page.items() if isinstance(rows, list)}
        document |= {**lists, "next": page["next"]}
    return document


def _show(session: Session, document: Document) -> None:
    """Show what is listed, in rows, or else the numbers of a group; then that there is more."""
    if "events" in document:
        lines = table([{name: str(value) for name, value in event.items()} for event in document["events"]])
    elif "groups" in document:
        lines = table([_columns(group) for group in document["groups"]])
    elif "series" in document:
        lines = table([{"start": step["start"], **_columns(step)} for step in document["series"]])
    elif "extremes" in document:
        ends = [(order, value) for order in ORDERS for value in document.get(order, ())]
        lines = table([{"end": order, **_columns(value)} for order, value in ends])
    else:
        lines = pairs(_columns({**document, "values": {}}))
    session.emit(document, *lines)
    if document.get("next"):
        session.tell(f"there are more: --next {document['next']}, or --all")


def _columns(entry: Document) -> dict[str, Any]:
    """Return what an entry holds by the names of columns: fields and measures side by side."""
    columns: dict[str, Any] = {}
    for name, value in entry.items():
        if name in ("values", "measures", "shown"):
            columns |= value
        elif name == "percentiles":
            columns |= {"max" if share == "1" else f"p{float(share) * 100:g}": own for share, own in value.items()}
        elif name not in _OF_ALL_KINDS:
            columns[name] = value
    return columns


@command(*SPAN, "lines", "scan", **_GROUP)
def explain(session: Session, name: str, group: Sequence[str], *, lines: int, scan: str | None, **span: Any) -> int:
    """Show why a group of NAME counts what it counts: the events, items or groups that it counts, and what differs.

    Exit code 1: the number differs from the sum of its lines.
    """
    question = session.ask("get", name, group, span)
    explained = explain_question(session.table, question, scan=scan is not None, limit=lines)
    rows = table([{"key": line.key, "adds": line.adds} for line in explained.lines])
    rest = f", {number(len(explained.lines))} of them shown" if len(explained.lines) < explained.count else ""
    rows.append(f"{group_text(explained.numbers) or 0}: {number(explained.count)} lines{rest}")
    if explained.difference:
        rows.append(f"differs by {group_text(explained.difference)}: {explained.reason}")
    session.emit(asdict(explained), *rows)
    return Exit.FINDINGS if explained.difference else Exit.SUCCESS
