"""Entries of the quarantine as commands see them: what they are called, which are meant, and what they say."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from dynamodb_counters._control.run_items import SCANNED
from dynamodb_counters._declarations.groups import base_name
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import TTL, TYPE
from dynamodb_counters._quarantine.quarantine_items import STATE, STATES, Quarantined, read_quarantine_item
from dynamodb_counters._quarantine.redrive_entries import stored_entries
from dynamodb_counters._table import Table
from dynamodb_counters.cli.show.formats import stamp

_WHAT: Final = {"INSERT": "The insertion", "REMOVE": "The deletion", SCANNED: "The backfilled image"}
_ID_DIGITS: Final = 12
_LEAST_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry, its state, and when its record was created, in seconds since 1970, if it says so."""

    kept: Quarantined
    state: str
    created: float | None
    expires_at: float | None

    @property
    def id(self) -> str:
        """The name that a person calls it by."""
        return hashlib.sha256("\0".join(self.kept.key).encode()).hexdigest()[:_ID_DIGITS]

    @property
    def names(self) -> tuple[str, ...]:
        """The declarations that it waits for; none for all."""
        delta = self.kept.content.get("name")
        return (delta,) if isinstance(delta, str) else self.kept.names

    @property
    def item_key(self) -> str:
        """The item that the record is of, or the group that a delta is for."""
        change = self.kept.content.get("dynamodb")
        if isinstance(change, Mapping) and isinstance(change.get("Keys"), Mapping):
            return " / ".join(str(next(iter(value.values()))) for value in change["Keys"].values())
        return " / ".join(map(str, self.kept.content.get("group", ())))

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "declarations": list(self.names),
            "reason": self.kept.reason,
            "created": None if self.created is None else stamp(self.created),
            "expires": None if self.expires_at is None else stamp(self.expires_at),
            "shard": self.kept.shard,
            "sequence": self.kept.sequence.lstrip("0"),
            "key": list(self.kept.key),
            "content": self.kept.content,
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries are meant; what is not given holds for all."""

    ids: Sequence[str] = ()
    states: Sequence[str] = ("waiting",)
    reason: str = ""
    declarations: Collection[str] = ()
    created_before: float | None = None
    created_after: float | None = None

    def matches(self, entry: Entry) -> bool:
        """An entry that does not show its age is neither old nor new; names of generations may lack their numbers."""
        names = {*entry.names, *map(base_name, entry.names)}
        return (
            entry.state in self.states
            and self.reason.lower() in entry.kept.reason.lower()
            and (not self.declarations or not names.isdisjoint(self.declarations))
            and (self.created_before is None or (entry.created is not None and entry.created <= self.created_before))
            and (self.created_after is None or (entry.created is not None and entry.created >= self.created_after))
        )


def find(table: Table, wanted: Wanted) -> list[Entry]:
    """The entries that are meant, the oldest first; a usage error if an id means none, or several."""
    known = [read_entry(item) for item in stored_entries(table) if item.get(STATE, {}).get("S") in STATES]
    named = {entry.kept.key: entry for text in wanted.ids for entry in [_named(text, known)]}
    found = [entry for entry in (named.values() if wanted.ids else known) if wanted.matches(entry)]
    return sorted(found, key=lambda entry: (entry.created or 0, entry.kept.sequence, entry.kept.key))


def read_entry(item: Image) -> Entry:
    kept = read_quarantine_item(item)
    change = kept.content.get("dynamodb")
    created = change.get("ApproximateCreationDateTime") if isinstance(change, Mapping) else None
    expires_at = item.get(TTL, {}).get("N")
    state = str(item.get(STATE, {}).get("S", "erased"))
    return Entry(
        kept,
        STATES.get(state, state),
        float(created) if isinstance(created, int | float) else None,
        None if expires_at is None else float(expires_at),
    )


def words(entry: Entry) -> Iterator[str]:
    """An entry in words: its kind, its reason, and what a redrive of it does."""
    content = entry.kept.content
    if "numbers" in content:
        added = ", ".join(f"{name} {number}" for name, number in content["numbers"].items())
        yield f"A delta of {content['name']} for the group {entry.item_key}, {added}, could not be added to its item."
        who = f"adds it to {content['name']}"
    elif "dynamodb" in content:
        names = ", ".join(entry.names)
        yield f"{_image_words(entry)} could not be counted by {names or 'any declaration'}."
        if names:
            yield "All other declarations have counted it."
        who = f"counts it by {names}" if names else "counts it by all declarations"
    else:
        yield "Its content cannot be read: nothing can be counted."
        who = "brings it back uncounted"
    yield f"Reason: {entry.kept.reason}"
    yield {
        "waiting": f"A redrive {who}; if it still cannot be counted, it comes back as a new entry.",
        "redriven": "It was redriven: the stream has counted it, or brought it back as a new entry.",
        "discarded": "It was discarded: it is never counted.",
        "settled": "It is settled: a backfill has replaced what it waited for, and looked at the item itself.",
    }.get(entry.state, f"Its state {entry.state!r} is none that this version knows.")


def _image_words(entry: Entry) -> str:
    record = entry.kept.content
    name = "OldImage" if "OldImage" in record["dynamodb"] and "NewImage" not in record["dynamodb"] else "NewImage"
    image = record["dynamodb"].get(name)
    kind = image.get(TYPE, {}).get("S") if isinstance(image, Mapping) else None
    what = _WHAT.get(str(record.get("eventName")), "A change")
    side = "its old image" if name == "OldImage" else "its new image"
    held = f", {side}," if record.get("eventName") == "MODIFY" else ""
    return f"{what} of {f'the {kind} ' if kind else 'the item '}{entry.item_key}{held}"


def _named(text: str, known: Sequence[Entry]) -> Entry:
    found = [entry for entry in known if entry.id.startswith(text)] if len(text) >= _LEAST_DIGITS else []
    if len(found) != 1:
        problem = "several entries have" if found else "no entry of the quarantine has"
        raise click.UsageError(f"{problem} an id that begins with {text!r}: expected {_LEAST_DIGITS} digits or more")
    return found[0]
