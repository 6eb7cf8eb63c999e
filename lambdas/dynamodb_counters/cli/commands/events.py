"""``counters events``, ``accept``, ``retract``, ``replay`` and ``erase``: accepted events as they lie in the table."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters._http.requests import MAX_BODY_BYTES, read_json, write_json
from dynamodb_counters.cli.output import grid, number, pairs
from dynamodb_counters.cli.session import ABOVE_0, DONE, FOUND, Session, fields_of, shared, typed, with_dry_run

_BATCH: Final = 100  # All of a batch are in memory.
_PLACES: Final = {
    "events": "the table",
    "packed": "chunks",
    "quarantined": "the quarantine",
    "uncounted": "of these, to be counted yet",
    "left": "copies that stay, because they wait to be counted",
}


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, required=True, metavar="ATTRIBUTE=TEXT|ATTRIBUTE:=JSON…")
@shared
def accept(session: Session, name: str, attributes: tuple[str, ...]) -> int:
    """Accept one event of the declaration NAME, with its attributes: price:=9.5 is a number, id=1 what is declared.

    Without a declared type, id=1 is a text.

    Prints what became of it, such as `accepted` or `duplicate`. Exit code 1: it is neither. See `replay` for files.
    """
    event = session.find_event(name)
    outcome = session.counters.accept(event, _values_of(event, attributes))
    if outcome.status == "rejected":
        raise click.UsageError(str(outcome.reason))
    document = {"status": outcome.status, "reason": outcome.reason}
    session.emit(document, ": ".join(text for text in (outcome.status, outcome.reason) if text))
    return DONE if outcome.status in ("accepted", "duplicate") else FOUND


@click.command()
@click.option("--timeout", type=ABOVE_0, default=60, help="Seconds; by default a minute.")
@shared
def wait(session: Session, *, timeout: float) -> None:
    """Wait until all is counted that the table holds now.

    What waits in the queue of an EventIngest is not in the table yet. Exit code 3: it takes longer.
    """
    session.counters.wait(timedelta(seconds=timeout), streams=session.client("dynamodbstreams"))
    session.emit({"counted": True}, "all is counted")


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, required=True, metavar="ATTRIBUTE=TEXT|ATTRIBUTE:=JSON…")
@shared
def retract(session: Session, name: str, attributes: tuple[str, ...]) -> int:
    """Delete one event of the declaration NAME, by the attributes of its key; its counts go down.

    Exit code 1: there is none, unless it expired or has not come yet.
    """
    event = session.find_event(name)
    found = session.counters.retract(event, _values_of(event, attributes))
    session.emit({"retracted": found}, "retracted" if found else "there is no such event")
    return DONE if found else FOUND


def _values_of(event: Event, given: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            raise click.UsageError(f"invalid attribute {one!r}: expected attribute=text or attribute:=JSON")
        if name in values:
            raise click.UsageError(f"the attribute {name!r} is given twice")
        try:
            values |= {name: read_json(text)} if is_json else typed(event, {name: text})
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"invalid attribute {one!r}: expected JSON after := ({error})") from None
    return values


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--event", "name", required=True, help="The event's declaration.")
@click.option("--map", "renames", multiple=True, metavar="ATTRIBUTE=COLUMN", help="Rename a column or member.")
@click.option("--rate", type=ABOVE_0, help="At most so many events per second.")
@shared
def replay(session: Session, file: Path, *, name: str, renames: Sequence[str], rate: float | None) -> int:
    """Accept the events of FILE: JSON lines in a .jsonl, or a .csv with a first line of names.

    A line that is not of its format ends it. Killed or ended, run it again: what it repeats are duplicates. Exit code
    1: some were rejected, and are in FILE.rejects.jsonl.
    """
    if file.suffix not in (".jsonl", ".csv"):
        raise click.UsageError(f"invalid file {file.name!r}: expected .jsonl or .csv")
    event, is_csv = session.find_event(name), file.suffix == ".csv"
    if wrong := [text for text in renames if "=" not in text]:
        raise click.UsageError(f"invalid --map {wrong[0]!r}: expected ATTRIBUTE=COLUMN")
    attributes = {column: attribute for attribute, column in (text.split("=", 1) for text in renames)}
    known = {*event.fields, *(event._declared_attributes or ()), *filter(None, [event.version])}

    def read(values: dict[str, Any]) -> dict[str, Any]:
        values = {attributes.get(column, column): value for column, value in values.items()}
        _require_no_near_miss(known, values)
        return typed(event, values) if is_csv else values

    found, rejects = Counter[str](accepted=0, duplicate=0), file.with_name(f"{file.name}.rejects.jsonl")
    rejects.unlink(missing_ok=True)
    with file.open("rb") as opened, session.progress(f"bytes of {file.name}", file.stat().st_size) as show:
        lines = rows(opened, read, is_csv=is_csv)
        while part := list(islice(lines, _BATCH)):
            began = session.clock()
            outcomes = session.counters.accept_many(event, [values for _, values in part])
            for (place, values), outcome in zip(part, outcomes, strict=True):
                found[outcome.status] += 1
                if outcome.status not in ("accepted", "duplicate"):
                    line = {"line": place, "status": outcome.status, "reason": outcome.reason, "event": values}
                    with rejects.open("a", encoding="utf-8") as refused:
                        refused.write(f"{write_json(line)}\n")
            if rate is not None:
                session.sleep(max(0.0, len(part) / rate - (session.clock() - began)))
            show(opened.tell())
    left = sum(count for status, count in found.items() if status not in ("accepted", "duplicate"))
    said = {status.replace("_", " "): number(count) for status, count in found.items() if count} or {"accepted": "0"}
    where = str(rejects) if left else None
    session.emit({**found, "rejects": where}, pairs(said | ({"rejects in": where} if where else {})))
    return FOUND if left else DONE


def rows(
    file: BinaryIO, read: Callable[[dict[str, Any]], dict[str, Any]], *, is_csv: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the lines of an open file, numbered from 1, but for empty ones; one that is not of its format ends it."""
    names = list[str]()
    for place, line in enumerate(iter(lambda: file.readline(MAX_BODY_BYTES + len("\r\n")), b""), start=1):
        content = line.rstrip(b"\r\n")
        try:
            if len(content) > MAX_BODY_BYTES:
                raise ValueError(f"expected at most {MAX_BODY_BYTES:,} bytes")
            text = content.decode("utf-8-sig" if place == 1 else "utf-8")
            if text.strip() and not is_csv:
                if not isinstance(values := read_json(text), dict):
                    raise ValueError("expected an object in each line")
                yield place, read(values)
            elif text.strip():
                # Alone: a quote that is not closed must not take the next lines with it.
                cells = next(csv.reader([text], strict=True))
                if not names and len({*cells, ""}) <= len(cells):
                    raise ValueError("expected the names of the columns, each once")
                if names and len(cells) != len(names):
                    raise ValueError(f"{len(cells)} cells; expected {len(names)}")
                if names:
                    # An empty cell is none.
                    yield place, read({name: cell for name, cell in zip(names, cells, strict=True) if cell})
                names = names or cells
        except (ValueError, RecursionError, csv.Error) as error:
            raise click.UsageError(f"line {place} cannot be read: {error}") from error


