"""Effective declarations: the generations that count each name after a deployment, and whether definitions differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._declarations.aggregates import Aggregate, Counter
from dynamodb_counters._declarations.consistency import Declaration, require_consistent, share_items
from dynamodb_counters._declarations.groups import base_name, definition, generation, generation_number, read_name
from dynamodb_counters._declarations.sources import Direct, Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters.errors import InvalidArgumentError

_LIMITS: Final = {"_thresholds", "max_groups", "late", "future_tolerance", "precision", "longest"}
"""Settings that change nothing about what is counted as long as the rest is the same."""


def same_meaning(one: Declaration, two: Declaration, *, limits: bool = False) -> bool:
    """Whether two definitions count the same, whatever they are called; with `limits`, also within the same limits."""
    # Their sources are compared by name, `Items` by their keys and their condition.
    return one is two or bool(_meaning(one, limits=limits) == _meaning(two, limits=limits))


def fingerprint(declaration: Declaration) -> str:
    """A short text, the same for definitions that count the same within the same limits, whatever watches them."""
    unwatched = replace(declaration, _thresholds=()) if isinstance(declaration, Aggregate) else declaration
    text = json.dumps(_meaning(unwatched, limits=True), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same_items(one: Items, two: Items) -> bool:
    """Whether two sources are the same items, whatever they are called."""
    return bool(_items(one) == _items(two))


def _items(source: Items) -> Any:
    return _plain((source.where, source.pk, source.sk, source._table_keys))


def _meaning(declaration: Declaration, *, limits: bool) -> Any:
    plain = generation(declaration, 0)
    skipped = {"name", "source", "on_change", "tiers", *(() if limits else _LIMITS)}
    # Without defaults: an argument that a later version adds changes the meaning of nothing.
    told = [(each, getattr(plain, each.name)) for each in fields(plain) if each.name not in skipped]
    parts = {each.name: _plain(value) for each, value in told if value != each.default}
    if isinstance(plain, Window):
        parts["tiers"] = tuple(tier.name for tier in plain._kept_tiers)
    source = plain.source
    seen = _items(source) if isinstance(source, Items) else base_name(source.name)
    return type(plain).__name__, parts, type(source).__name__, seen


def _plain(value: Any) -> Any:
    """A value to compare by: True is not 1 here, and the order of measures does not matter."""
    if is_dataclass(value):
        return type(value).__name__, *(_plain(getattr(value, each.name)) for each in fields(value) if each.init)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return (bool, value) if isinstance(value, bool) else value


@dataclass(frozen=True, slots=True)
class Past:
    """The deployments that a table has stored, of which those that cannot be read are None."""

    deployments: tuple[tuple[Declaration, ...] | None, ...] = ()
    numbered: int = 0
    """The last generation's number, as far as the table shows."""

    @property
    def last_number(self) -> int:
        """No generation has a greater number."""
        return max([self.numbered, *(generation_number(each.name) for each in self._declarations())])

    def number(self, declared: Declaration, looks_at: str, *, keeps: bool) -> int:
        """The generation in which a declaration begins that is new to the table and `looks_at` an aggregate, or ""."""
        # Items outlive their declaration. One that comes back as it was begins in its own items; one whose keys and
        # name no declaration ever had, as declared; and any other in a generation of its own.
        own = [each for each in self._declarations() if base_name(each.name) == declared.name]
        last = self._last_alone(declared.name)
        held = [each for each in own if generation_number(each.name) == last]
        is_back = all(same_meaning(each, declared) for each in held) and (
            not looks_at or any(each.source.name == looks_at for each in held)
        )
        is_one_kind = all(isinstance(each.source, Direct) == isinstance(declared.source, Direct) for each in held)
        goes_on = not own or (keeps and is_one_kind) or is_back
        if None in self.deployments or not goes_on or self.is_taken(generation(declared, last)):
            return self.last_number + 1
        return last

    def is_taken(self, declared: Declaration) -> bool:
        """Whether there may be items of another declaration, or of an event, that have its keys or its name."""
        name = base_name(declared.name)
        for other in self._declarations():
            source = other.source
            if isinstance(source, Event) and (source.name == name or share_items(source, declared)):
                return True
            if base_name(other.name) != name and share_items(other, declared):
                return True
        return False

    def _declarations(self) -> Iterable[Declaration]:
        return (each for declarations in self.deployments for each in declarations or ())

    def _last_alone(self, name: str) -> int:
        """The last generation of a name that was counted without another: as a backfill counts."""
        found = [0]
        for declarations in self.deployments:
            numbers = [generation_number(each.name) for each in declarations or () if base_name(each.name) == name]
            found += numbers if len(numbers) == 1 else []
        return max(found)


_Key: TypeAlias = tuple[str, int]

# unchanged, new · adjusted: only limits differ · keep: the new definition goes on with the old one's numbers · waits:
# the old one counts on until a backfill · filling: a backfill of the new one is open · removed · needed: no longer
# declared, but something that waits counts it · refused.
Kind: TypeAlias = Literal["unchanged", "new", "adjusted", "keep", "waits", "filling", "removed", "needed", "refused"]


