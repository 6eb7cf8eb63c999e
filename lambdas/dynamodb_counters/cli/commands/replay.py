"""``counters replay``: accept the events of a file, each once; a run that was killed is exact when it is repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from dynamodb_counters._declarations import Event
from dynamodb_counters._http.lossless_json import write_json
from dynamodb_counters._writes.outcomes import Outcome
from dynamodb_counters.cli.arguments import ABOVE_0, typed
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.replay_files import FORMATS, MOST_SHOWN, Row, format_of, rows
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.formats import number, pairs

_LINE: Final = "line"
"""The name that `--map` has for the number of a record in its file."""

_BATCH_BYTES: Final = 4_000_000
_STATUSES: Final = ("accepted", "duplicate", "conflict", "rejected", "too_late", "unreadable")


@dataclass
class Progress:
    """How far a replay has come; it belongs to one file, table and event."""

    of: dict[str, Any]
    records: int = 0
    """The number of the last record that was accepted or rejected."""
    rejects_bytes: int = 0
    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATUSES, 0))


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--event", "name", required=True, help="The event's declaration.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's name.")
@click.option("--map", multiple=True, metavar="ATTRIBUTE=COLUMN", help="Rename; column `line` is a record's number.")
@click.option("--set", multiple=True, metavar="ATTRIBUTE=TEXT", help="The same in each event.")
@click.option("--number", "numbers", multiple=True, metavar="COLUMN", help="A column of a CSV that holds numbers.")
@click.option("--rate", type=ABOVE_0, help="At most so many events per second.")
@click.option("--batch", type=click.IntRange(1, 100_000), default=1000, help="Events at a time.")
@click.option("--dry-run", is_flag=True, help="Read the file and write nothing.")
@shared
def replay(
    session: Session,
    file: Path,
    *,
    name: str,
    rate: float | None,
    batch: int,
    dry_run: bool,
    **source: Any,
) -> int:
    """Accept the events of FILE: JSON lines, CSV with a first line of names, or an access log; plain or gzip.

    An access log has the columns client, time, method, url, status, bytes, user, referer and agent.

    Killed, run it again: it goes on after the last batch, and what it repeats are duplicates. Exit code 1: some were
    rejected, and are in FILE.rejects.jsonl.
    """
    event = session.find(Event, name)
    renamed, fixed = _pairs(source["map"], "--map"), _pairs(source["set"], "--set")
    kind, numbers = source["kind"] or format_of(file), source["numbers"]
    read = partial(_renamed, event, renamed=renamed, fixed=typed(event, fixed), has_texts=kind == "csv")

    def check(columns: Sequence[str]) -> None:
        if problem := _near_miss(
            event, [*renamed, *fixed, *(name for name in columns if name not in renamed.values())]
        ):
            raise click.UsageError(f"{problem}: rename it, as by --map")

    check([])
    kept, rejects = (file.with_name(f"{file.name}.{end}") for end in ("progress", "rejects.jsonl"))
    how = {"kind": kind, "map": renamed, "set": fixed, "numbers": sorted(numbers)}
    progress = Progress({"table": session.table.name, "event": name, "bytes": file.stat().st_size, **how})
    progress = progress if dry_run else _continued(progress, kept)
    with file.open("rb") as opened:
        found = (read(row) for row in rows(opened, kind, numbers, check) if row.number > progress.records)
        if dry_run:
            return _look(session, found)
        with session.progress(f"bytes of {file.name}", file.stat().st_size) as show, rejects.open("ab") as refused:
            refused.truncate(progress.rejects_bytes)
            for part in _batches(found, batch):
                began = session.clock()
                _accept(session, event, part, progress, refused)
                _keep(progress, kept)
                if rate is not None:
                    session.sleep(max(0.0, len(part) / rate - (session.clock() - began)))
                show(opened.tell())
    kept.unlink(missing_ok=True)
    left = sum(count for status, count in progress.found.items() if status not in ("accepted", "duplicate"))
    if not left:
        rejects.unlink(missing_ok=True)
    document = {**progress.found, "rejects": str(rejects) if left else None}
    said = {status.replace("_", " "): number(count) for status, count in progress.found.items() if count}
    session.emit(document, pairs((said or {"accepted": "0"}) | ({"rejects in": str(rejects)} if left else {})))
    return FOUND if left else DONE


def _accept(session: Session, event: Event, part: Sequence[Row], progress: Progress, refused: BinaryIO) -> None:
    outcomes = iter(_outcomes(session, event, [row.values for row in part if not row.problem]))
    for row in part:
        outcome = None if row.problem else next(outcomes)
        status, reason = ("unreadable", row.problem) if outcome is None else (outcome.status, outcome.reason)
        progress.found[status] += 1
        if status not in ("accepted", "duplicate"):
            content = {"text": row.text} if row.problem else {"event": row.values}
            said = {_LINE: row.number, "status": status, "reason": reason, **content}
            refused.write(f"{write_json(said)}\n".encode())
    refused.flush()
    progress.records, progress.rejects_bytes = part[-1].number, refused.tell()


def _outcomes(session: Session, event: Event, events: list[dict[str, Any]]) -> list[Outcome]:
    """The outcome of each event; those that the table refuses for now are tried again."""
    outcomes: dict[int, Outcome] = {}
    waiting = list(range(len(events)))
    for _ in session.table.tries(8):
        found = session.counters.accept_many(event, [events[index] for index in waiting]) if waiting else []
        outcomes |= zip(waiting, found, strict=True)
        waiting = [index for index in waiting if outcomes[index].status == "failed"]
        if not waiting:
            break
    if waiting:
        reason = outcomes[waiting[0]].reason
        raise TimeoutError(f"the table keeps refusing {len(waiting)} events: {reason}; run it again, with --rate")
    return [outcomes[index] for index in range(len(events))]


def _look(session: Session, found: Iterable[Row]) -> int:
    counted, first = Counter[str](), None
    for row in found:
        counted["unreadable" if row.problem else "readable"] += 1
        first = first or (None if row.problem else row.values)
    example = write_json(first) if first else "none"
    said = {status: number(counted[status]) for status in ("readable", "unreadable")} | {"the first": example}
    session.emit({"readable": counted["readable"], "unreadable": counted["unreadable"], "first": first}, pairs(said))
    return FOUND if counted["unreadable"] else DONE


def _renamed(event: Event, row: Row, *, renamed: Mapping[str, str], fixed: Mapping[str, Any], has_texts: bool) -> Row:
    if row.problem:
        return row
    columns = {**row.values, _LINE: row.number}
    values = {name: value for name, value in row.values.items() if name not in renamed.values()}
    values |= {name: columns[column] for name, column in renamed.items() if column in columns}
    if problem := _near_miss(event, values):
        return replace(row, problem=problem, text=write_json(row.values)[:MOST_SHOWN])
    return replace(row, values={**(typed(event, values) if has_texts else values), **fixed})


def _near_miss(event: Event, names: Iterable[str]) -> str | None:
    """The problem of a name that differs from an attribute's by case or blanks only: a default would count it."""
    known = {*event.fields, *(event._declared_attributes or ()), *filter(None, [event.version])}
    meant = {name.strip().casefold(): name for name in known}
    for name in names:
        attribute = meant.get(name.strip().casefold())
        if attribute is not None and name not in known:
            return f"{name!r} is no attribute of {event.name!r}, but {attribute!r} is"
    return None


def _continued(fresh: Progress, kept: Path) -> Progress:
    """The progress that an earlier run has kept; a usage error if that was another one."""
    if not kept.exists():
        return fresh
    with suppress(ValueError, TypeError, AttributeError):
        known = Progress(**json.loads(kept.read_text(encoding="utf-8")))
        counts = (known.records, known.rejects_bytes, *known.found.values())
        is_same = known.of == fresh.of and known.found.keys() == fresh.found.keys()
        if is_same and all(type(count) is int and count >= 0 for count in counts):
            return known
    raise click.UsageError(f"{str(kept)!r} is of another replay or damaged: delete it to start over")


def _keep(progress: Progress, kept: Path) -> None:
    # Replaced at once: a kill leaves the old one or the new one.
    written = kept.with_name(f"{kept.name}.new")
    written.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    written.replace(kept)


def _batches(found: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Records by the batch, fewer of long ones: all of a batch are in memory."""
    part: list[Row] = []
    size = 0
    for row in found:
        part.append(row)
        size += row.size
        if len(part) == most or size > _BATCH_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    for one in given:
        if not one.partition("=")[1]:
            raise click.UsageError(f"{option} {one!r}: expected two names joined by =")
    return dict(one.split("=", 1) for one in given)
