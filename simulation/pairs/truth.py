"""Groups as they must be, and statuses that verifications may give: from items, stream and ledger alone.

A group is the sum of what its items show now by the definition that is registered, and of what has expired, or was
erased with its count kept, and stays counted since the name's cut; less what waits in quarantine for the name. A
counter's is what calls have added and taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from counters_lambda.counting.run_logs import RUN_SK_PREFIX
from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Event, Items, Window
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._items.schema import CHECKPOINT_PREFIX, SCORE
from dynamodb_counters._quarantine import UNREADABLE, read_quarantine_item, unpack
from simulation.aws.sigv4 import LATEST
from simulation.memory.memory_stream import Record
from simulation.oracle.aggregates import (
    DAY_BUCKET,
    UNCOUNTABLE,
    Counted,
    Group,
    Groups,
    Parts,
    Row,
    add_all,
    added,
    added_by_groups,
)
from simulation.oracle.layout import ROW_SIGNS, Entry, entry_of, is_expiry, rows_of
from simulation.pairs.apart import Apart, Backend
from simulation.pairs.declared import ORDER, own
from simulation.pairs.function import fails
from simulation.pairs.ledger import Ledger, Numbers, Place

_RUN: Final = "CHECKPOINT#run~"
ENTRY: Final = "DECLARED#"
LATER: Final = '[{"": "Later"}]'
"""A definition by a later version."""

_DISORDER: Final = 4.0
"""Seconds by which records near a cut may be on its other side: clocks of records, and that they are whole."""

_decoded: Final = lru_cache(1024)(decode)

Image = Mapping[str, Any]


@dataclass(frozen=True)
class Registered:
    """An entry of the registry: a declaration, or a threshold that `watches` an aggregate."""

    name: str
    declaration: Any
    state: str
    at: float
    since: float
    run: str
    is_dropped: bool
    is_fresh: bool
    watches: str

    @classmethod
    def of(cls, item: Image) -> Registered:
        [declaration] = _decoded(item["definition"]["S"])
        at, since = (float(item[name]["N"]) for name in ("at", "since"))
        is_dropped, is_fresh = (bool(item[name]["BOOL"]) for name in ("dropped", "fresh"))
        name, state = item["sk"]["S"].removeprefix(ENTRY), item["state"]["S"]
        return cls(name, declaration, state, at, since, item["run"]["S"], is_dropped, is_fresh, item["watches"]["S"])


@dataclass(frozen=True)
class Position:
    """Where a record lies."""

    shard: str
    sequence: str
    created: float

    @classmethod
    def of(cls, shard: str, record: Record) -> Position:
        change = record["dynamodb"]
        sequence = str(change["SequenceNumber"]).zfill(40)
        return cls(shard, sequence, float(change["ApproximateCreationDateTime"]))


def is_entry(key: Image) -> bool:
    """Return whether an item with this key is an entry of the registry."""
    return key["pk"] == {"S": CHECKPOINT_PREFIX} and bool(key["sk"]["S"].startswith(ENTRY))


class Cuts:
    """State of a table and its stream; `wrong` names runs with records on the wrong side of their cuts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.now = backend.clock()
        self._items = list(backend.items())
        self.history = [(Position.of(shard, record), record) for shard, record in backend.history()]
        self._run_items: dict[str, Image] = {}
        self._cuts: dict[tuple[str, str], str] = {}
        self.entries: dict[str, Registered] = {}
        """What is registered, by name."""
        self.thresholds: list[Registered] = []
        self._read()
        self.wrong: list[str] = []
        self._check_cuts()

    def phase(self, run: str) -> str:
        item = self._run_items.get(run)
        return "" if item is None else str(item["phase"]["S"])

    def complete(self) -> set[str]:
        """Return the names that readers may rely on."""
        return {name for name, entry in self.entries.items() if entry.state == "complete"}

    def _read(self) -> None:
        for item in self._items:
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if pk.startswith(_RUN) and sk.startswith("CUT#"):
                self._cuts[pk.removeprefix(_RUN), item["shard"]["S"]] = item["cut"]["S"]
            elif pk == CHECKPOINT_PREFIX and sk.startswith(RUN_SK_PREFIX):
                self._run_items[sk.removeprefix(RUN_SK_PREFIX)] = item
            elif pk == CHECKPOINT_PREFIX and sk.startswith(ENTRY) and item["definition"]["S"] != LATER:
                entry = Registered.of(item)
                if entry.watches:
                    self.thresholds.append(entry)
                else:
                    self.entries[entry.name] = entry

    def counts(self, name: str, position: Position) -> bool:
        """Return whether a name counts a record: whether it comes after the cut of the run that has filled the name."""
        entry = self.entries.get(name)
        return (
            entry is not None
            and entry.state != "waiting"
            and (not entry.run or self._past(entry.run, entry.since, position))
        )

    def _past(self, run: str, since: float, position: Position) -> bool:
        cut = self._cuts.get((run, position.shard))
        if cut is None:
            return position.created >= since
        # The cut may not have been written yet when a record so late came; a record after it may have written it.
        return position.sequence >= cut or position.created >= since + SKEW

    def _check_cuts(self) -> None:
        for run, item in self._run_items.items():
            if item["kind"]["S"] != "backfill" or self.phase(run) != "complete":
                continue
            since = float(item["since"]["N"])
            for position, _ in self.history:
                ahead = position.created - since
                if abs(ahead) > _DISORDER and self._past(run, since, position) != (ahead > 0):
                    self.wrong.append(f"run {run}: a record {ahead:.0f} s from its cut is on the wrong side of it")
                    return


