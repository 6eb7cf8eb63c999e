"""``counters accept``, ``wait`` and ``erase``: events into the table, until they are counted, and out of it.

To wait, a shard's records after its checkpoint are folded as the aggregator folds them. A group has counted its part of
them once the watermark of its item, or the checkpoint, has come as far as the last record that adds to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click

from counters_cli.output import group_text, pairs, progress_on
from counters_cli.session import Exit, Session, command, fields_of
from counters_lambda.counting.batch import intake
from counters_lambda.counting.counted_names import plan_of
from counters_lambda.counting.feeds import Feeds, feeds_of, read_checkpoint, read_groups
from counters_lambda.http_api.requests import read_json, write_json
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._erasure import CountsOfErased, Eraser
from dynamodb_counters._fold.fold import Delta, fold
from dynamodb_counters._fold.layouts import GroupRef
from dynamodb_counters._registry import founded_registry
from dynamodb_counters._table import Table

_WRITTEN: Final = ("accepted", "duplicate")
_AT_A_TIME: Final = 10_000  # Records that are folded together: of more, a group's last one may come in a later part.


@command("file", "retract", name="NAME", attributes="[ATTRIBUTE=TEXT|ATTRIBUTE:=JSON]…")
def accept(session: Session, name: str, attributes: Sequence[str], *, file: Path | None, retract: bool) -> int:
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
        return Exit.SUCCESS if is_there else Exit.FINDINGS
    result = session.counters.accept(event, values)
    if result.status == "rejected":
        raise click.UsageError(str(result.reason))
    document = {"status": result.status, "reason": result.reason}
    session.emit(document, ": ".join(filter(None, document.values())))
    return Exit.SUCCESS if result.status in _WRITTEN else Exit.FINDINGS


def _values_of(event: Event, texts: Sequence[str]) -> dict[str, Any]:
    """Parse JSON, and a text where a number or truth value is declared; another text is left to be refused."""
    values: dict[str, Any] = {}
    for key, text in fields_of(texts).items():
        name = key.removesuffix(":")
        if name in values:
            raise click.UsageError(f"the field {name!r} is given twice")
        values[name], attribute = text, (event._declared_attributes or {}).get(name)
        if key != name or (attribute is not None and attribute.type in (int, Decimal, bool)):
            try:
                values[name] = read_json(text)
            except (ValueError, RecursionError) as error:
                if key != name:
                    raise click.UsageError(f"invalid {name}:={text}: expected JSON ({error})") from None
    return values


def _accept_file(session: Session, event: Event, file: Path) -> int:
    statuses, rejects = Counter[str](accepted=0, duplicate=0), file.with_name(f"{file.name}.rejects.jsonl")
    rejects.unlink(missing_ok=True)
    with file.open("rb") as lines, progress_on(session.err, session.clock, is_brief=True) as show:
        rows = _rows(lines)
        while part := list(islice(rows, 100)):  # All of a part are in memory.
            results = session.counters.accept_many(event, [values for _, values in part])
            for (number, values), result in zip(part, results, strict=True):
                statuses[result.status] += 1
                if result.status not in _WRITTEN:
                    reject = {"line": number, "status": result.status, "reason": result.reason, "event": values}
                    with rejects.open("a", encoding="utf-8") as target:
                        target.write(f"{write_json(reject)}\n")
            show(f"bytes of {file.name}", lines.tell(), file.stat().st_size)
    document = {**statuses, "rejects": str(rejects) if statuses.keys() - {*_WRITTEN} else None}
    session.emit(document, *pairs(document))
    return Exit.FINDINGS if document["rejects"] else Exit.SUCCESS


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        try:
            if text := line.decode().strip():
                if not isinstance(values := read_json(text), dict):
                    raise ValueError("expected an object in each line")
                yield number, values
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"line {number} cannot be read: {error}") from error


class Lag:
    """The groups that what the streams hold, when it is made, adds to."""

    def __init__(self, table: Table, feeds: Feeds) -> None:
        self._table, registry, origins = table, founded_registry(table), feeds.origins(table)
        # A name that a backfill fills counts nothing before its cut.
        plan = plan_of(registry, frozenset(name for name, entry in registry.names.items() if not entry.is_complete))
        self.levels = max((len([*with_below(declaration)]) for declaration in registry.counting), default=1)

        def uncounted(shard: str) -> list[tuple[str, Delta]]:
            records = iter(feeds.records(shard, read_checkpoint(table, shard).applied_through))
            last: dict[GroupRef, Delta] = {}
            while part := list(islice(records, _AT_A_TIME)):
                last |= {delta.ref: delta for delta in fold(plan, intake(part, origins)).deltas}
            return [(shard, delta) for delta in last.values()]

        self._pending = [*chain.from_iterable(table.each(uncounted, [shard.id for shard in feeds.shards()]))]

    def settle(self) -> int:
        """Read the groups again, and return how many have not counted all of it yet."""
        groups = [(delta.layout, delta.group) for _, delta in self._pending]
        read = read_groups(self._table, groups, {shard for shard, _ in self._pending})
        progress = zip(self._pending, read, strict=True)
        self._pending = [(shard, delta) for (shard, delta), group in progress if group.applied[shard] < delta.last]
        return len(self._pending)


def wait_until_counted(table: Table, feeds: Feeds, seconds: float) -> None:
    """Return once all is counted that the streams hold now; `TimeoutError` if that takes longer."""
    until = table.clock() + seconds
    lag = Lag(table, feeds)
    # What counts groups is brought by the records of these, which come once they have counted.
    for level in range(lag.levels, 0, -1):
        while groups := lag.settle():
            if table.clock() >= until:
                raise TimeoutError(f"{groups} groups have not counted all that came before, after {seconds:g} s")
            table.sleep(0.5)
        lag = Lag(table, feeds) if level > 1 else lag


@command("timeout")
def wait(session: Session, *, timeout: int) -> None:
    """Wait until all is counted that the table holds now.

    What waits in the queue of an EventIngest is not in the table yet. Exit code 3: it takes longer.
    """
    wait_until_counted(session.table, feeds_of(session.table, session.client("dynamodbstreams")), timeout)
    session.emit({"counted": True}, "all is counted")


@command("counts", "dry_run", "yes", name="NAME", fields="FIELD=VALUE…")
def erase(
    session: Session, name: str, fields: Sequence[str], *, counts: CountsOfErased, dry_run: bool, yes: bool
) -> int:
    """Erase the events NAME with these values of their key, wherever copies of them lie.

    Run it again once the stream's records are counted, at the latest after 24 hours.
    """
    eraser = Eraser(session.table, session.find(name, "events"), fields_of(fields))
    copies = asdict(eraser.find()) if dry_run or not yes else {}
    if dry_run:
        session.emit({"found": copies}, *pairs(copies))
        return Exit.SUCCESS
    if not session.confirm(f"Erase {group_text(copies)}? Counts: {counts}.", yes=yes):
        return Exit.FINDINGS
    erased = asdict(eraser.erase(counts))
    session.emit({"erased": erased}, *pairs(erased))
    session.tell("Run it again once the stream's records are counted, at the latest after 24 hours.")
    return Exit.SUCCESS
