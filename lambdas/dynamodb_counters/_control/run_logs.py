"""The logs of open runs, written by whoever counts a batch, before it counts it.

A page is named by the first and the last record of what it was made of. So every delivery writes the same page under
the same name, and what a record did is the same on every page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._control.run_items import (
    MOST_BYTES,
    ROWS,
    LoggedChange,
    Run,
    Sums,
    cut_key,
    generation_of,
    is_beat,
    item_digest,
    log_key,
    pack_log,
    run_item,
)
from dynamodb_counters._declarations.generations import generation_number
from dynamodb_counters._fold.deltas import Folded, Unfoldable
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, inserted, padded
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import CHECKPOINT, ONCE_SUFFIX, TYPE
from dynamodb_counters._quarantine.quarantine import Quarantine
from dynamodb_counters._quarantine.quarantine_items import PROVISIONAL
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError

SCANNED: Final = "SCAN"
"""Name of the event of an item that was there already."""

NO_CUT: Final = "~"
"""After every sequence number: no record of the shard is past the cut."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The first records of one shard that count for runs, by run: for eras that backfills opened, and for open runs."""

    of_eras: Mapping[str, str]
    of_runs: Mapping[str, str]


NO_CUTS: Final = Cuts({}, {})


class RunLogs:
    """The logs and cuts of one table's runs, as one process knows them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._cuts: dict[tuple[str, str], str] = {}

    def cut(self, run: str, since: float, shard: str, changes: Sequence[Change]) -> str:
        """The first record of a shard that a run counts from, alike for everyone; `NO_CUT` if it is still to come."""
        # Times of creation are approximate: near the cut, they need not grow from record to record, nor agree between
        # shards. So a shard in which an item of the run's generations changes is past its cut, too.
        # Where all of a batch came long after, none has written the cut: a later record may be the one that does.
        late = (change.sequence for change in changes if (change.created or 0.0) >= since + SKEW)
        return min(next(late, NO_CUT), self._told_cut(run, since, shard, changes))

    def _told_cut(self, run: str, since: float, shard: str, changes: Sequence[Change]) -> str:
        if (run, shard) in self._cuts:
            return self._cuts[run, shard]
        created = [change.created or 0.0 for change in changes]
        if max(created) < since - SKEW:
            return NO_CUT
        number = generation_of(run)

        def is_past(change: Change) -> bool:
            return (change.created or 0.0) >= since or 0 < number == generation_number(_type_of(change))

        first = next((change.sequence for change in changes if is_past(change)), None)
        if first is not None and min(created) >= since + SKEW:
            return first
        known = self._put_cut(run, shard, first)
        if known is not None:
            self._cuts[run, shard] = known
        return known or NO_CUT

    def _put_cut(self, run: str, shard: str, first: str | None) -> str | None:
        key = cut_key(run, shard)
        if first is not None:
            item = run_item(key, {"cut": first, "shard": shard}, self._table.clock())
            if self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
                return first
        found = self._table.read_item(key)
        return str(found["cut"]["S"]) if found else None

    def write(
        self, run: Run, plan: Plan, shard: str, changes: Sequence[Change], cut: str, *, quarantine: Quarantine
    ) -> float:
        """Log what a batch changes, from the cut on; return the write units."""
        past = [change for change in changes if change.sequence >= cut]
        if past and not plan.programs.keys() >= set(run.names):
            raise CheckpointError(
                f"the run {run.id} looks at {', '.join(run.names)}, which this version cannot read: install the one "
                "that was deployed before, or give the run up"
            )
        # A log of the table's own items would be logged without end; heartbeats ask for it.
        relevant = [change for change in past if _type_of(change) != CHECKPOINT or _is_beat(run.id, change)]
        if not relevant:
            return 0.0
        unfoldable: list[Unfoldable] = []
        rows = list(logged(run, plan, relevant, unfoldable))
        # Before the page that names them.
        quarantine.keep(shard, unfoldable if run.kind == "backfill" else (), PROVISIONAL)
        beats = any(_is_beat(run.id, change) for change in relevant)
        return len(unfoldable) + self._write(run.id, shard, rows, past, beats=beats)

    def _write(self, run: str, shard: str, rows: list[LoggedChange], part: Sequence[Change], *, beats: bool) -> float:
        packed = pack_log(rows)
        if len(packed) > MOST_BYTES and len(part) > 1:
            # In order: the last page says that those before it are there.
            middle = part[len(part) // 2].sequence
            early, late = ([row for row in rows if (row.sequence < middle) == is_early] for is_early in (True, False))
            units = self._write(run, shard, early, part[: len(part) // 2], beats=False)
            return units + self._write(run, shard, late, part[len(part) // 2 :], beats=beats)
        values = {ROWS: packed, "shard": shard, "last": part[-1].sequence, "created": part[-1].created or 0.0}
        key = log_key(run, shard, part[0].sequence, part[-1].sequence)
        item = run_item(key, {**values, "beats": int(beats)}, self._table.clock())
        client = self._table.client
        answer = client.put_item(TableName=self._table.name, Item=item, ReturnConsumedCapacity="TOTAL")
        return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))


def logged(run: Run, plan: Plan, changes: Iterable[Change], unfoldable: list[Unfoldable]) -> Iterable[LoggedChange]:
    """Changes of what a run looks at: for a verification all, for others the first one of each item."""
    # Images of items before they changed that could not be folded are added to `unfoldable`.
    names, met = frozenset(run.names), set[str]()
    for change in changes:
        images = change.record["dynamodb"]
        # An image that comes back from the quarantine is no change of the item it was.
        is_own = change.delta is None and padded(images["SequenceNumber"]) == change.sequence
        is_direct = is_own and change.record.get("eventName") == "INSERT" and _type_of(change).endswith(ONCE_SUFFIX)
        if not change.is_foreign and is_filled(run, images.get(NEW) or images.get(OLD) or {}):
            continue
        digest = item_digest(images["Keys"], is_foreign=bool(change.is_foreign)) if is_own else ""
        if digest in met and run.kind != "verify":
            continue
        held = Held(images.get("Keys", {}), change.is_foreign, str(change.record.get("eventSourceARN", "")))
        old, new = (
            folded_alone(plan, names, images.get(name) if is_own else None, run.since, held) for name in (OLD, NEW)
        )
        added: Sums = {}
        if run.kind == "verify":
            # A transaction has counted as of its own time.
            at = change.created or 0.0
            folded = folded_alone(plan, names, images[NEW], at, held) if is_direct else _folded(plan, change, names)
            # Numbers of which an erasure relieves the next generation are no concern of this one.
            added = {ref: numbers for ref, numbers in sums_of(folded).items() if ref[0] in names}
        lacking = [
            replace(image, sequence=change.sequence, image_name=f"{run.id}#{image.image_name}")
            for image in old.unfoldable
            if run.kind != "verify"
        ]
        # An item that contributed nothing before matters, too: what the scan reads of it came after the cut.
        if sums_of(old) or sums_of(new) or added or (run.kind != "verify" and (old.unfoldable or new.unfoldable)):
            met.add(digest)
            unfoldable += lacking
            entries = tuple(image.entry_id for image in lacking)
            yield LoggedChange(digest, change.sequence, sums_of(old), added, is_direct, entries)


def is_filled(run: Run, item: Image) -> bool:
    """Whether a run fills an item's group: it began after the cut, and had contributed nothing before."""
    return run.kind == "backfill" and item.get(TYPE, {}).get("S") in run.names


