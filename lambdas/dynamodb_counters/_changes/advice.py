"""Advice on a deployment: what becomes of each name, for the aggregator's log, `counters diff` and the docs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dynamodb_counters._changes.effective import Change, Kind, Merged, same_meaning
from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.groups import base_name, root_of
from dynamodb_counters._declarations.sources import Direct, Event

_BACKFILL: Final = "counters backfill {name}"


class Advice(NamedTuple):
    """What a deployment does with a name, and what to do next."""

    title: str
    next: str = ""


_ADVICE: Final[dict[Kind, Advice]] = {
    "unchanged": Advice("unchanged"),
    "new": Advice("new", _BACKFILL),
    "adjusted": Advice("other limits or thresholds"),
    "keep": Advice("changed, in place", _BACKFILL),
    "waits": Advice("changed, waits for a backfill", _BACKFILL),
    "filling": Advice("changed, backfill open", _BACKFILL),
    "removed": Advice("removed", "counters drop {name}"),
    "needed": Advice("removed, still needed", "backfill what counts its groups"),
    "refused": Advice("refused", "do not deploy it: {reason}"),
}
_FIRST: Final = Advice("new", "if the table has items older than 24 hours, counters backfill {name}")
_FOLLOWS: Final = Advice("waits for a backfill of {root}", "counters backfill {root}")
_FOLLOWS_KEPT: Final = Advice("changes with {root}", "counters backfill {root}")
_REKEYED: Final = Advice("unchanged, but event {event} has other keys", "keep the event's old keys")
_EVENT: Final = Advice("changed")
_KEPT_LONGER: Final = Advice("kept longer", "send no event again that is older than its old retention")
_REPACKED: Final = Advice(
    "packed otherwise", "give the changed event another name; under this one, it is refused with a LayoutError"
)


def advice(merged: Merged, name: str, *, first: bool = False) -> Advice:
    """Effect of a deployment, perhaps the `first`, on a name; a changed root decides for what counts its groups."""
    change = merged.changes[name]
    found = _FIRST if first and change.kind == "new" else _ADVICE[change.kind]
    root = ""
    if change.kind == "waits" and change.before is None:
        root, found = _changed_root(merged, change.after), _FOLLOWS
    elif change.kind in ("unchanged", "adjusted", "new") and (root := _changed_root(merged, change.after)):
        follows = _FOLLOWS_KEPT if merged.changes[root].kind == "keep" else _FOLLOWS
        found = follows._replace(title=f"new, {follows.title}") if change.kind == "new" else follows
    event = _rekeyed(change)
    if event and change.kind in ("unchanged", "adjusted"):
        found = _REKEYED
    if former := _former_name(merged, change):
        found = found._replace(title=f"{found.title}, perhaps {{former}} renamed")
    if change.after is not None and isinstance(change.after.source, Direct):
        # Nothing in the table says what it must hold.
        found = found._replace(next="" if found.next == _BACKFILL else found.next)
    named = {"name": name, "root": root, "reason": change.reason, "event": event, "former": former}
    return Advice(*(text.format_map(named) for text in found))


def event_advice(
    declared: Iterable[Declaration], folded: Iterable[Declaration]
) -> dict[str, tuple[Event, Event, Advice]]:
    """Declared events that differ from those of the same name so far: before, after, what follows."""
    before = {each.source.name: each.source for each in folded}
    after = {each.source.name: each.source for each in declared}
    found = {}
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if isinstance(old, Event) and isinstance(new, Event) and old != new:
            found[name] = old, new, _event_advice(old, new)
    return found


def _event_advice(old: Event, new: Event) -> Advice:
    if old.packed != new.packed or (new.packed is not None and old.retention != new.retention):
        return _REPACKED
    if old.retention is None or (new.retention is not None and new.retention <= old.retention):
        return _EVENT
    return _KEPT_LONGER


def told(merged: Merged) -> str:
    """Changes by a takeover, in one line of the log."""
    names = {kind: [name for name, change in merged.changes.items() if change.kind == kind] for kind in _ADVICE}
    told = (f"{_ADVICE[kind].title}: {', '.join(names[kind])}" for kind in names if names[kind] and kind != "unchanged")
    return "; ".join(told) or "nothing changes"


def _rekeyed(change: Change) -> str:
    """The event that is counted, if its keys have changed."""
    if change.before is None or change.after is None:
        return ""
    old, new = root_of(change.before), root_of(change.after)
    if isinstance(old, Event) and isinstance(new, Event) and (old.pk, old.sk) != (new.pk, new.sk):
        return new.name if old.name == new.name else ""
    return ""


def _former_name(merged: Merged, change: Change) -> str:
    """The removed declaration that a new one seems to be, by another name."""
    if change.kind != "new" or change.after is None:
        return ""
    for name, other in merged.changes.items():
        if other.kind in ("removed", "needed") and other.before is not None and _is_alike(other.before, change.after):
            return name
    return ""


def _is_alike(one: Declaration, two: Declaration) -> bool:
    return same_meaning(one, two) or (type(one) is type(two) and _keys(one) == _keys(two))


def _keys(declaration: Declaration) -> tuple[str, str, bool]:
    pages = isinstance(declaration, Aggregate) and declaration.pages
    return declaration._pk_template.text, declaration._sk_template.text, pages


def _changed_root(merged: Merged, declaration: Declaration | None) -> str:
    """The nearest aggregate below that has changed."""
    source = None if declaration is None else declaration.source
    while isinstance(source, Aggregate):
        name = base_name(source.name)
        is_changed = name in merged.changes and merged.changes[name].kind in ("keep", "waits", "filling")
        if is_changed and not isinstance(source.source, Direct):
            return name
        source = source.source
    return ""
