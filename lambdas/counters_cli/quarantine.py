"""``counters quarantine``: what could not be counted; look at it, count it, or give it up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import click

from counters_cli.output import counted, progress_on, stamp, table
from counters_cli.session import Exit, Session, command
from counters_lambda.counting.counted_names import plan_of
from dynamodb_counters import _quarantine as library
from dynamodb_counters._fold.records import Origins
from dynamodb_counters._items.schema import TTL
from dynamodb_counters._quarantine import STATES, Quarantined, state_of
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

Work: TypeAlias = Callable[[Table, Quarantined], bool]
_COLUMNS: Final = ("id", "created", "declarations", "item", "reason")
_DOUBT: Final = "may have been counted"


def _document(entry: Quarantined, item: Mapping[str, Any]) -> dict[str, Any]:
    change, delta = entry.content.get("dynamodb"), entry.content.get("name")
    # A delta, or an entry that is spoiled, has no record.
    change = change if isinstance(change, Mapping) else {}
    keys, created = change.get("Keys"), change.get("ApproximateCreationDateTime")
    values = [next(iter(value.values())) for value in keys.values()] if isinstance(keys, Mapping) else None
    return {
        "id": hashlib.sha256("\0".join(entry.key).encode()).hexdigest()[:12],
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


def _find(session: Session, state: str, ids: Sequence[str], reason: str) -> list[tuple[dict[str, Any], Quarantined]]:
    """Return the entries that are meant, the oldest first; refuse an id that means none."""
    items = [item for item in library.stored_entries(session.table) if state_of(item) in STATES]
    entries = [(_document(entry := library.read_quarantine_item(item), item), entry) for item in items]
    if missing := sorted({*ids} - {document["id"] for document, _ in entries}):
        raise click.UsageError(f"no entry of the quarantine has the id {missing[0]!r}")
    entries.sort(key=lambda pair: (pair[0]["created"] or "", pair[1].sequence, pair[1].key))
    return [
        (document, entry)
        for document, entry in entries
        if state in ("", document["state"])
        and (not ids or document["id"] in ids)
        and reason.lower() in entry.reason.lower()
    ]


@command("reason", "state", ids="[ID]…")
def list_command(session: Session, ids: Sequence[str], *, reason: str, state: str) -> None:
    """List entries, the oldest first; those with an ID in any state, each with its record."""
    documents = [document for document, _ in _find(session, "" if ids else state, ids, reason)]
    rows = [{name: document[name] for name in _COLUMNS} for document in documents]
    lines = [*table(rows), counted(len(documents), "entry", "entries")]
    if ids:
        lines = [line for document in documents for line in json.dumps(document, indent=2).split("\n")]
    session.emit({"entries": documents}, *lines)


_acting: Final = command("reason", "all_entries", "dry_run", "yes", ids="[ID]…")


@_acting
def redrive(session: Session, **choices: Any) -> int:
    """Send entries back through the stream, to be counted once.

    Deploy what repairs their cause first. Asks only about records that may have been counted already.
    """
    return _act(session, "redriven", library.redrive, **choices)


@_acting
def discard(session: Session, **choices: Any) -> int:
    """Give entries up: they are never counted, also if their records come again.

    They can be shown until they expire. Refused is what a redrive would count, now or later.
    """
    session.registry.require_readable()
    origins = Origins(session.table.name, session.registry.source or None)
    work = partial(library.discard, plan=plan_of(session.registry), origins=origins)
    return _act(session, "discarded", work, **choices)


def _act(
    session: Session, state: str, work: Work, *, all_entries: bool, dry_run: bool, yes: bool, **selection: Any
) -> int:
    if not all_entries and not any(selection.values()):
        raise click.UsageError("which entries? give ids, --reason or --all")
    entries = {document["id"]: entry for document, entry in _find(session, "waiting", **selection)}
    ids, doubtful = list(entries), sum(_DOUBT in entry.reason for entry in entries.values())
    if dry_run or not entries:
        session.emit({f"would be {state}": ids}, f"{len(ids):,} entries would be {state}")
        return Exit.SUCCESS
    question = f"Discard {len(ids):,} entries? The counts will lack them for good."
    if state == "redriven":
        question = f"{doubtful:,} of {len(ids):,} records {_DOUBT} already. Redrive them, too?"
    if (doubtful or state == "discarded") and not session.confirm(question, yes=yes):
        return Exit.FINDINGS
    refused = dict[str, str]()
    with progress_on(session.err, session.clock, is_brief=True) as show:
        for number, (name, entry) in enumerate(entries.items(), 1):
            try:
                if not work(session.table, entry):
                    refused[name] = "it has changed meanwhile"
            except InvalidArgumentError as error:
                refused[name] = str(error)
            show(state, number, len(ids))
    session.tell(*(f"{name}: {reason}" for name, reason in refused.items()))
    changed = [name for name in ids if name not in refused]
    rest = f"; {len(refused):,} refused" if refused else ""
    session.emit({state: changed, "refused": refused}, f"{len(changed):,} {state}{rest}")
    return Exit.FINDINGS if refused else Exit.SUCCESS


@click.group(commands=[list_command, redrive, discard])
def quarantine() -> None:
    """List, show, redrive or discard records that could not be counted."""