@dataclass(frozen=True, slots=True)
class Held:
    """Where an item lies: its keys, whether in the source table, as of a `Change`, and the stream or the table."""

    keys: Image
    is_foreign: bool | None
    origin: str


def folded_alone(plan: Plan, names: frozenset[str], image: Image | None, at: float, held: Held) -> Folded:
    """Fold of an item by itself, early or late as of a time."""
    if image is None:
        return Folded()
    record = inserted(image, at, 1)
    # No insertion: what a transaction has counted counts, too.
    found = {**record, "eventName": SCANNED, "eventSourceARN": held.origin}
    found["dynamodb"] = {**record["dynamodb"], "Keys": held.keys}
    return _folded(plan, Change(found, is_foreign=held.is_foreign), names)


def sums_of(folded: Folded) -> Sums:
    return {delta.ref: delta.measures for delta in folded.deltas if any(delta.measures.values())}


def _folded(plan: Plan, change: Change, names: frozenset[str]) -> Folded:
    restricted = copy(change)
    restricted.names = names if change.names is None else names & change.names
    return fold(plan, [restricted])


def _type_of(change: Change) -> str:
    """Type of the changed item of our own table; "" for the source table's."""
    images = change.record["dynamodb"]
    return "" if change.is_foreign else (images.get(NEW) or images.get(OLD) or {}).get(TYPE, {}).get("S", "")


def _is_beat(run: str, change: Change) -> bool:
    return not change.is_foreign and is_beat(run, change.record["dynamodb"].get("Keys", {}))
