"""Emptying: bring names to where nobody folds them and none of their items is left, whatever a process knows of it.

Each step is a write to the registry, or a wait for those who rely on what it was before. A process may die in any of
them, and another one goes on; two that empty the same name do not disturb each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._assumptions import CLOCKS, FRESH, SETTLED_AFTER
from dynamodb_counters._backfill.feeds import Pace, paid_write, units_of
from dynamodb_counters._control.registry import COUNTING, STALE, WAITING, Entry, Registry, read_registry, write_registry
from dynamodb_counters._declarations.groups import with_below
from dynamodb_counters._items.bookkeeping import delete_as_seen
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import BASELINE, PK, SK, TYPE, WATERMARK_PREFIX
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

_POLL: Final = 2.0
_AT_A_TIME: Final = 256
DELETING: Final = "deleting"


@dataclass(slots=True, kw_only=True)
class Emptying:
    """Empties names of a table, by DynamoDB's time, `now`; those to be `dropped` stay registered until then."""

    table: Table
    now: Callable[[], float]
    names: Collection[str]
    segments: int = 4
    pace: Pace
    dropped: bool = False
    fresh: float = FRESH + CLOCKS
    folded: float = SETTLED_AFTER + CLOCKS
    deleted: Counter[str] = field(default_factory=Counter)
    """Items by name."""
    entries: dict[str, Entry] = field(default_factory=dict)
    """The entries of the names as they were emptied: they wait."""
    scanned: int = 0

    def steps(self) -> Iterator[tuple[str, float, float]]:
        """Empty them; yield after each step the phase, and how much of it is done."""
        for _ in self.table.tries():
            registry = read_registry(self.table)
            if all(entry.state == WAITING and entry.dropped == self.dropped for entry in self._of(registry)):
                yield from self._rest(registry, WAITING, self.folded)
                if (yield from self._emptied(registry)):
                    return
                raise BackfillError("another process works on the same names: run it again")
            self._require_uncounted(registry)
            yield from self._rest(registry, STALE, self.fresh)
            write_registry(self.table, registry, list(self._changes(registry)), attributes={})
        raise BackfillError("the table's registry changes all the time: try again later")

    def _of(self, registry: Registry) -> list[Entry]:
        if missing := sorted({*self.names} - registry.entries.keys()):
            raise BackfillError(f"{', '.join(missing)}: dropped by another process")
        return [registry.entries[name] for name in sorted(self.names)]

    def _require_uncounted(self, registry: Registry) -> None:
        """Refuse what another name counts: processes fold that only over names that are folded."""
        for each in registry.declarations:
            counted = [below.name for below in with_below(each) if below.name in self.names]
            if counted and each.name not in self.names and registry.entries[each.name].counts:
                raise BackfillError(f"{each.name!r} counts {counted[0]!r}: run it again")

    def _changes(self, registry: Registry) -> Iterator[tuple[Entry, Entry]]:
        """The next state of each name."""
        now = self.now()
        for entry in self._of(registry):
            if entry.state == STALE and entry.dropped == self.dropped:
                yield entry, entry.entering(WAITING, now, since=0, run="")
            elif entry.state in COUNTING:
                yield entry, entry.entering(STALE, now, dropped=self.dropped)
            elif entry.dropped != self.dropped:
                # Nobody folds it: only that it is to be dropped is new.
                yield entry, entry.entering(WAITING, entry.at, dropped=self.dropped)

    def _rest(self, registry: Registry, state: str, seconds: float) -> Iterator[tuple[str, float, float]]:
        """Wait until nobody relies on what names in a state were before."""
        resting = [entry.at for entry in self._of(registry) if entry.state == state and not entry.fresh]
        begun, until = self.now(), max(resting, default=0.0) + seconds
        while resting and (now := self.now()) <= until:
            yield state, now - begun, until - begun
            self.table.sleep(min(_POLL, until - now + 0.1))

    def _emptied(self, registry: Registry) -> Any:
        """Delete all items of names that were ever counted, while these wait as they did."""
        self.entries = {entry.name: entry for entry in self._of(registry)}
        full = {name for name, entry in self.entries.items() if not entry.fresh}
        starts: dict[int, Any] = dict.fromkeys(range(self.segments)) if full else {}
        while starts:
            left: list[Image] = []
            for segment, answer in zip([*starts], self.table.each(self._scan, [*starts.items()]), strict=True):
                self.scanned += len(answer["Items"])
                self.pace.spend(units_of(answer))
                left += [item for item in answer["Items"] if item.get(TYPE, {}).get("S") in full]
                starts[segment] = answer.get("LastEvaluatedKey")
            starts = {segment: start for segment, start in starts.items() if start}
            for start in range(0, len(left), _AT_A_TIME):
                # What was read of them was counted before: the next run has not begun.
                if not self._still_waits():
                    return False
                some = left[start : start + _AT_A_TIME]
                self.pace.spend(sum(self.table.each(self._delete, some)))
                self.deleted.update(item[TYPE]["S"] for item in some)
            yield DELETING, self.scanned, 0
        return self._still_waits()

    def _still_waits(self) -> bool:
        entries = read_registry(self.table).entries
        return all(entries.get(name) == entry for name, entry in self.entries.items())

    def _scan(self, place: tuple[int, Any]) -> Mapping[str, Any]:
        segment, start = place
        request: Any = {"ExclusiveStartKey": start} if start else {}
        return self.table.client.scan(
            TableName=self.table.name,
            Segment=segment,
            TotalSegments=self.segments,
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
            **request,
        )

    def _delete(self, item: Image) -> float:
        """Delete an item as it was read: in the next run its watermarks are later, or it has a baseline of that."""
        compared = [TYPE, BASELINE, *(name for name in item if name.startswith(WATERMARK_PREFIX))]
        return paid_write(
            self.table, "delete_item", **delete_as_seen(self.table.name, {PK: item[PK], SK: item[SK]}, item, compared)
        )[1]
