"""The registry: what a table counts, by name. A name keeps the definition that it was first registered with.

A header item says that the table is counted at all; an entry per name has its definition and its state. Every process
folds every name by its registered definition, whatever its own code declares. A state is left in one direction only:

    complete, filling --> stale --> waiting --> filling --> complete
                                       |
                                       +--> removed, if it was dropped

Everyone relies on an entry for FRESH after it was read. So whoever takes something away waits until nobody relies on
having it: docs/exactly-once.md says how long, and docs/spec/Registry.tla is the model.

Where packed events lie is registered by name, too: the first process that accepts such an event puts its layout into an
item of the table. Whoever declares another one is refused, before anything is written or read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._declarations import Aggregate, Declaration, Event, Items, Packed
from dynamodb_counters._declarations.codec import decode, definition, encode, same_definition
from dynamodb_counters._declarations.composites import Threshold
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._fold.layouts import BITS, Page, level_of
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image, text_reader
from dynamodb_counters._items.keys import key_template
from dynamodb_counters._items.schema import PK, SK, bookkeeping_item, put_as_seen, typed_values, update_as_seen
from dynamodb_counters._table import Remembered, Table
from dynamodb_counters.errors import BackfillError, CountersError, InvalidArgumentError, UncountedError

Changes: TypeAlias = "Iterable[tuple[Entry | None, Entry | None]]"  # What was read, and what is to be; None: nothing.
State: TypeAlias = Literal["waiting", "filling", "complete", "stale"]
WAITING: Final = "waiting"
FILLING: Final = "filling"
COMPLETE: Final = "complete"
STALE: Final = "stale"
COUNTING: Final = (FILLING, COMPLETE, STALE)  # States of names that every process folds.
_HEADER: Final = "DECLARED"
_ENTRY: Final = "DECLARED#"
# Attributes of the header.
SOURCE: Final = "source"  # The ARN of the source table, if the aggregator has one.
DECLARED: Final = "declared"  # What the process declares that began last: with all that events require.
RUNS: Final = "runs"  # The open verifications.
_SERIAL: Final = "serial"  # Changes with every name: names that contradict each other are not registered at once.
_COMPARED: Final = ("state", "at", "since", "run", "dropped", "fresh", "surplus")
_LAYOUT: Final = "layout"
_PART_OF_TENANT: Final = key_template("{part}#{tenant}", schema.MAX_SK_BYTES, "pk")
_MOST_PAGES: Final = 100_000  # That a process knows the levels of.


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    definition: str
    state: str
    at: float = 0.0  # When it entered the state.
    since: int = 0  # From when on records count, in seconds since 1970; 0 for all.
    run: str = ""  # The backfill that fills it, or has filled it: its cut says where in each shard `since` lies.
    dropped: bool = False
    fresh: bool = False  # Nothing has ever been counted under the name: there are no items to delete.
    watches: str = ""  # The aggregate that a threshold watches.
    surplus: bool = False  # It counts what has expired, or was erased with its counts kept: no source shows that.

    @property
    def declaration(self) -> Declaration | None:
        """The registered declaration; None if this version cannot read it, or of a threshold."""
        decoded = _decoded(self.definition)
        return None if isinstance(decoded, Threshold) else decoded

    @property
    def threshold(self) -> Threshold | None:
        decoded = _decoded(self.definition)
        return decoded if isinstance(decoded, Threshold) else None

    @property
    def counts(self) -> bool:
        return self.state in COUNTING and not self.watches

    @property
    def is_complete(self) -> bool:
        return self.state == COMPLETE

    def entering(self, state: State, at: float, **changed: Any) -> Entry:
        return replace(self, state=state, at=math.ceil(at), **changed)

    def item(self) -> dict[str, Any]:
        names = ("definition", "state", "at", "since", "run", "dropped", "fresh", "watches")
        values = {name: getattr(self, name) for name in names} | ({"surplus": True} if self.surplus else {})
        return bookkeeping_item(entry_key(self.name), values)

    @classmethod
    def of(cls, item: Image) -> Entry:
        fields = {"definition": "", "state": "", **schema.read_fields(cls, item)}
        return cls(item[SK]["S"].removeprefix(_ENTRY), **fields)


def scanned_names(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return those of the names that a run fills whose items a scan shows."""
    sources = {entry.name: entry.declaration and entry.declaration.source.name for entry in entries}
    return tuple(sorted(name for name, source in sources.items() if source not in sources))