def _require_no_near_miss(known: set[str], given: Mapping[str, Any]) -> None:
    """Refuse a name that differs by case or blanks only: a default would count its event."""
    meant = {name.strip().casefold(): name for name in known}
    for name in given:
        other = meant.get(name.strip().casefold())
        if name not in known and other:
            raise ValueError(f"{name!r} is no attribute, but {other!r} is: give --map")


@click.command()
@click.argument("name")
@click.argument("fields", nargs=-1, required=True, metavar="FIELD=VALUE…")
@click.option("--counts", type=click.Choice(["keep", "take_back"]), required=True, help="As expired, or as retracted.")
@click.option(
    "--uncounted", type=click.Choice(["refuse", "drop"]), default="refuse", help="Copies that wait for counting."
)
@with_dry_run
@shared
def erase(session: Session, name: str, fields: Sequence[str], *, dry_run: bool, yes: bool, **how: Any) -> int:
    """Erase the events NAME with these values of their key, wherever copies of them lie.

    Run it again once the stream's records are counted, at the latest after 24 hours.
    """
    event = session.find_event(name)
    eraser = Eraser(session.table, event, fields_of(fields))
    if dry_run:
        _show(session, "found", eraser.find())
        return DONE
    if not yes:
        found = [f"{_PLACES[field]}: {number(count)}" for field, count in asdict(eraser.find()).items() if count]
        session.tell(f"found: {', '.join(found) or 'nothing'}")
    if not session.confirm(f"Erase them? Counts: {how['counts']}.", yes=yes):
        return FOUND
    _show(session, "erased", eraser.erase(**how))
    session.tell("Run it again once the stream's records are counted, at the latest after 24 hours.")
    return DONE


def _show(session: Session, what: str, found: Erased) -> None:
    shown = grid("place", what, numbers=(what,))
    for field, count in asdict(found).items():
        if count or field == "events":
            shown.add_row(_PLACES[field], number(count))
    session.emit({what: asdict(found)}, shown)
