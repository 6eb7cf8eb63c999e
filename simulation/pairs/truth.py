"""Groups as they must be, and verdicts that verifications may give: from items, stream and ledger alone.

A group is the sum of what its items show now, and of what has expired, or was erased with its count kept, and stays
counted since its generation was opened; less what waits in quarantine. A counter's is what calls have added and taken.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from dynamodb_counters._control.control import Status, read_control
from dynamodb_counters._declarations import Aggregate, Declaration, Direct, Items
from dynamodb_counters._declarations.groups import base_name, generation_number
from dynamodb_counters._items.bookkeeping import is_discarded, stored_marks
from dynamodb_counters._items.table_schema import SCORE
from dynamodb_counters._quarantine.quarantine import read_quarantine_item, unpack
from dynamodb_counters._table import Table
from simulation.clock import EPOCH
from simulation.memory.memory_stream import Record
from simulation.oracle.chunks import ROW_SIGNS, rows_of
from simulation.oracle.eras import HISTORY_KEY, decoded, entries_of
from simulation.oracle.specs import UNCOUNTABLE
from simulation.oracle.truth import is_expiry
from simulation.pairs.cuts import Cuts, Image
from simulation.pairs.declared import subject_of
from simulation.pairs.ledger import Ledger
from simulation.pairs.subjects import ORDER, Group, Parts, Values
from simulation.schedules.backend import Backend

Groups = dict[Group, Parts]

_SIGNS: Final = {"NewImage": 1, "OldImage": -1}

Shown = list[tuple[Values, int]]
"""Events of an image, each with its sign."""


@dataclass(frozen=True)
class _Entry:
    """An image in quarantine, and the declarations that have not counted it; all of them if there are no names.

    An image that `has_gone` has expired, or was erased with its counts kept.
    """

    names: frozenset[str]
    image: Image
    sign: int
    state: str
    has_gone: bool


class Truth(Cuts):
    """The truth of one table as it stands now, by generations."""

    def __init__(self, backend: Backend, ledger: Ledger) -> None:
        super().__init__(backend)
        self._ledger = ledger
        self._by_digest = dict(self._read_deployments())
        self._eras = self._read_eras()
        self._entries = list(self._read_entries())
        self._gone = list(self._read_gone())
        table = Table(backend.name, backend.client, clock=backend.clock)
        control = read_control(table)
        self.statuses: Mapping[str, Status] = control.statuses
        history = control.history
        folded = self._by_digest.get(history.last.deployment, {}) if history else {}
        self.folded: Mapping[str, Declaration] = folded

    def read_names(self) -> set[str]:
        """The generations that readers use."""
        return {name for name in self.folded if generation_number(name) == self._reads(base_name(name))}

    def names_of(self, run: str) -> list[str]:
        """The generations that a run is about."""
        return [str(name) for name in unpack({"S": f'{{"names": {self._run_items[run]["names"]["S"]}}}'})["names"]]

    def waits(self, name: str, *, ever: bool = False, deltas: bool = True) -> bool:
        """Whether entries of the quarantine wait for a generation, or have ever done so."""
        entries = [entry for entry in self._entries if (ever or entry.state == "waiting") and (deltas or entry.sign)]
        return any(name in entry.names or not entry.names for entry in entries)

    def lack(self, name: str, group: Group, run: str) -> Parts:
        """Parts of a group's source that it lacks: what was spoiled, or had expired or been erased at a run's cut.

        What goes later is no concern of the run: its log says that the group counts it.
        """
        declaration = self.folded[name]
        groups: defaultdict[Group, Parts] = defaultdict(dict)
        _add_all(groups, [(group, self._ledger.spoiled.get((name, group), {}))], -1)
        if not isinstance(declaration.source, Aggregate):
            for image, sign in self._kept(declaration, run):
                added = _added(declaration, image)
                _add_all(groups, [(place, ranked(declaration, parts)) for place, parts in added], -sign)
        return nonzero(groups[group])

    def must_wait(self, declaration: Declaration) -> Counter[str]:
        """Orders whose images wait for a declaration: those that are there, and those that expired and would count."""
        found: Counter[str] = Counter()
        if declaration.source == ORDER:
            expired = [image for image, _ in self._kept(declaration)]
            found.update(item["pk"]["S"] for item in (*self._items, *expired) if _is_malformed(declaration, item))
        return found

    def orders_waiting(self, name: str) -> Counter[str]:
        """Orders whose images wait: one of before a correction cancels what it corrects."""
        found: Counter[str] = Counter()
        for entry in self._entries:
            is_order = "customer" in entry.image and "_type" not in entry.image
            if is_order and entry.state == "waiting" and (name in entry.names or not entry.names):
                found[entry.image["pk"]["S"]] += entry.sign
        return Counter({key: count for key, count in found.items() if count})

    def may_have_expired(self, name: str) -> bool:
        """Whether an event may be gone that still counts: not before its retention is over, unless one was erased."""
        declaration = self.folded[name]
        source = declaration.source
        if declaration.on_expiry != "keep" or isinstance(source, Aggregate | Direct):
            return False
        if any(_events_of(image, declaration) for image, _ in self._kept(declaration)):
            return True
        if isinstance(source, Items):
            seen = [*self._items, *(record["dynamodb"].get("OldImage") or {} for _, record in self._history)]
            return any("ttl" in item for item in seen if "_type" not in item)
        # The table may be older than the first record that the stream still has.
        return source.retention is not None and EPOCH + source.retention.total_seconds() <= self._backend.clock()

    def group_of(self, declaration: Declaration, values: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(values[field] for field in declaration.fields if field in values)

    # Groups

    def of(self, declaration: Declaration) -> Groups:
        groups: defaultdict[Group, Parts] = defaultdict(dict)
        if isinstance(declaration.source, Direct):
            self._add_direct(groups, declaration)
        elif isinstance(declaration.source, Aggregate):
            self._add_groups(groups, declaration, declaration.source, self.of(declaration.source))
        else:
            self._add_events(groups, declaration)
        for (name, group), parts in self._ledger.spoiled.items():
            counts = {each: number for each, number in parts.items() if each != SCORE}
            _add_all(groups, [(group, counts)] if name == declaration.name else [], 1)
        return {group: kept for group, parts in groups.items() if (kept := nonzero(parts))}

    def filled(self, declaration: Declaration, read: Mapping[str, Declaration], changed: Collection[str]) -> Groups:
        """The groups as a backfill would fill them now; groups of what is not `changed` are counted as they are."""
        groups: defaultdict[Group, Parts] = defaultdict(dict)
        source: Any = declaration.source
        if isinstance(source, Aggregate):
            name = base_name(source.name)
            below = self.filled(source, read, changed) if name in changed else self.of(read[name])
            self._add_groups(groups, declaration, source, below)
        else:
            for item in self._items:
                _add_all(groups, _added(declaration, item), 1)
        return {group: kept for group, parts in groups.items() if (kept := nonzero(parts))}

    def _add_groups(
        self, groups: defaultdict[Group, Parts], declaration: Declaration, below: Aggregate, groups_below: Groups
    ) -> None:
        subject = subject_of(declaration)
        if subject.together is not None:
            _add_all(groups, subject.together(groups_below), 1)
            return
        for group, parts in groups_below.items():
            zero = dict.fromkeys(below._attributes, Decimal(0))
            values = {**zero, **parts, **dict(zip(below.fields, group, strict=True))}
            _add_all(groups, subject.counted(values), 1)

    def _add_events(self, groups: defaultdict[Group, Parts], declaration: Declaration) -> None:
        """Add what items show, what has expired and is kept, less what waits."""
        for item in self._items:
            _add_all(groups, _added(declaration, item), 1)
        for image, sign in self._kept(declaration):
            _add_all(groups, _added(declaration, image), sign)
        for entry in self._entries:
            # A discarded image has left its item, too, or its item says so.
            keeps = entry.has_gone and declaration.on_expiry != "subtract"
            if (declaration.name in entry.names or not entry.names) and entry.state == "waiting" and not keeps:
                _add_all(groups, _added(declaration, entry.image), -entry.sign)

    def _kept(self, declaration: Declaration, run: str = "") -> Iterator[tuple[Image, int]]:
        """Images that have gone since a generation was opened, and that it keeps counted; up to a run's cut."""
        if declaration.on_expiry != "keep":
            return
        until = float(self._run_items[run]["since"]["N"]) if run else math.inf
        for shard, record, images in self._gone:
            if self._since(declaration.name, shard, record) and not (run and self._past(run, until, shard, record)):
                yield from images

    def expired_before(self, declaration: Declaration, applied: Callable[[str], str]) -> Iterator[tuple[Group, Parts]]:
        """Contributions, still counted, of what had gone at a position: the last record of each shard."""
        for shard, record, images in self._gone if declaration.on_expiry == "keep" else ():
            is_before = record["dynamodb"]["SequenceNumber"].zfill(40) <= applied(shard)
            if is_before and self._since(declaration.name, shard, record):
                for image, sign in images:
                    for group, parts in _added(declaration, image):
                        yield group, {name: sign * part for name, part in parts.items()}

    def _add_direct(self, groups: defaultdict[Group, Parts], declaration: Declaration) -> None:
        for (name, (pk, sk)), parts in self._ledger.direct.items():
            if name == declaration.name:
                values = {**declaration._pk_template.parse(pk), **declaration._sk_template.parse(sk)}
                _add_all(groups, [(tuple(values[field] for field in declaration.fields), parts)], 1)

    # The table

    def judged(self) -> Iterator[tuple[Record, Mapping[str, Declaration]]]:
        """Each record, with the declarations of its time; that of a run begins at the run's cut."""
        for shard, record in self._history:
            created = float(record["dynamodb"]["ApproximateCreationDateTime"])
            past = [
                folded
                for since, folded, run in self._eras
                if (self._past(run, since, shard, record) if run else since <= created)
            ]
            yield record, past[-1] if past else {}

    def items_of(self, kind: str) -> list[Image]:
        return [item for item in self._items if item.get("_type") == {"S": kind}]

    def _reads(self, base: str) -> int:
        return self.statuses.get(base, Status()).reads

    def _read_deployments(self) -> Iterator[tuple[str, dict[str, Declaration]]]:
        for item in self._items:
            if item["pk"] == HISTORY_KEY["pk"] and item["sk"]["S"].startswith("DEPLOYMENT#"):
                declared = decoded(item["declarations"]["S"])
                yield item["sk"]["S"].removeprefix("DEPLOYMENT#"), {each.name: each for each in declared}

    def _read_eras(self) -> list[tuple[int, dict[str, Declaration], str]]:
        """All eras there were: one that is in force is never changed, and at the end of the list it goes with time."""
        versions = [
            entries_of(record["dynamodb"].get("NewImage") or {})
            for _, record in self._history
            if record["dynamodb"]["Keys"] == HISTORY_KEY
        ]
        entries: list[tuple[int, str]] = []
        for version in reversed(versions):
            entries = [*(entry for entry in version if not entries or entry[0] < entries[0][0]), *entries]
        parts = [(since, *digest.partition(":")) for since, digest in entries]
        return [(since, self._by_digest.get(digest, {}), run) for since, digest, _, run in parts]

    def _read_entries(self) -> Iterator[_Entry]:
        for item in self._items:
            if item.get("_type") != {"S": "quarantine"} or "state" not in item:
                # Without a state, its event was erased.
                continue
            entry = read_quarantine_item(item)
            content: Any = entry.content
            while (content.get("dynamodb", {}).get("NewImage") or {}).get("_type") == {"S": "quarantine"}:
                # Redriven, and in quarantine again.
                content = unpack(content["dynamodb"]["NewImage"]["record"])
            if "numbers" in content:
                # A delta that its item could not take.
                yield _Entry(frozenset(entry.names), {}, 0, item["state"]["S"], has_gone=False)
            for name, sign in _SIGNS.items():
                if image := content.get("dynamodb", {}).get(name):
                    has_gone = sign < 0 and ("_erased" in image or is_expiry(content))
                    yield _Entry(frozenset(entry.names), image, sign, item["state"]["S"], has_gone)

    def _read_gone(self) -> Iterator[tuple[str, Record, Shown]]:
        """Expiries, and erasures that keep counts: images, each with a sign."""
        for shard, record in self._history:
            change = record["dynamodb"]
            new, old = change.get("NewImage") or {}, change.get("OldImage") or {}
            if is_expiry(record):
                yield shard, record, [(old, 1)]
            elif "_chunk" in new and "_chunk" in old and (lost := _lost(old, new)):
                yield shard, record, lost