@lru_cache(maxsize=512)
def _decoded(text: str) -> Any:
    try:
        [decoded] = decode(text)
    except (InvalidArgumentError, ValueError):
        return None
    return decoded


def header_key() -> dict[str, Any]:
    return schema.bookkeeping_key(_HEADER)


def entry_key(name: str) -> dict[str, Any]:
    return schema.bookkeeping_key(_ENTRY + name)


def threshold_name(name: str) -> str:
    return f"threshold {name}"  # No declaration has such a name.


@dataclass(frozen=True, slots=True)
class Registry:
    header: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def is_founded(self) -> bool:
        # Of a registry whose header was deleted by hand, the names hold.
        return bool(self.header or self.entries)

    @property
    def source(self) -> str:
        """The ARN of the aggregator's source table; "" for none."""
        return str(self.header.get(SOURCE, {}).get("S", ""))

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """Declarations of the process that began last; none where this version cannot read them."""
        try:
            return decode(self.header[DECLARED]["S"])
        except (LookupError, InvalidArgumentError):
            return ()

    @property
    def verifications(self) -> tuple[Run, ...]:
        """The verifications that are open: of names that have been complete since they began."""
        since = {name: entry.at for name, entry in self.entries.items() if entry.is_complete}
        runs = read_runs(self.header)
        return tuple(run for run in runs if all(since.get(name, math.inf) <= run.since for name in run.names))

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs that are open: of each, the names of which it keeps the contributions."""
        return (*self.verifications, *self.backfills)

    @property
    def backfills(self) -> tuple[Run, ...]:
        """The runs that fill names; what counts groups of these is brought by the stream."""
        entries = [entry for entry in self.entries.values() if entry.state == FILLING]
        since = {entry.run: entry.since for entry in entries}
        names = {run: scanned_names(entry for entry in entries if entry.run == run) for run in since}
        return tuple(Run(run, "backfill", since[run], names[run]) for run in sorted(since))

    @property
    def names(self) -> dict[str, Entry]:
        """The entries of what counts, without thresholds."""
        return {name: entry for name, entry in self.entries.items() if not entry.watches}

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        return tuple(declaration for entry in self.names.values() if (declaration := entry.declaration) is not None)

    @property
    def readable(self) -> tuple[Declaration, ...]:
        """The declarations that this version can read, with all that they count."""
        read = {declaration.name: declaration for declaration in self.declarations}
        unread = self.names.keys() - read.keys()
        return tuple(root for root in read.values() if unread.isdisjoint(below.name for below in with_below(root)))

    def require_readable(self) -> None:
        """Refuse where this version cannot read a definition: what it can count is unknown."""
        if unread := sorted(name for name, entry in self.names.items() if entry.declaration is None):
            raise CountersError(f"this version cannot read {', '.join(unread)}: install the one that runs")

    @property
    def counting(self) -> tuple[Declaration, ...]:
        """The declarations that every process folds: of names that count, over others that do."""
        return tuple(declaration for declaration in self.readable if not self.lacking(declaration))

    def lacking(self, declaration: Declaration, *, lasting: bool = False) -> list[str]:
        """Return names, of a declaration and of all below it, that do not count; or are dropped, if `lasting`."""
        entries = {below.name: self.entries.get(below.name) for below in with_below(declaration)}
        return [name for name, entry in entries.items() if not (entry and entry.counts) or (lasting and entry.dropped)]

    def may_exceed(self, declaration: Declaration, *, is_restored: bool = False) -> bool:
        """Return whether a name may hold more than its sources show: something that it counts may have gone."""
        source, entry = declaration.source, self.entries.get(declaration.name)
        if declaration.on_expiry != "keep":
            return False
        if entry is not None and entry.surplus:
            return True
        if isinstance(source, Event):
            # A definition does not say how long events stay; what is declared nowhere may have expired.
            events = (root.source for root in self.declared if isinstance(root.source, Event))
            return source.name not in {event.name for event in events if event.retention is None}
        if isinstance(source, Items):
            # Any item may have a `ttl` that no declaration names; and a copy of the table does not know what went.
            return is_restored or (source.keys is not None and source.keys.ttl is not None)
        return isinstance(source, Aggregate) and source.retention is not None

    @property
    def thresholds(self) -> dict[str, list[Entry]]:
        """The entries of thresholds, by the aggregate that they watch."""
        thresholds: dict[str, list[Entry]] = {}
        for entry in self.entries.values():
            if entry.watches and not entry.dropped:
                thresholds.setdefault(entry.watches, []).append(entry)
        return thresholds


def read_registry(table: Table, *, is_known: bool = False) -> Registry:
    """Read the header and the names; the names after the header, unless it `is_known` that there is one."""
    items = {item[SK]["S"]: item for item in table.partition(schema.CHECKPOINT_PREFIX, _HEADER)}
    header = items.pop(_HEADER, {})
    registry = Registry(header, {entry.name: entry for entry in map(Entry.of, items.values())})
    # A Query reads no two items at the same time: the header may have come with names that it has passed by.
    return registry if is_known or not registry.is_founded else read_registry(table, is_known=True)


def founded_registry(table: Table) -> Registry:
    if not (registry := read_registry(table)).is_founded:
        raise BackfillError("nothing counts the table yet: deploy its aggregator, and wait for a batch")
    return registry


def is_same(entry: Entry, new: Entry) -> bool:
    """Return whether two entries have one definition, as far as this version can read them."""
    if entry.declaration is not None and new.declaration is not None:
        return same_definition(entry.declaration, new.declaration)
    return entry.definition == new.definition or _decoded(entry.definition) is None


def entries_of(declarations: Iterable[Declaration]) -> Iterator[Entry]:
    """Yield the entries of declarations, and of the thresholds that watch them, all complete from the beginning."""
    for declaration in declarations:
        name = declaration.name
        yield Entry(name, encode((definition(declaration),)), COMPLETE)
        for threshold in declaration._thresholds if isinstance(declaration, Aggregate) else ():
            yield Entry(threshold_name(threshold.name), encode((threshold,)), COMPLETE, watches=name)


def note_surplus(table: Table, registry: Registry, names: Iterable[str]) -> Registry:
    """Have the registry say that names count what no item shows, before they do: no verification calls it drift."""
    entries = {name: entry for name in sorted(names) if not (entry := registry.entries[name]).surplus}
    for name in entries:
        key = entry_key(name)
        # If it is refused, the name was removed.
        table.write("update_item", **update_as_seen(table.name, key, typed_values({"surplus": True}), {PK: key[PK]}))
    changes = {name: replace(entry, surplus=True) for name, entry in entries.items()}
    return replace(registry, entries={**registry.entries, **changes}) if changes else registry


def write_registry(
    table: Table, registry: Registry, changes: Changes, *, attributes: Image | None = None, also: Iterable[Any] = ()
) -> bool:
    """Change entries that are as they were read, together; and the header, with its serial, if it is given."""
    writes: list[Any] = []
    for before, after in changes:
        stored = {} if before is None else before.item()
        if after is not None:
            writes.append({"Put": put_as_seen(table.name, after.item(), stored, _COMPARED)})
        elif before is not None:
            compared = {name: stored.get(name) for name in _COMPARED}
            writes.append({"Delete": update_as_seen(table.name, entry_key(before.name), {}, compared)})
    if attributes is not None:
        serial = typed_values({_SERIAL: int(registry.header.get(_SERIAL, {}).get("N", 0)) + 1})
        new = {**bookkeeping_item(header_key(), {}), **registry.header, **attributes, **serial}
        writes.append({"Put": put_as_seen(table.name, new, registry.header, (_SERIAL,))})
    return table.write_together([*writes, *also])


class NameStates(Remembered):
    """The entries of the names that one process reads, or counts in directly."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._items: dict[str, tuple[float, Image]] = {}

    def complete(self, declaration: Declaration) -> bool:
        """Return whether all there is has been counted; raise if nothing counts it, or by another definition."""
        entry = self._entry(declaration)
        return entry is not None and entry.is_complete

    def counts(self, declaration: Declaration) -> bool:
        """Return whether a direct count may change its items; a table that nothing counts takes everything."""
        entry = self._entry(declaration)
        return entry is None or entry.is_complete

    def _entry(self, declaration: Declaration) -> Entry | None:
        key = entry_key(declaration.name)
        item = self._read(key)
        # Another process may have registered it a moment ago.
        if not item and self._read(header_key()) and not (item := self._read(key, again=True)):
            raise UncountedError(declaration.name)
        entry = Entry.of(item) if item else None
        if entry is not None and (stored := entry.declaration) is not None and not same_definition(stored, declaration):
            raise UncountedError(declaration.name, is_changed=True)
        return entry

    def _read(self, key: Mapping[str, Any], *, again: bool = False) -> Image:
        now, sk = self._table.clock(), key[SK]["S"]
        read_at, item = self._items.get(sk, (-math.inf, {}))
        if again or now >= read_at + FRESH:
            before, item = item, self._table.client.get_item(TableName=self._table.name, Key=key).get("Item", {})
            if before and item != before:
                PageLevels.of_table(self._table).clear()
            self._items[sk] = now, item
        return item


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is open: `names` are those whose contributions it keeps, `since` is where its cut lies."""

    id: str
    kind: Literal["backfill", "verify"]
    since: int
    names: tuple[str, ...]


def typed_runs(runs: Iterable[Run]) -> dict[str, Any]:
    ordered = sorted(runs, key=lambda run: run.id)
    return typed_values({RUNS: json.dumps({run.id: [run.kind, run.since, *run.names] for run in ordered})})


def read_runs(item: Mapping[str, Any]) -> tuple[Run, ...]:
    """Return the open verifications that the registry's header holds; none if it is spoiled."""
    try:
        runs = json.loads(item.get(RUNS, {}).get("S", "{}"))
        return tuple(Run(name, kind, int(since), tuple(names)) for name, (kind, since, *names) in runs.items())
    except (AttributeError, TypeError, ValueError):
        return ()


