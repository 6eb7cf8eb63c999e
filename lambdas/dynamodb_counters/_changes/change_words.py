"""Effects of a deployment on each name, in words: for the aggregator's log, `counters diff` and the docs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from dynamodb_counters._changes.effective import Change, Kind, Merged
from dynamodb_counters._changes.meaning import same_meaning
from dynamodb_counters._changes.summary import aspects, event_words
from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.consistency import Declaration
from dynamodb_counters._declarations.generations import base_name, left_behind, root_of
from dynamodb_counters._declarations.sources import Event

_BACKFILL: Final = "counters backfill {name}"


@dataclass(frozen=True, slots=True)
class Advice:
    """One kind of change: its title, what is done, what the counts are until then, what to do next."""

    title: str
    does: str
    counts: str
    next: str = ""


_ADVICE: Final[dict[Kind, Advice]] = {
    "unchanged": Advice("unchanged", "counts on", "as before"),
    "new": Advice(
        "new",
        "counts new records from the deployment on, none from before",
        "lack what is there already; correcting or deleting that lowers them",
        _BACKFILL,
    ),
    "adjusted": Advice("other limits or thresholds", "counts on; they hold for new records", "as before"),
    "keep": Advice(
        "changed, in place",
        "goes on with the old numbers, by the new definition",
        "a mix of both definitions; correcting or deleting an older item takes back what the new one says",
        _BACKFILL,
    ),
    "waits": Advice(
        "changed, waits for a backfill",
        "goes on by the old definition until a backfill by the new one is complete",
        "exact, by the old definition",
        _BACKFILL,
    ),
    "filling": Advice(
        "changed, backfill open",
        "goes on by the old definition until the backfill is complete",
        "exact, by the old definition",
        _BACKFILL,
    ),
    "removed": Advice("removed", "counts nothing any more", "stay as they are", "counters drop {name}"),
    "needed": Advice(
        "removed, still needed",
        "counts on for what counts its groups and waits for a backfill",
        "as before",
        "backfill what counts its groups",
    ),
    "refused": Advice(
        "refused",
        "the aggregator refuses the deployment: {reason}",
        "nothing in this table is counted; records wait in the stream for 23 hours",
        "do not deploy it; if it is deployed, roll back",
    ),
}
_FIRST: Final = Advice(
    "new",
    "counts all that is in the stream, which is everything in a new table",
    "lack what is older than the stream's 24 hours, if anything is",
    "if so, counters backfill {name}",
)
_UNCOUNTED: Final = Advice(
    "waits for a backfill of {root}",
    "is not counted before {root} is counted by its new definition",
    "none",
    "counters backfill {root}",
)
_FOLLOWS_OLD: Final = Advice(
    "waits for a backfill of {root}",
    "counts the groups of {root} by its old definition",
    "exact, over the old {root}",
    "counters backfill {root}",
)
_FOLLOWS_KEPT: Final = Advice(
    "changes with {root}",
    "counts the groups of {root}, whose numbers are a mix from now on",
    "as mixed as those of {root}",
    "counters backfill {root}",
)
_REKEYED: Final = Advice(
    "unchanged, but event {event} has other keys",
    "counts on; an event from before that comes again is accepted again",
    "count twice what comes again",
    "keep the event's old keys",
)
_KEPT_ELSEWHERE: Final = replace(_ADVICE["keep"], does="begins in new items", counts=_ADVICE["new"].counts)
_NAMED: Final = "; named {former}, which is removed, it would go on with those counts"
_EVENT: Final = Advice("changed", "holds for events that come from the deployment on", "as before")
_KEPT_LONGER: Final = Advice(
    "kept longer",
    "holds for events that come from the deployment on; those from before are forgotten as they were to be",
    "count twice what comes again after the old retention",
    "send no event again that is older than its old retention",
)
_PACKED_LONGER: Final = Advice(
    "kept longer",
    "holds for events from about an hour ahead; earlier ones are refused as too late when they were to be",
    "as before",
)
_REPACKED: Final = Advice(
    "packed otherwise",
    "each event is kept as its own time says",
    "as before",
    "give the new layout a date `since`; without one, events are refused with a LayoutError",
)


def advice(merged: Merged, name: str, *, first: bool = False) -> Advice:
    """Effect of a deployment, perhaps the `first`, on a name; a changed root decides for what counts its groups."""
    change = merged.changes[name]
    found = _FIRST if first and change.kind == "new" else _ADVICE[change.kind]
    root = ""
    if change.kind == "waits" and change.before is None:
        root, found = _changed_root(merged, change.after), _UNCOUNTED
    elif change.kind in ("unchanged", "adjusted", "new") and (root := _changed_root(merged, change.after)):
        follows = _FOLLOWS_KEPT if merged.changes[root].kind == "keep" else _FOLLOWS_OLD
        if change.kind == "new":
            follows = replace(follows, title=f"new, {follows.title}", counts=found.counts)
        found = follows
    elif change.kind == "keep" and change.before and change.after and _keys(change.before) != _keys(change.after):
        found = _KEPT_ELSEWHERE
    event = _rekeyed(change)
    if event and change.kind in ("unchanged", "adjusted"):
        found = _REKEYED
    former = _former_name(merged, change)
    if former:
        found = replace(found, does=found.does + _NAMED)
    named = {"name": name, "root": root, "reason": change.reason, "event": event, "former": former}
    return Advice(*(text.format_map(named) for text in astuple(found)))


def differences(change: Change) -> list[tuple[str, str, str]]:
    """The aspects in which a declared definition differs from the one that readers use: aspect, before, after."""
    if change.before is None or change.after is None:
        return []
    found = _changed(_flat(aspects(change.before)), _flat(aspects(change.after)))
    lost = left_behind(change.after, change.before) if change.kind == "waits" else []
    return [*found, *((f"tally of {name}", "carried", "left behind") for name in lost)]


@dataclass(frozen=True, slots=True)
class EventChange:
    """The aspects in which an event differs from the one so far, before and after, and what follows."""

    aspects: list[tuple[str, str, str]]
    advice: Advice


def event_differences(declared: Iterable[Declaration], folded: Iterable[Declaration]) -> dict[str, EventChange]:
    """Changes of declared events against those of the same name so far."""
    before = {each.source.name: each.source for each in folded}
    after = {each.source.name: each.source for each in declared}
    found = {}
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if isinstance(old, Event) and isinstance(new, Event) and old != new:
            found[name] = EventChange(_changed(event_words(old), event_words(new)), _event_advice(old, new))
    return found


def _event_advice(old: Event, new: Event) -> Advice:
    if old.packed != new.packed:
        return _REPACKED
    if old.retention is None or (new.retention is not None and new.retention <= old.retention):
        return _EVENT
    return _KEPT_LONGER if new.packed is None else _PACKED_LONGER


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
        if name in merged.changes and merged.changes[name].kind in ("keep", "waits", "filling"):
            return name
        source = source.source
    return ""


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    every = [*after, *(aspect for aspect in before if aspect not in after)]
    found = [(aspect, before.get(aspect, "nothing"), after.get(aspect, "nothing")) for aspect in every]
    return [each for each in found if each[1] != each[2]]


def _flat(words: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for aspect, said in words.items():
        if isinstance(said, Mapping):
            found |= {f"{aspect} {name}": text for name, text in said.items()}
        elif aspect != "on change":
            found[aspect] = said
    return found