@dataclass(frozen=True, slots=True)
class Change:
    """Fate of a name."""

    kind: Kind
    before: Declaration | None
    """The definition that readers used, as it was declared."""
    after: Declaration | None
    """The declared definition."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """Declarations that a table folds after a deployment, sorted by name, and the fate of every name."""

    effective: tuple[Declaration, ...]
    changes: Mapping[str, Change]
    reads: Mapping[str, int]
    """The generation that readers use, if not 0."""

    @property
    def refused(self) -> dict[str, str]:
        """Why the deployment cannot take over, by name: then everything stays."""
        return {name: change.reason for name, change in self.changes.items() if change.kind == "refused"}


def merged(
    declared: Iterable[Declaration],
    effective: Iterable[Declaration],
    reads: Mapping[str, int] | None = None,
    past: Past = Past(),
) -> Merged:
    """Declarations folded once `declared` takes over from `effective`, of which readers use the generations `reads`."""
    # A new declaration begins in items that nothing in the `past` has written.
    declared, effective = tuple(declared), tuple(effective)
    held = {each.name: each for each in effective}
    past = Past((*past.deployments, effective), past.numbered)
    while True:
        merge = _Merge(declared, tuple(held.values()), reads or {}, past)
        found = merge.done()
        if found.refused:
            return replace(found, effective=tuple(sorted(effective, key=_key)), reads=dict(reads or {}))
        if not merge.void:
            return found
        held = {name: each for name, each in held.items() if name not in merge.void}


class _Merge:
    """One merge. A key is a base name with the number of a generation."""

    def __init__(
        self,
        declared: tuple[Declaration, ...],
        effective: tuple[Declaration, ...],
        reads: Mapping[str, int],
        past: Past,
    ) -> None:
        self.void: set[str] = set()
        """Statuses that are not read and that lost their source: the merge is to be done again without them."""
        self._policies = {each.name: each.on_change for each in declared}
        self._wanted = {each.name: definition(each) for each in declared}
        self._plain_sources = {each.source.name: each.source for each in declared}
        self._past = past
        self._promised = reads
        self._held: dict[str, dict[int, Declaration]] = {}
        for each in effective:
            self._held.setdefault(base_name(each.name), {})[generation_number(each.name)] = each
        self._reads = {name: reads.get(name, 0) for name in self._held}
        for name, numbers in self._held.items():
            if self._reads[name] not in numbers:
                self._reads[name] = min(numbers)
        self._new_items: dict[str, Items] = {}
        self._taken = {each.source.name for each in effective if isinstance(each.source, Items)}
        self._kinds: dict[str, Kind] = {}
        self._reasons: dict[str, str] = {}
        self._options: dict[_Key, tuple[Declaration, ...]] = {}
        for name in self._wanted:
            self._decide(name)
        self._built: dict[_Key, Declaration] = {}
        self._building: set[_Key] = set()

    def done(self) -> Merged:
        for key in list(self._options):
            self._try(key)
        self._require_consistent()
        for name, _ in self._built:
            self._kinds.setdefault(name, "needed")
        for name in self._held:
            self._kinds.setdefault(name, "removed")
        # Nothing may be read but what is folded, or will be.
        reads = [key for key in sorted(self._reads.items()) if key in self._built or self._kinds.get(key[0]) == "waits"]
        return Merged(
            tuple(self._built[key] for key in sorted(self._built)),
            {name: self._change(name) for name in sorted(self._kinds)},
            {name: number for name, number in reads if number},
        )

    def _decide(self, name: str) -> None:
        """Choose the generations of a name that stay, and by which definitions they may be folded, best first."""
        if name in self._kinds:
            return
        wanted, held = self._wanted[name], self._held.get(name, {})
        policy = self._policies[name]
        if not held:
            self._kinds[name] = "new"
            looks_at = self._read_source(wanted)
            # A declaration that waited for its source begins where it was to begin.
            read = self._promised.get(name, 0) or self._past.number(wanted, looks_at, keeps=policy == "keep")
            self._reads[name] = read
            self._options[name, read] = (wanted,)
            return
        read = self._reads[name]
        equal = {number for number, each in held.items() if same_meaning(each, wanted)}
        if equal:
            same: Kind = "unchanged" if same_meaning(held[read], wanted, limits=True) else "adjusted"
            self._kinds[name] = same if read in equal else "filling"
            self._options |= {(name, number): (wanted, held[number]) for number in equal}
        elif (isinstance(wanted.source, Direct) or isinstance(held[read].source, Direct)) and not (
            _keeps_items(wanted, held[read])
        ):
            self._kinds[name] = "refused"
            self._reasons[name] = "a Counter keeps its keys, and stays one: give the new declaration another name"
        elif policy == "keep" and not self._past.is_taken(generation(wanted, read)):
            self._kinds[name] = "keep"
            self._options[name, read] = (wanted, held[read])
        elif policy == "fail":
            self._kinds[name] = "refused"
            self._reasons[name] = "its definition has changed, and its on_change is 'fail'"
        else:
            self._kinds[name] = "waits"
        self._options.setdefault((name, read), (held[read],))

    def _read_source(self, declaration: Declaration) -> str:
        """Generation in use of the aggregate that a new declaration looks at; "" if it looks at none."""
        source = declaration.source
        if not isinstance(source, Aggregate):
            return ""
        if source.name in self._wanted:
            self._decide(source.name)
        return read_name(source.name, self._reads)

    def _try(self, key: _Key) -> None:
        name, number = key
        try:
            self._build(key)
        except InvalidArgumentError as error:
            if name not in self._held:
                self._kinds[name] = "waits"
            elif number == self._reads[name]:
                self._kinds[name] = "refused"
                self._reasons.setdefault(name, f"its old definition cannot go on: {error}")
            else:
                self.void.add(self._held[name][number].name)
            return
        if self._kinds[name] == "keep" and not same_meaning(self._built[key], self._wanted[name]):
            self._kinds[name] = "waits"

    def _build(self, key: _Key) -> Declaration:
        """The declaration of a generation, over that of its source; the first option that can be."""
        name, number = key
        if key in self._building:
            raise InvalidArgumentError("source", name, "an aggregate that does not count this one's groups")
        self._building.add(key)
        try:
            options = self._options.get(key) or (self._held[name][number],)
            for option in options:
                if key in self._built:
                    break
                try:
                    self._built[key] = generation(option, number, self._source(key, option))
                except InvalidArgumentError:
                    if option is options[-1]:
                        raise
        finally:
            self._building.discard(key)
        return self._built[key]

    def _source(self, key: _Key, option: Declaration) -> Event | Items | Aggregate | Direct:
        name, number = key
        source = option.source
        if isinstance(source, Direct):
            return source
        if isinstance(source, Items):
            return self._items(source)
        if isinstance(source, Event):
            declared = self._plain_sources.get(source.name)
            return declared if isinstance(declared, Event) else source
        base = base_name(source.name)
        looked_at = self._held[name][number].source.name if name in self._held else ""
        seen = (base, generation_number(looked_at))
        # A declaration in use keeps what it looks at: another generation's numbers are not those that it has counted.
        looks_on = base_name(looked_at) == base and seen[1] in self._held.get(base, {})
        if not looks_on or not self._stays(seen):
            if name in self._held and number != self._reads[name]:
                raise InvalidArgumentError("source", looked_at, "a generation that is still counted")
            if not looks_on:
                seen = (base, self._reads.get(base, 0))
        if not looks_on and not self._stays(seen):
            raise InvalidArgumentError("source", source.name, "an aggregate that is counted")
        found = self._build(seen)
        if isinstance(found, Window):
            raise InvalidArgumentError("source", base, "an aggregate, not a window")
        return found

    def _stays(self, key: _Key) -> bool:
        name, number = key
        return key in self._options if name in self._wanted else number in self._held.get(name, {})

    def _items(self, source: Items) -> Items:
        """Items declared by that name if they have the same condition; else the old one, under a name of its own."""
        declared = self._plain_sources.get(base_name(source.name))
        if declared is None or declared == source:
            return source
        if isinstance(declared, Items) and same_items(declared, source):
            return declared
        if generation_number(source.name):
            return source
        if source.name not in self._new_items:
            names = (f"{source.name}~{number}" for number in count(1))
            free = next(name for name in names if name not in self._taken)
            self._new_items[source.name] = replace(source, name=free)
        return self._new_items[source.name]

    def _require_consistent(self) -> None:
        """Refuse names whose generations would write items of others, which may go on under old definitions."""
        try:
            require_consistent(tuple(self._built.values()))
        except InvalidArgumentError:
            together: tuple[Declaration, ...] = ()
            added: tuple[Kind, ...] = ("new", "keep")
            for key in sorted(self._built, key=lambda key: (self._kinds.get(key[0]) in added, key)):
                try:
                    require_consistent((*together, self._built[key]), complete=False)
                except InvalidArgumentError as error:
                    self._kinds[key[0]] = "refused"
                    self._reasons[key[0]] = str(error)
                else:
                    together = (*together, self._built[key])

    def _change(self, name: str) -> Change:
        held = self._held.get(name)
        return Change(
            self._kinds[name],
            None if held is None else generation(held[self._reads[name]], 0),
            self._wanted.get(name),
            self._reasons.get(name, ""),
        )


def _keeps_items(one: Declaration, other: Declaration) -> bool:
    """Whether two are Counters with the same items."""
    if not (isinstance(one, Counter) and isinstance(other, Counter)):
        return False
    before = generation(other, 0)
    return (one.pk, one.sk, one.write_shards) == (before.pk, before.sk, before.write_shards)


def _key(declaration: Declaration) -> _Key:
    return base_name(declaration.name), generation_number(declaration.name)
