"""``counters quarantine``: what could not be counted; look at it, count it, or give it up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import click

from counters_cli.output import counted, progress_on, stamp, table
from counters_cli.session import DONE, FOUND, Session, options, shared, with_dry_run
from counters_lambda.counting.counted_names import plan_of
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._items.schema import TTL
from dynamodb_counters._quarantine import STATES, Quarantined, read_quarantine_item, state_of, stored_entries
from dynamodb_counters._quarantine import discard as discard_entry
from dynamodb_counters._quarantine import redrive as redrive_entry
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

Entry: TypeAlias = tuple[dict[str, Any], Quarantined]
"""An entry as JSON has it, and as the library does."""

_ID_DIGITS: Final = 12
_COLUMNS: Final = ("id", "created", "declarations", "item", "reason")
_DOUBT: Final = "may have been counted"
_selecting: Final = options(
    click.argument("ids", nargs=-1, metavar="[ID]…"),
    click.option("--reason", metavar="TEXT", default="", show_default=False, help="Entries whose reason has this."),
)
_acting: Final = options(
    _selecting, click.option("--all", "everything", is_flag=True, help="All entries."), with_dry_run, shared
)


def _entry(item: Mapping[str, Any]) -> Entry:
    entry = read_quarantine_item(item)
    change, delta = entry.content.get("dynamodb"), entry.content.get("name")
    # A delta, or an entry that is spoiled, has no record.
    change = change if isinstance(change, Mapping) else {}
    keys, created = change.get("Keys"), change.get("ApproximateCreationDateTime")
    values = [next(iter(value.values())) for value in keys.values()] if isinstance(keys, Mapping) else None
    document = {
        "id": hashlib.sha256("\0".join(entry.key).encode()).hexdigest()[:_ID_DIGITS],
        "state": STATES.get(state_of(item)),
        "declarations": [delta] if isinstance(delta, str) else list(entry.names),
        "reason": entry.reason,
        "item": " / ".join(map(str, entry.content.get("group", ()) if values is None else values)),
        "created": stamp(created) if isinstance(created, int | float) else None,
        "expires": stamp(float(item[TTL]["N"])) if TTL in item else None,
        "shard": entry.shard,
        "sequence": entry.sequence.lstrip("0"),
        "key": list(entry.key),
        "content": entry.content,
    }
    return document, entry


def _find(session: Session, state: str | None, ids: Sequence[str], reason: str) -> dict[str, Entry]:
    """The entries that are meant, by id, the oldest first; a usage error if an id means none."""
    entries = [_entry(item) for item in stored_entries(session.table) if state_of(item) in STATES]
    if missing := sorted({*ids} - {document["id"] for document, _ in entries}):
        raise click.UsageError(f"no entry of the quarantine has the id {missing[0]!r}")
    entries.sort(key=lambda each: (each[0]["created"] or "", each[1].sequence, each[1].key))
    return {
        document["id"]: (document, entry)
        for document, entry in entries
        if state in (None, document["state"])
        and (not ids or document["id"] in ids)
        and reason.lower() in entry.reason.lower()
    }


@click.group()
def quarantine() -> None:
    """Records that could not be counted: list and show them, redrive them, or discard them."""


@quarantine.command("list")
@_selecting
@click.option("--state", type=click.Choice([*STATES.values()]), default="waiting", help="The outcome.")
@shared
def list_entries(session: Session, *, state: str, **wanted: Any) -> None:
    """List entries, the oldest first; those with an ID in any state, each with its record."""
    documents = [document for document, _ in _find(session, None if wanted["ids"] else state, **wanted).values()]
    rows = [{name: document[name] for name in _COLUMNS} for document in documents]
    lines = [*table(rows), counted(len(documents), "entry", "entries")]
    if wanted["ids"]:
        lines = [line for document in documents for line in json.dumps(document, indent=2).split("\n")]
    session.emit({"entries": documents}, lines)


@quarantine.command()
@_acting
def redrive(session: Session, **how: Any) -> int:
    """Send entries back through the stream, to be counted once.

    Deploy what repairs their cause first. Asks only about records that may have been counted already.
    """
    return _act(session, "redriven", redrive_entry, **how)


@quarantine.command()
@_acting
def discard(session: Session, **how: Any) -> int:
    """Give entries up: they are never counted, also if their records come again.

    They can be shown until they expire. Refused is what a redrive would count, now or later.
    """
    session.registry.require_readable()
    origins = Origins(session.table.name, session.registry.source or None)
    return _act(session, "discarded", partial(discard_entry, plan=plan_of(session.registry), origins=origins), **how)


def _act(
    session: Session,
    done: str,
    work: Callable[[Table, Quarantined], bool],
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
    **wanted: Any,
) -> int:
    """Do the work on each entry that is meant, after a question."""
    if not everything and not any(wanted.values()):
        raise click.UsageError("which entries? give ids, --reason or --all")
    entries = _find(session, "waiting", **wanted)
    ids, doubtful = list(entries), sum(_DOUBT in entry.reason for _, entry in entries.values())
    if dry_run or not entries:
        session.emit({f"would be {done}": ids}, f"{len(ids):,} entries would be {done}")
        return DONE
    question = f"Discard {len(ids):,} entries? The counts will lack them for good."
    if done == "redriven":
        question = f"{doubtful:,} of {len(ids):,} records {_DOUBT} already. Redrive them, too?"
    if (doubtful or done == "discarded") and not session.confirm(question, yes=yes):
        return FOUND
    refused = dict[str, str]()
    with progress_on(session.err, session.clock, is_brief=True) as show:
        for place, (name, (_, entry)) in enumerate(entries.items(), 1):
            try:
                if not work(session.table, entry):
                    refused[name] = "it has changed meanwhile"
            except InvalidArgumentError as error:
                refused[name] = str(error)
            show(done, place, len(ids))
    for name, reason in refused.items():
        session.tell(f"{name}: {reason}")
    changed = [name for name in ids if name not in refused]
    rest = f"; {len(refused):,} refused" if refused else ""
    session.emit({done: changed, "refused": refused}, f"{len(changed):,} {done}{rest}")
    return FOUND if refused else DONE
