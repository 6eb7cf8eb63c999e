"""``counters quarantine``: what could not be counted; look at it, count it, or give it up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click
from rich.console import Group as Lines
from rich.text import Text

from dynamodb_counters._control.counted_names import plan_of
from dynamodb_counters._declarations.composites import with_parts
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._items.table_schema import TTL
from dynamodb_counters._quarantine.quarantine import STATE, STATES, Quarantined, read_quarantine_item, stored_entries
from dynamodb_counters._quarantine.quarantine import discard as discard_entry
from dynamodb_counters._quarantine.quarantine import redrive as redrive_entry
from dynamodb_counters._table import Table
from dynamodb_counters.cli.output import QUIET, counted, grid, reason_text, span, stamp
from dynamodb_counters.cli.session import DONE, FOUND, Session, options, shared, with_dry_run
from dynamodb_counters.errors import InvalidArgumentError

_ID_DIGITS: Final = 12
_DOUBT: Final = "may have been counted"
_WANTED: Final = options(
    click.argument("ids", nargs=-1, metavar="[ID]…"),
    click.option(
        "--reason", metavar="TEXT", default="", show_default=False, help="Entries whose reason contains this."
    ),
    click.option("--declaration", metavar="NAME", help="Entries that this declaration could not count."),
)
_ACTING: Final = options(
    _WANTED,
    click.option("--all", "everything", is_flag=True, help="All entries."),
    with_dry_run,
    shared,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry, its state, and when it expires, in seconds since 1970, if it does."""

    kept: Quarantined
    state: str
    expires: str | None

    @property
    def id(self) -> str:
        return hashlib.sha256("\0".join(self.kept.key).encode()).hexdigest()[:_ID_DIGITS]

    @property
    def names(self) -> tuple[str, ...]:
        """The declarations that it waits for; none for all."""
        delta = self.kept.content.get("name")
        return (delta,) if isinstance(delta, str) else self.kept.names

    @property
    def change(self) -> Mapping[str, Any]:
        """The part of the record that DynamoDB writes; nothing of a delta, or of an entry that is spoiled."""
        change = self.kept.content.get("dynamodb")
        return change if isinstance(change, Mapping) else {}

    @property
    def created(self) -> float | None:
        """When its record was created, in seconds since 1970, if it says so."""
        seconds = self.change.get("ApproximateCreationDateTime")
        return float(seconds) if isinstance(seconds, int | float) else None

    @property
    def item_key(self) -> str:
        """The item that the record is of, or the group that a delta is for."""
        if isinstance(keys := self.change.get("Keys"), Mapping):
            return " / ".join(str(next(iter(value.values()))) for value in keys.values())
        return " / ".join(map(str, self.kept.content.get("group", ())))

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "declarations": list(self.names),
            "reason": self.kept.reason,
            "created": None if self.created is None else stamp(self.created),
            "expires": None if self.expires is None else stamp(float(self.expires)),
            "shard": self.kept.shard,
            "sequence": self.kept.sequence.lstrip("0"),
            "key": list(self.kept.key),
            "content": self.kept.content,
        }


def _find(session: Session, *states: str, ids: Sequence[str], reason: str, declaration: str | None) -> list[Entry]:
    """The entries that are meant, the oldest first; a usage error if an id means none."""
    names = with_parts([declaration], session.declarations) if declaration else set[str]()
    entries = [
        Entry(read_quarantine_item(item), state, item.get(TTL, {}).get("N"))
        for item in stored_entries(session.table)
        if (state := STATES.get(item.get(STATE, {}).get("S", "")))
    ]
    if missing := sorted({*ids} - {entry.id for entry in entries}):
        raise click.UsageError(f"no entry of the quarantine has the id {missing[0]!r}")
    matches = [
        entry
        for entry in entries
        if entry.state in states
        and (not ids or entry.id in ids)
        and reason.lower() in entry.kept.reason.lower()
        and (declaration is None or not names.isdisjoint(entry.names))
    ]
    return sorted(matches, key=lambda entry: (entry.created or 0, entry.kept.sequence, entry.kept.key))