def part_of(packed: Packed, digest: bytes, values: Image) -> str:
    """Return the part of an event, and its tenant, as chunks are keyed by them."""
    number = 0
    if packed.parts > 1:
        text = digest if packed.partition_by is None else text_reader(packed.partition_by)(values).encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest()) % packed.parts
    return _part(packed, number, values)


def all_parts(packed: Packed, values: Image) -> list[str]:
    """Return the parts that events may be in, of the tenant that the values name, if there are tenants."""
    return [_part(packed, number, values) for number in range(packed.parts)]


def _part(packed: Packed, number: int, values: Image) -> str:
    if packed.tenant is None:
        return str(number)
    return _PART_OF_TENANT.render({"part": number, "tenant": text_reader(packed.tenant)(values)})


class Layouts(Remembered):
    """Events of a table whose layout a process knows to be the table's."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._events = set[Event]()

    def require(self, event: Event, *, puts: bool = False) -> None:
        """Refuse an event if the table has another layout; if it has none, it has this one from now on with `puts`."""
        if event in self._events:
            return
        declared, stored = _layout_of(event), self._stored(event.name)
        if stored is None and puts:
            key = {PK: {"S": schema.PACK_PREFIX + event.name}, SK: {"S": schema.LAYOUT}}
            item = bookkeeping_item(key, {_LAYOUT: declared})
            if not self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
                stored = self._stored(event.name)
        if stored not in (None, declared):
            allowed = f"what the table has for {event.name!r}, {stored}, instead of {declared}"
            cure = "a name keeps its layout: give the changed event another name"
            raise InvalidArgumentError("packed", event.packed, f"{allowed}; {cure}")
        if stored is not None or puts:
            self._events.add(event)

    def _stored(self, name: str) -> str | None:
        items = self._table.partition(schema.PACK_PREFIX + name, schema.LAYOUT)
        return next((item[_LAYOUT]["S"] for item in items), None)


def _layout_of(event: Event) -> str:
    """Return all that decides where an event lies, and for how long."""
    packed = event.packed
    assert packed is not None
    layout = {"pk": event.pk, "sk": event.sk, "time": packed.time, "bucket": packed._bucket_seconds}
    layout |= {"parts": packed.parts, "partition_by": packed.partition_by, "tenant": packed.tenant}
    retention = None if event.retention is None else event.retention.total_seconds()
    return json.dumps({**layout, "retention": retention})


class PageLevels(Remembered):
    """Levels of one table's pages: guesses, which a page that is read corrects."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._levels: dict[tuple[str, str, int], int] = {}
        self._latest: dict[tuple[str, str], int] = {}
        # Pages whose level is known to be less only because another one is not there.
        self._guessed: set[tuple[str, str, int]] = set()
        # Pages that are not there, though the page that each has split off from says so.
        self._lost: set[tuple[str, str, int]] = set()

    def clear(self) -> None:
        """Forget all pages, as a name may have been emptied and filled anew."""
        self.__init__(self._table)  # type: ignore[misc]

    def locate(self, name: str, shelf: str, number: int) -> Page:
        """Return the page in which a hash lies as far as is known; an unknown level is taken to be the latest."""
        levels, latest = self._levels, self._latest.get((name, shelf), 0)
        # Pages differ by few levels: one that is known may hold it all the same.
        keys = ((level, (name, shelf, _first(number, level))) for level in range(latest + 3))
        level = next((level for level, key in keys if levels.get(key) == level), latest)
        while (current := levels.get((name, shelf, _first(number, level)), level)) > level:
            # On to the page that split off before the hashes part.
            level = min(current, BITS + 1 - (number ^ _first(number, level)).bit_length())
        first = _first(number, level)
        return Page(shelf, first, level, (name, shelf, first) in self._lost)

    def learn(self, name: str, page: Page, item: Mapping[str, Any] | None) -> bool:
        """Take note of a page that was read; return whether it is there at the level that was guessed."""
        # The page of level 0 is there before its first update. One that is not there, though it has split off, has
        # expired, or a restore lacks it: the next update creates it.
        key = (name, page.shelf, page.first)
        if item or not page.first:
            self._lost.discard(key)
            self._note(key, level_of(item or {}))
            return level_of(item or {}) == page.level
        # At this level it came into being: it begins with so many bits, of which the last is 1.
        born = BITS + 1 - (page.first & -page.first).bit_length()
        before = (name, page.shelf, _first(page.first, born - 1))
        self._levels.pop(key, None)
        if self._levels.get(before, 0) >= born and before not in self._guessed:
            self._lost.add(key)
            return page.is_lost
        # Its groups are still with the page that it is to split off from, of whatever level.
        self._note(before, born - 1, is_guess=True)
        return False

    def _note(self, page: tuple[str, str, int], level: int, *, is_guess: bool = False) -> None:
        if len(self._levels) >= _MOST_PAGES:
            self.clear()
        self._levels[page] = self._latest[page[:2]] = level
        (self._guessed.add if is_guess else self._guessed.discard)(page)


def _first(number: int, level: int) -> int:
    """Return the first hash that begins with as many bits of another."""
    return number >> BITS - level << BITS - level
