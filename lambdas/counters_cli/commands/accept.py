"""``counters accept``, ``wait`` and ``erase``: events into the table, and out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from counters_cli.lag import wait_until_counted
from counters_cli.output import group_text, pairs, progress_on
from counters_cli.session import DONE, FOUND, Session, fields_of, shared, with_dry_run
from counters_lambda.counting.feeds import feeds_of
from counters_lambda.http_api.requests import read_json, write_json
from dynamodb_counters._declarations import Event
from dynamodb_counters._erasure import CountsOfErased, Eraser

_BATCH: Final = 100  # All of a batch are in memory.
_WRITTEN: Final = ("accepted", "duplicate")


@click.command()
@click.argument("name")
@click.argument("attributes", nargs=-1, metavar="[ATTRIBUTE=TEXT|ATTRIBUTE:=JSON]…")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Accept its JSON lines.")
@click.option("--retract", is_flag=True, help="Take an event back, by the attributes of its key.")
@shared
def accept(session: Session, name: str, attributes: tuple[str, ...], *, file: Path | None, retract: bool) -> int:
    """Accept one event of the declaration NAME, with its attributes: price:=9.5 is a number, id=1 what is declared.

    Without a declared type, id=1 is a text. Prints what became of it, such as `accepted` or `duplicate`. Exit code 1:
    it is neither, or there is none to take back.

    With --file, accepts the events of its lines. A line that is no JSON object ends it. Killed or ended, run it again:
    what it repeats are duplicates. Exit code 1: some were rejected, and are in FILE.rejects.jsonl.
    """
    event: Event = session.find(name, "events")
    if (file is None) is not bool(attributes) or (file and retract):
        raise click.UsageError("which event? give its attributes, or --file without --retract")
    if file:
        return _accept_file(session, event, file)
    values = _values_of(event, attributes)
    if retract:
        is_there = session.counters.retract(event, values)
        session.emit({"retracted": is_there}, "retracted" if is_there else "there is no such event")
        return DONE if is_there else FOUND
    outcome = session.counters.accept(event, values)
    if outcome.status == "rejected":
        raise click.UsageError(str(outcome.reason))
    document = {"status": outcome.status, "reason": outcome.reason}
    session.emit(document, ": ".join(filter(None, (outcome.status, outcome.reason))))
    return DONE if outcome.status in _WRITTEN else FOUND


def _values_of(event: Event, given: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in fields_of(given).items():
        name = key.removesuffix(":")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        try:
            values[name] = _typed(event, name, text) if name == key else read_json(text)
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"invalid {name}:={text}: expected JSON ({error})") from None
    return values


def _typed(event: Event, name: str, text: str) -> Any:
    """A number or truth value where one is declared; another text is left to be refused."""
    attribute = (event._declared_attributes or {}).get(name)
    if attribute is not None and attribute.type in (int, Decimal, bool):
        with suppress(ValueError, RecursionError):
            return read_json(text)
    return text


def _accept_file(session: Session, event: Event, file: Path) -> int:
    outcomes, rejects = Counter[str](accepted=0, duplicate=0), file.with_name(f"{file.name}.rejects.jsonl")
    rejects.unlink(missing_ok=True)
    with file.open("rb") as lines, progress_on(session.err, session.clock, is_brief=True) as show:
        rows = _rows(lines)
        while part := list(islice(rows, _BATCH)):
            answers = session.counters.accept_many(event, [values for _, values in part])
            for (place, values), outcome in zip(part, answers, strict=True):
                outcomes[outcome.status] += 1
                if outcome.status not in _WRITTEN:
                    entry = {"line": place, "status": outcome.status, "reason": outcome.reason, "event": values}
                    with rejects.open("a", encoding="utf-8") as refused:
                        refused.write(f"{write_json(entry)}\n")
            show(f"bytes of {file.name}", lines.tell(), file.stat().st_size)
    left = outcomes.total() - sum(outcomes[status] for status in _WRITTEN)
    document = {**outcomes, "rejects": str(rejects) if left else None}
    session.emit(document, pairs(document))
    return FOUND if left else DONE


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines with their places, from 1, and what they hold, but for empty ones."""
    for place, line in enumerate(lines, start=1):
        try:
            if text := line.decode().strip():
                if not isinstance(values := read_json(text), dict):
                    raise ValueError("expected an object in each line")
                yield place, values
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"line {place} cannot be read: {error}") from error


@click.command()
@click.option("--timeout", type=click.IntRange(1), default=60, help="Seconds.")
@shared
def wait(session: Session, *, timeout: int) -> None:
    """Wait until all is counted that the table holds now.

    What waits in the queue of an EventIngest is not in the table yet. Exit code 3: it takes longer.
    """
    wait_until_counted(session.table, feeds_of(session.table, session.client("dynamodbstreams")), timeout)
    session.emit({"counted": True}, "all is counted")


@click.command()
@click.argument("name")
@click.argument("fields", nargs=-1, required=True, metavar="FIELD=VALUE…")
@click.option("--counts", type=click.Choice(["keep", "take_back"]), required=True, help="As expired, or as retracted.")
@with_dry_run
@shared
def erase(
    session: Session, name: str, fields: Sequence[str], *, counts: CountsOfErased, dry_run: bool, yes: bool
) -> int:
    """Erase the events NAME with these values of their key, wherever copies of them lie.

    Run it again once the stream's records are counted, at the latest after 24 hours.
    """
    eraser = Eraser(session.table, session.find(name, "events"), fields_of(fields))
    copies = asdict(eraser.find()) if dry_run or not yes else {}
    if dry_run:
        session.emit({"found": copies}, pairs(copies))
        return DONE
    if not session.confirm(f"Erase {group_text(copies)}? Counts: {counts}.", yes=yes):
        return FOUND
    erased = asdict(eraser.erase(counts))
    session.emit({"erased": erased}, pairs(erased))
    session.tell("Run it again once the stream's records are counted, at the latest after 24 hours.")
    return DONE