@click.group()
def quarantine() -> None:
    """Records that could not be counted: list and show them, redrive them, or discard them."""


@quarantine.command("list")
@_WANTED
@click.option("--state", type=click.Choice([*STATES.values()]), default="waiting", help="The outcome.")
@shared
def list_entries(session: Session, *, state: str, **wanted: Any) -> None:
    """List entries, the oldest first; those with an ID in any state, each with its record."""
    entries = _find(session, *(STATES.values() if wanted["ids"] else (state,)), **wanted)
    document = {"entries": [entry.document() for entry in entries]}
    if wanted["ids"]:
        texts = (json.dumps(entry, indent=2) for entry in document["entries"])
        session.emit(document, [line for text in texts for line in text.split("\n")])
        return
    table, now = grid("id", "age", "not counted by", "item", "reason", numbers=("age",), keep=("id",)), session.clock()
    for entry in entries:
        age = "-" if entry.created is None else span(now - entry.created)
        table.add_row(entry.id, age, ", ".join(entry.names) or "all", entry.item_key, reason_text(entry.kept.reason))
    total = Text(counted(len(entries), "entry", "entries"), QUIET)
    session.emit(document, Lines(table, total) if entries else total)


@quarantine.command()
@_ACTING
def redrive(session: Session, **how: Any) -> int:
    """Send entries back through the stream, to be counted once.

    Deploy what repairs their cause first. Asks only about records that may have been counted already.
    """

    def question(entries: Sequence[Entry]) -> str:
        doubtful = sum(_DOUBT in entry.kept.reason for entry in entries)
        return f"{doubtful:,} of {len(entries):,} records {_DOUBT} already. Redrive them, too?" if doubtful else ""

    return _act(session, "redriven", redrive_entry, question, **how)


@quarantine.command()
@_ACTING
def discard(session: Session, **how: Any) -> int:
    """Give entries up: they are never counted, also if their records come again.

    They can be shown until they expire. Refused is what a redrive would count, now or later.
    """
    session.registry.require_readable()
    origins = Origins(session.table.name, session.registry.source or None)
    work = partial(discard_entry, plan=plan_of(session.registry), origins=origins)
    question = "Discard {:,} entries? The counts will lack them for good."
    return _act(session, "discarded", work, lambda entries: question.format(len(entries)), **how)


def _act(
    session: Session,
    done: str,
    work: Callable[[Table, Quarantined], bool],
    question_of: Callable[[Sequence[Entry]], str],
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
    **wanted: Any,
) -> int:
    """Do the work on each entry that is meant, after the question, if there is one."""
    if not everything and not any(wanted.values()):
        raise click.UsageError("which entries? give ids, --reason or --declaration, or --all")
    entries = _find(session, "waiting", **wanted)
    if dry_run or not entries:
        session.emit({f"would be {done}": [entry.id for entry in entries]}, f"{len(entries):,} entries would be {done}")
        return DONE
    if (question := question_of(entries)) and not session.confirm(question, yes=yes):
        return FOUND
    refused = dict[str, str]()
    with session.progress(done, len(entries)) as show:
        for place, entry in enumerate(entries, 1):
            try:
                if not work(session.table, entry.kept):
                    refused[entry.id] = "it has changed meanwhile"
            except InvalidArgumentError as error:
                refused[entry.id] = str(error)
            show(place)
    for name, reason in refused.items():
        session.tell(f"{name}: {reason}")
    changed = [entry.id for entry in entries if entry.id not in refused]
    rest = f"; {len(refused):,} refused" if refused else ""
    session.emit({done: changed, "refused": refused}, f"{len(changed):,} {done}{rest}")
    return FOUND if refused else DONE
