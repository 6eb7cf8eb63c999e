"""``counters events``, ``accept``, ``retract``, ``replay`` and ``erase``: accepted events as they lie in the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters._http.requests import MAX_BODY_BYTES, read_json, write_json
from dynamodb_counters.cli.output import grid, number, pairs
from dynamodb_counters.cli.session import ABOVE_0, DONE, FOUND, Session, fields_of, shared, typed, with_dry_run

_BATCH: Final = 100  # All of a batch are in memory.
_MOST_SHOWN: Final = 1000
_QUOTED: Final = r'"(?:[^"]|"")*+"'
_CELL: Final = re.compile(rf'({_QUOTED}|(?![ \t])[^",\r\n]*+(?<![ \t]))(,|\Z)')
# A line that ends within quotes.
_OPEN: Final = re.compile(rf'(?:(?:{_QUOTED}|[^",]*+),)*+"(?:[^"]|"")*+')
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


class Row(NamedTuple):
    """A line of a file, numbered from 1: its values, or why it has none."""

    number: int
    values: dict[str, Any]
    problem: str = ""
    text: str = ""


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--event", "name", required=True, help="The event's declaration.")
@click.option("--map", "renames", multiple=True, metavar="ATTRIBUTE=COLUMN", help="Rename a column or member.")
@click.option("--rate", type=ABOVE_0, help="At most so many events per second.")
@shared
def replay(session: Session, file: Path, *, name: str, renames: Sequence[str], rate: float | None) -> int:
    """Accept the events of FILE: JSON lines in a .jsonl, or a .csv with a first line of names.

    Killed, run it again: what it repeats are duplicates. Exit code 1: some were rejected, and are in
    FILE.rejects.jsonl.
    """
    if file.suffix not in (".jsonl", ".csv"):
        raise click.UsageError(f"invalid file {file.name!r}: expected .jsonl or .csv")
    event, is_csv = session.find_event(name), file.suffix == ".csv"
    if wrong := [text for text in renames if "=" not in text]:
        raise click.UsageError(f"invalid --map {wrong[0]!r}: expected ATTRIBUTE=COLUMN")
    attributes = {column: attribute for attribute, column in (text.split("=", 1) for text in renames)}
    known = {*event.fields, *(event._declared_attributes or ()), *filter(None, [event.version])}

    def read(row: Row) -> Row:
        values = {attributes.get(column, column): value for column, value in row.values.items()}
        if problem := _near_miss(known, values):
            return row._replace(values={}, problem=problem, text=write_json(row.values)[:_MOST_SHOWN])
        return row._replace(values=typed(event, values) if is_csv else values)

    found, rejects = Counter[str](accepted=0, duplicate=0), file.with_name(f"{file.name}.rejects.jsonl")
    rejects.unlink(missing_ok=True)
    with file.open("rb") as opened, session.progress(f"bytes of {file.name}", file.stat().st_size) as show:
        given = map(read, rows(opened, is_csv=is_csv))
        while part := list(islice(given, _BATCH)):
            began = session.clock()
            outcomes = iter(session.counters.accept_many(event, [row.values for row in part if not row.problem]))
            for row in part:
                outcome = None if row.problem else next(outcomes)
                status, reason = (outcome.status, outcome.reason) if outcome else ("unreadable", row.problem)
                found[status] += 1
                if status not in ("accepted", "duplicate"):
                    content = {"event": row.values} if outcome else {"text": row.text}
                    with rejects.open("a", encoding="utf-8") as refused:
                        line = {"line": row.number, "status": status, "reason": reason, **content}
                        refused.write(f"{write_json(line)}\n")
            if rate is not None:
                session.sleep(max(0.0, len(part) / rate - (session.clock() - began)))
            show(opened.tell())
    left = sum(count for status, count in found.items() if status not in ("accepted", "duplicate"))
    said = {status.replace("_", " "): number(count) for status, count in found.items() if count} or {"accepted": "0"}
    where = str(rejects) if left else None
    session.emit({**found, "rejects": where}, pairs(said | ({"rejects in": where} if where else {})))
    return FOUND if left else DONE


def rows(file: BinaryIO, *, is_csv: bool) -> Iterator[Row]:
    """Read the lines of an open file but for empty ones; one that is too long ends it, never in memory."""
    names = list[str]()
    for place, line in enumerate(iter(lambda: file.readline(MAX_BODY_BYTES + len("\r\n")), b""), start=1):
        content = line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf" if place == 1 else b"")
        if len(content) > MAX_BODY_BYTES:
            raise click.UsageError(f"line {place} has more than {MAX_BODY_BYTES:,} bytes")
        if not content.strip():
            continue
        try:
            if not is_csv:
                yield Row(place, _members(content))
            elif names:
                yield Row(place, _named(names, _cells(content)))
            else:
                names = _cells(content)
                if len({*names, ""}) <= len(names) or any(name != name.strip() for name in names):
                    raise click.UsageError("the first line of a CSV names its columns, each once")
        except ValueError as error:
            if is_csv and not names:
                raise click.UsageError(f"the first line of a CSV names its columns: {error}") from error
            yield Row(place, {}, str(error), content[:_MOST_SHOWN].decode("utf-8", errors="backslashreplace"))


def _members(line: bytes) -> dict[str, Any]:
    try:
        if isinstance(values := read_json(line.decode()), dict):
            return values
        raise ValueError("expected an object in each line")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON within the limits: {error}") from error


def _named(names: list[str], cells: list[str]) -> dict[str, Any]:
    """Return the values of a record by column; an empty cell is none."""
    if len(cells) != len(names):
        raise ValueError(f"{len(cells)} cells; expected {len(names)}")
    return {name: cell for name, cell in zip(names, cells, strict=True) if cell}


def _cells(line: bytes) -> list[str]:
    """Return the cells of a record by RFC 4180, with quotes around a whole cell only; blanks need them."""
    record, cells, end, separator = line.decode(), list[str](), 0, ","
    if _OPEN.fullmatch(record):
        # The next line, read alone, could be a record that there is not.
        raise click.UsageError(f"{record!r:.80}: expected each record of a CSV on a line of its own")
    while separator:
        if (found := _CELL.match(record, end)) is None:
            raise ValueError(f"{record[end:]!r:.80} is no CSV: expected a cell without blanks around it, or in quotes")
        cell, separator = found.groups()
        cells.append(cell[1:-1].replace('""', '"') if cell.startswith('"') else cell)
        end = found.end()
    return cells


def _near_miss(known: set[str], given: Mapping[str, Any]) -> str:
    """Return the problem of a name that differs by case or blanks only: a default would count its event."""
    meant = {name.strip().casefold(): name for name in known}
    near = ((name, meant.get(name.strip().casefold())) for name in given if name not in known)
    return next((f"{name!r} is no attribute, but {other!r} is: give --map" for name, other in near if other), "")


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
    values = fields_of(fields, event.fields, needed=())
    eraser = Eraser(session.table, event, values)
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