def _lost(old: Image, new: Image) -> list[tuple[Image, int]]:
    """The rows that were taken out of a chunk, as images of events."""
    # A chunk's columns, and so the attributes of a row, have no order of their own.
    left = Counter(repr((mark, sorted(values.items()))) for mark, values in rows_of(new))
    lost: list[tuple[Image, int]] = []
    for mark, values in rows_of(old):
        if left[row := repr((mark, sorted(values.items())))]:
            left[row] -= 1
        elif mark in ROW_SIGNS:
            lost.append(({"_type": {"S": old["_type"]["S"].removesuffix("#pack")}, "_row": values}, ROW_SIGNS[mark]))
    return lost


def _events_of(item: Image, declaration: Declaration) -> Shown:
    """The events of its source that an item holds."""
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


def _added(declaration: Declaration, item: Image) -> list[tuple[Group, Parts]]:
    """Contributions of an item, by group; none where it cannot be counted."""
    found: list[tuple[Group, Parts]] = []
    if is_discarded(declaration.name, item, stored_marks(item)):
        return found
    subject = subject_of(declaration)
    for values, sign in _events_of(item, subject.declaration):
        try:
            counted = subject.counted(values)
        except UNCOUNTABLE:
            continue
        except TypeError:
            # A text compares with no number.
            continue
        found += [(group, {name: sign * part for name, part in parts.items()}) for group, parts in counted]
    return found


def _is_malformed(declaration: Declaration, item: Image) -> bool:
    """Whether an item cannot be counted, and was not discarded."""
    if is_discarded(declaration.name, item, stored_marks(item)):
        return False
    try:
        for values, _ in _events_of(item, declaration):
            subject_of(declaration).counted(values)
    except (InvalidOperation, TypeError):
        return True
    return False


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
    return [_plain(each) for each in content] if kind == "L" else content


def _add_all(groups: defaultdict[Group, Parts], added: Iterable[tuple[Group, Parts]], sign: int) -> None:
    for group, parts in added:
        held = groups[group]
        for name, part in parts.items():
            held[name] = held.get(name, Decimal(0)) + sign * part


def nonzero(parts: Parts) -> Parts:
    return {name: number for name, number in parts.items() if number}