_SIGNS: Final = {"NewImage": 1, "OldImage": -1}
IsSpoiled: TypeAlias = Callable[[Declaration], bool]

_LEAST_SECONDS: Final = 2 * 86_400 - LATEST
"""An entry stays for two days from when it was sent."""

_SCANNED: Final = "run~"
"""Comes before a run's id in the place of a shard, where its scan has met an image."""

Signed = list[tuple[Row, int]]
"""Events of an image, each with its sign."""

"""What identifies an item, and what it adds to a group."""


@dataclass(frozen=True)
class _Entry:
    """An image in quarantine, and the declarations that have not counted it; all of them if there are no names.

    An image that `has_gone` has expired, or was erased with its counts kept; the record that was put aside lies at
    `position`.
    """

    names: frozenset[str]
    image: Image
    sign: int
    state: str
    has_gone: bool
    position: Position


class Truth(Cuts):
    """The truth of one table as it stands now, by names."""

    def __init__(self, backend: Backend, ledger: Ledger) -> None:
        super().__init__(backend)
        self._ledger = ledger
        self.registered: Mapping[str, Declaration] = {name: entry.declaration for name, entry in self.entries.items()}
        self.spoiled: Mapping[Place, Numbers] = {
            place: numbers for (place, run), numbers in ledger.spoiled.items() if run == self.run_of(place[0])
        }
        """What was added to groups since their names were filled."""
        self._entries = list(self._read_entries())
        self._removals = list(self._read_removals())

    def run_of(self, name: str) -> str:
        """Return the run that has filled a name; "" if it counts from the founding on."""
        return self.entries[name].run if name in self.entries else "?"

    def names_of(self, run: str) -> list[str]:
        """Return the names that a run is about."""
        filled = [name for name, entry in self.entries.items() if entry.run == run]
        return filled or [str(name) for name in unpack({"S": f'{{"_": {self._run_items[run]["names"]["S"]}}}'})["_"]]

    def opened_at(self, run: str) -> float:
        return float(self._run_items[run]["since"]["N"])

    def waits(self, name: str, *, ever: bool = False, deltas: bool = True) -> bool:
        """Return whether entries of the quarantine would add to a name; or were for it, if `ever`."""
        for entry in self._entries:
            if entry.sign == 0 and (not deltas or not (entry.names & {name})):
                continue
            if ever and (name in entry.names or not entry.names):
                return True
            if self._awaits(entry, name) and (not entry.sign or added_by_image(self.registered[name], entry.image)):
                return True
        return False

    def _awaits(self, entry: _Entry, name: str) -> bool:
        """Return whether an entry waits for a name, which has not met what it holds in its backfill."""
        return entry.state == "waiting" and self._lacks(name, entry)

    def _lacks(self, name: str, entry: _Entry) -> bool:
        """Return whether a name has not counted what an entry holds."""
        if entry.names and name not in entry.names:
            return False
        if entry.position.shard.startswith(_SCANNED):
            return entry.position.shard == _SCANNED + self.run_of(name)
        return self.counts(name, entry.position)

    def waiting_in_vain(self) -> list[str]:
        """Return the names for which an entry waits although the name's backfill has met what it holds."""
        waiting = [entry for entry in self._entries if entry.state == "waiting"]
        return sorted(
            {name for entry in waiting for name in entry.names & self.complete() if not self._awaits(entry, name)}
        )

    def lack(self, name: str, group: Group, run: str) -> Parts:
        """Parts of a group's source that it lacks: what was spoiled, or had expired or been erased at a run's cut.

        What goes later is no concern of the run: its log says that the group counts it.
        """
        declaration = self.registered[name]
        groups: Groups = {}
        add_all(groups, [(group, self.spoiled.get((name, group), {}))], -1)
        if not isinstance(declaration.source, Aggregate):
            for image, sign in self._kept_images(declaration, run):
                counted = added_by_image(declaration, image)
                add_all(groups, [(place, ranked(declaration, parts)) for place, parts in counted], -sign)
        return nonzero(groups[group])

    def must_wait(self, declaration: Declaration) -> Counter[str]:
        """Orders whose images wait for a declaration: those that are there, and those that expired and would count."""
        orders: Counter[str] = Counter()
        if declaration.source.name == ORDER.name:
            expired = [image for image, _ in self._kept_images(declaration)]
            for item in (*self._items, *expired):
                events = _events_of(item, declaration)
                if not all(_is_countable(own(declaration), values) for values, _ in events):
                    orders[item["pk"]["S"]] += 1
        return orders

    def orders_waiting(self, name: str) -> Counter[str]:
        """Orders whose images wait, or were given up: one of before a correction cancels what it corrects."""
        orders: Counter[str] = Counter()
        for entry in self._entries:
            is_order = "customer" in entry.image and "_type" not in entry.image
            if is_order and entry.state in ("waiting", "discarded") and self._lacks(name, entry):
                orders[entry.image["pk"]["S"]] += entry.sign
        return Counter({key: count for key, count in orders.items() if count})

    def misplaced(self, is_spoiled: IsSpoiled, fails_for: str) -> Iterator[str]:
        """Images that wait for a name that can count them, or do not wait for one that cannot."""
        # A name that no run has filled counts from the founding on, so each record has met it.
        oldest = [name for name, entry in self.entries.items() if entry.state == "complete" and not entry.run]
        counted = [own(self.registered[name]) for name in oldest if not is_spoiled(self.registered[name])]
        waiting: dict[Entry, frozenset[str] | None] = {}
        since: dict[str, float] = {}
        for position, record in self.history:
            change = record["dynamodb"]
            image, key = change.get("NewImage") or change["OldImage"], str(change["Keys"])
            if image.get("_type") != {"S": "quarantine"}:
                continue
            if record["eventName"] == "INSERT":
                since[key] = position.created
                waiting[entry_of(image["sk"]["S"])] = frozenset(image["names"]["SS"]) if "names" in image else None
            elif is_expiry(record) and position.created - since.get(key, 0) < _LEAST_SECONDS:
                yield f"quarantine: {key} expired after {position.created - since[key]:.0f} s"
        for position, record in self.history:
            for declaration in counted:
                for name, values in _images_of(record, declaration):
                    names = waiting.get((position.shard, position.sequence, name), frozenset())
                    waits = names is None or declaration.name in names
                    may_wait = declaration.name == fails_for and fails(values)
                    if not may_wait and waits == _is_countable(declaration, values, position.created):
                        text = "waits for no reason" if waits else "does not wait"
                        yield f"quarantine: {name} at {position} {text}: {declaration.name}"

    def may_have_expired(self, name: str) -> bool:
        """Return whether a group that holds more than its sources may be unknown: an event of it may be gone."""
        if self.exceeds(name):
            return True
        declaration = self.registered[name]
        images = [*self._items, *(record["dynamodb"].get("OldImage") or {} for _, record in self.history)]
        is_kept = declaration.on_expiry == "keep" and isinstance(declaration.source, Items)
        return is_kept and any("ttl" in item for item in images if "_type" not in item)

    def exceeds(self, name: str, run: str = "") -> bool:
        """Return whether such a group must be: its events expire, or one was gone, by a run's cut, and still counts."""
        declaration = self.registered[name]
        # A definition says nothing of how long events stay.
        source = own(declaration).source
        if declaration.on_expiry != "keep" or isinstance(source, Direct):
            return False
        if isinstance(source, Event | Aggregate) and source.retention is not None:
            return True
        is_below = isinstance(source, Aggregate)
        return not is_below and any(_events_of(image, declaration) for image, _ in self._kept_images(declaration, run))

    def group_of(self, declaration: Declaration, values: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(values[field] for field in declaration.fields if field in values)

    # Groups

    def of(self, declaration: Declaration) -> Groups:
        groups: Groups = {}
        source: Any = declaration.source
        if isinstance(source, Direct):
            self._add_direct(groups, declaration)
        elif isinstance(source, Aggregate):
            add_all(groups, [(group, parts) for _, group, parts in added_by_groups(own(declaration), self.of(source))])
        else:
            self._add_events(groups, declaration)
        for (name, group), parts in self.spoiled.items():
            counts = {key: number for key, number in parts.items() if key != SCORE}
            add_all(groups, [(group, counts)] if name == declaration.name else [])
        return {
            group: numbers
            for group, parts in groups.items()
            if (numbers := nonzero(parts)) and not self.is_closed(declaration, group)
        }

    def is_closed(self, declaration: Declaration, group: Group) -> bool:
        """Return whether the retention of a window's bucket is over."""
        if not isinstance(declaration, Window) or declaration.retention is None:
            return False
        is_day = group[-1].startswith(DAY_BUCKET)
        end = int(group[-1].removeprefix(DAY_BUCKET)) + (24 if is_day else 1) * 3600
        return end + declaration.retention.total_seconds() <= self._backend.clock()

    def _add_events(self, groups: Groups, declaration: Declaration) -> None:
        """Add what items show, what has expired and is kept, less what waits."""
        for item in self._items:
            add_all(groups, added_by_image(declaration, item))
        for image, sign in self._kept_images(declaration):
            add_all(groups, added_by_image(declaration, image), sign)
        for entry in self._entries:
            keeps = entry.has_gone and declaration.on_expiry != "subtract"
            if not keeps and self._awaits(entry, declaration.name):
                add_all(groups, added_by_image(declaration, entry.image), -entry.sign)

    def _kept_images(self, declaration: Declaration, run: str = "") -> Iterator[tuple[Image, int]]:
        """Images that have gone since a name's cut, and that it keeps counted; up to another run's cut."""
        if declaration.on_expiry != "keep":
            return
        until = self.opened_at(run) if run else math.inf
        for position, images in self._removals:
            if self.counts(declaration.name, position) and not (run and self._past(run, until, position)):
                yield from images

    def _add_direct(self, groups: Groups, declaration: Declaration) -> None:
        for (name, (pk, sk)), parts in self._ledger.direct.items():
            if name == declaration.name:
                values = {**declaration._pk_template.parse(pk), **declaration._sk_template.parse(sk)}
                add_all(groups, [(tuple(values[field] for field in declaration.fields), parts)])

    # The table

    def items_of(self, kind: str) -> list[Image]:
        return [item for item in self._items if item.get("_type") == {"S": kind}]

    def types(self) -> set[str]:
        """Return the types of all items."""
        return {item["_type"]["S"] for item in self._items if "_type" in item}

    def _read_entries(self) -> Iterator[_Entry]:
        redrives = {
            (position.shard, position.sequence): record["dynamodb"]["NewImage"]
            for position, record in self.history
            if (record["dynamodb"].get("NewImage") or {}).get("_type") == {"S": "quarantine"}
        }
        for item in self._items:
            if item.get("_type") != {"S": "quarantine"} or "state" not in item:
                # Without a state, its event was erased.
                continue
            entry = read_quarantine_item(item)
            content: Any = _first(entry.content)
            created = content.get("created") or content.get("dynamodb", {}).get("ApproximateCreationDateTime")
            place = _place(item)
            while place in redrives:
                place = _place(redrives[place])
            position = Position(*place, float(created or 0))
            if "numbers" in content:
                # A delta that its item could not take.
                yield _Entry(frozenset({content["name"]}), {}, 0, item["state"]["S"], has_gone=False, position=position)
            for name, sign in _SIGNS.items():
                if image := content.get("dynamodb", {}).get(name):
                    has_gone = sign < 0 and ("_erased" in image or is_expiry(content))
                    if isinstance(self._backend, Apart) and not self._backend.is_own(content):
                        has_gone, image = sign < 0 and self._backend.has_expired(content), self._backend.ours(image)
                    names, state = frozenset(entry.names), item["state"]["S"]
                    yield _Entry(names, image, sign, state, has_gone=has_gone, position=position)

    def _read_removals(self) -> Iterator[tuple[Position, list[tuple[Image, int]]]]:
        """Expiries, and erasures that keep counts: images, each with a sign."""
        for position, record in self.history:
            change = record["dynamodb"]
            new, old = change.get("NewImage") or {}, change.get("OldImage") or {}
            if is_expiry(record):
                yield position, [(old, 1)]
            elif "_chunk" in new and "_chunk" in old and (images := _lost_rows(old, new)):
                yield position, images


def _images_of(record: Record, declaration: Any) -> Iterator[tuple[str, Row]]:
    """Yield the events that a record shows to a declaration, by the names of the entries that they would be."""
    images, source = record["dynamodb"], declaration.source
    if isinstance(source, Aggregate | Direct) or any("_erased" in (images.get(name) or {}) for name in _SIGNS):
        return
    for name in _SIGNS:
        image = images.get(name) or {}
        kind = image.get("_type", {}).get("S", "")
        if kind.endswith("#once") or (name == "OldImage" and is_expiry(record) and declaration.on_expiry == "keep"):
            continue
        if kind == f"{source.name}#pack":
            rows = [(index, values) for index, (mark, values) in enumerate(rows_of(image)) if mark in ROW_SIGNS]
            yield from ((f"{name}#{index}", values) for index, values in rows)
        elif image:
            yield from ((name, values) for values, _ in _events_of(image, declaration))


def _is_countable(declaration: Any, values: Row, created: float | None = None) -> bool:
    try:
        added(declaration, values, created)
    except UNCOUNTABLE:
        return False
    return True


def _first(content: Any) -> Any:
    """Return what was put aside at first of an entry that is in quarantine again; {} if it was spoiled."""
    # Other code's items may have the type as well.
    while (again := content.get("dynamodb", {}).get("NewImage") or {}).keys() & {"record", "sum"}:
        try:
            content = unpack(again["record"] if "record" in again else again["sum"])
        except UNREADABLE:
            return {}
    return content


def _place(item: Image) -> tuple[str, str]:
    """Return the shard, and the padded sequence number, of the record that an entry of the quarantine is of."""
    shard, sequence = item["sk"]["S"].split("#")[:2]
    return shard, sequence.zfill(40)


def _lost_rows(old: Image, new: Image) -> list[tuple[Image, int]]:
    """Return the rows that were taken out of a chunk, as images of events."""
    # A chunk's columns, and so the attributes of a row, have no order of their own.
    rest = Counter(repr((mark, sorted(values.items()))) for mark, values in rows_of(new))
    images: list[tuple[Image, int]] = []
    for mark, values in rows_of(old):
        if rest[row := repr((mark, sorted(values.items())))]:
            rest[row] -= 1
        elif mark in ROW_SIGNS:
            images.append(({"_type": {"S": old["_type"]["S"].removesuffix("#pack")}, "_row": values}, ROW_SIGNS[mark]))
    return images


def _events_of(item: Image, declaration: Declaration) -> Signed:
    """Return the events of its source that an item holds."""
    source: Any = declaration.source
    kind = item.get("_type", {}).get("S", "")
    if "_row" in item:
        return [(item["_row"], 1)] if kind == source.name else []
    if kind == f"{source.name}#pack":
        return [(values, ROW_SIGNS[mark]) for mark, values in rows_of(item) if mark in ROW_SIGNS]
    if source.name == "order":
        return [(_values(item), 1)] if not kind and "customer" in item else []
    # An event that a transaction has counted counts like any other.
    return [(_values(item), 1)] if kind in (source.name, f"{source.name}#once") else []


def added_by_image(declaration: Declaration, item: Image) -> Counted:
    """Contributions of an item, by group; none where it cannot be counted."""
    return [pair for values, sign in _events_of(item, declaration) for pair in _added_by(declaration, values, sign)]


def _added_by(declaration: Declaration, values: Row, sign: int) -> Counted:
    """Contributions of an event that an item shows."""
    try:
        counted = added(own(declaration), values)
    except UNCOUNTABLE:
        return []
    return [(group, {name: sign * part for name, part in parts.items()}) for group, parts in counted]


def ranked(declaration: Declaration, parts: Parts) -> Parts:
    """Parts with the score: it changes with the measure that groups are ranked by."""
    ranking = declaration.ranking if isinstance(declaration, Aggregate) else None
    return {**parts, SCORE: parts[ranking.measure]} if ranking is not None and ranking.measure in parts else parts


def _values(item: Image) -> dict[str, Any]:
    return {name: _plain(value) for name, value in item.items() if not name.startswith("_")}


def _plain(value: Mapping[str, Any]) -> Any:
    [(kind, content)] = value.items()
    if kind in ("N", "NULL"):
        return Decimal(content) if kind == "N" else None
    return [_plain(element) for element in content] if kind == "L" else content


def nonzero(parts: Parts) -> Parts:
    return {name: number for name, number in parts.items() if number}
