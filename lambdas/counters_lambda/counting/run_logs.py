"""Runs: backfills and verifications, which go on apart from the counting; their items, and the logs of open ones.

Whoever counts a batch writes the log, before it counts. A page is named by the first and the last record of what it was
made of. So every delivery writes the same page under the same name, and what a record did is the same on every page.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from dynamodb_counters._assumptions import SKEW
from dynamodb_counters._fold.fold import InvalidImage, Sums, _folded, folded_alone, sums_of
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, Origin, padded
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import base64_text, format_number, parse_number
from dynamodb_counters._quarantine import PROVISIONAL, Quarantine
from dynamodb_counters._registry import Run
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CheckpointError
from dynamodb_counters.exactly_once import shard_digest

RUN_RETENTION: Final = 30 * DAY  # How long a run's items stay, in seconds: no run takes longer.
RUN_SK_PREFIX: Final = "RUN#"  # Starts the sort keys of the items that hold where runs are.
ONLY_SHARD: Final = "only"  # Name of an emulator's single shard where events do not name it.
NO_CUT: Final = "~"  # After every sequence number: no record of the shard is past the cut.
ROWS: Final = "rows"
MOST_BYTES: Final = 350_000  # Most bytes of one page's rows: an item has 400 KB.
_BEAT: Final = "~beat~"


@dataclass(frozen=True, slots=True)
class RunRow:
    digest: str
    sums: Sums  # What an item contributes that a scan has read, or had contributed before a change that was logged.
    entries: tuple[str, ...] = ()  # Entries of the quarantine that hold what of it cannot be folded.
    sequence: str = ""
    added: Sums = field(default_factory=dict)  # What the change added, for verifications.
    is_direct: bool = False  # Whether the transaction that inserted the item has counted it.


def found_by(run: str) -> str:
    """Return what stands for the shard of what a run's scan has found."""
    return f"run~{run}"


def run_key(run: str) -> dict[str, Any]:
    return schema.bookkeeping_key(RUN_SK_PREFIX + run)


def beat_key(run: str, number: str) -> dict[str, Any]:
    return page_key(f"{schema.RUN_PREFIX}{run}{_BEAT}{number}", "BEAT")


def page_key(partition: str, sk: str) -> dict[str, Any]:
    return {schema.PK: {"S": partition}, schema.SK: {"S": sk}}


def _cut_key(run: str, shard: str) -> dict[str, Any]:
    return page_key(schema.RUN_PREFIX + run, f"CUT#{shard_digest(shard)}")


def log_partition(run: str, shard: str) -> str:
    return f"{schema.RUN_PREFIX}{run}~log~{shard_digest(shard)}"


def scan_partition(run: str, segment: int) -> str:
    return f"{schema.RUN_PREFIX}{run}~scan~{segment}"


def is_bookkeeping(image: Image) -> bool:
    """Return whether an item is of the table's own bookkeeping, a run's pages among it."""
    return image.get(schema.TYPE, {}).get("S") == schema.CHECKPOINT


def run_item(key: Mapping[str, Any], values: Mapping[str, Any], now: float) -> dict[str, Any]:
    return schema.bookkeeping_item(key, values, int(now + RUN_RETENTION))


def item_digest(keys: Image, *, is_foreign: bool = False) -> str:
    """Return an item's name in a run: 96 bits of a digest of its key, and of whether it lies in the source table."""
    text = json.dumps([is_foreign, *([name, keys[name]] for name in sorted(keys))], default=base64_text)
    return base64_text(hashlib.sha256(text.encode()).digest()[:12])


def pack_rows(rows: Iterable[RunRow]) -> bytes:
    flat = [[row.digest, _plain(row.sums), row.entries, row.sequence, _plain(row.added), row.is_direct] for row in rows]
    return zlib.compress(json.dumps(flat, separators=(",", ":")).encode())


def rows_of(page: Image) -> list[RunRow]:
    return [
        RunRow(digest, _sums(sums), tuple(entries), sequence, _sums(added), is_direct)
        for digest, sums, entries, sequence, added, is_direct in json.loads(zlib.decompress(bytes(page[ROWS]["B"])))
    ]


def _plain(sums: Sums) -> list[Any]:
    return [
        [name, list(group), {measure: format_number(number) for measure, number in measures.items()}]
        for (name, group), measures in sums.items()
    ]


def _sums(plain: Sequence[Any]) -> Sums:
    return {
        (name, tuple(group)): {measure: parse_number(text) for measure, text in measures.items()}
        for name, group, measures in plain
    }


class RunLogs:
    """The logs and cuts of one table's runs, as one process knows them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._cuts: dict[tuple[str, str], str] = {}

    def cut(self, run: Run, shard: str, changes: Sequence[Change]) -> str:
        """Return the first record of a shard that a run counts, alike for everyone; `NO_CUT` if it is still to come."""
        # Long after its cut, a run needs none.
        if run.since + SKEW <= min(change.created or 0.0 for change in changes):
            return changes[0].sequence
        # Times of creation are approximate: near the cut, they need not grow from record to record, nor agree between
        # shards. So a shard in which an item that the run fills is written is past its cut, too.
        # Where all of a batch came long after, none has written the cut: a later record may be the one that does.
        late = (change.sequence for change in changes if (change.created or 0.0) >= run.since + SKEW)
        return min(next(late, NO_CUT), self._stored_cut(run, shard, changes))

    def _stored_cut(self, run: Run, shard: str, changes: Sequence[Change]) -> str:
        if (run.id, shard) in self._cuts:
            return self._cuts[run.id, shard]
        if max(change.created or 0.0 for change in changes) < run.since - SKEW:
            return NO_CUT

        def is_beyond(change: Change) -> bool:
            created = change.created or 0.0
            # Its items of before were deleted long ahead of the cut; they may be deleted up to then.
            is_filled = run.kind == "backfill" and change.record["dynamodb"].get(NEW) and _type_of(change) in run.names
            return created >= run.since or (bool(is_filled) and created >= run.since - SKEW)

        first = next((change.sequence for change in changes if is_beyond(change)), None)
        key = _cut_key(run.id, shard)
        item = run_item(key, {"cut": first or NO_CUT, "shard": shard}, self._table.clock())
        if first is None or not self._table.write("put_item", **schema.put_as_seen(self._table.name, item, {}, ())):
            item = self._table.read_item(key)
        if not item:
            return NO_CUT
        self._cuts[run.id, shard] = str(item["cut"]["S"])
        return self._cuts[run.id, shard]

    def write(
        self, run: Run, plan: Plan, shard: str, changes: Sequence[Change], cut: str, *, quarantine: Quarantine
    ) -> float:
        """Log what a batch changes, from the cut on; return the write units."""
        past = [change for change in changes if change.sequence >= cut]
        if past and not plan.programs.keys() >= set(run.names):
            raise CheckpointError(
                f"the run {run.id} looks at {', '.join(run.names)}, which this process does not fold: it reads the "
                "registry again within a minute"
            )
        # A log of the table's own items would be logged without end; heartbeats ask for it.
        relevant = [change for change in past if _type_of(change) != schema.CHECKPOINT or _is_beat(run.id, change)]
        if not relevant:
            return 0.0
        invalid: list[InvalidImage] = []
        rows = list(logged(run, plan, relevant, invalid))
        quarantine.keep(shard, invalid, PROVISIONAL)  # Before the page that names them.
        beats = any(_is_beat(run.id, change) for change in relevant)
        return len(invalid) + self._write(run.id, shard, rows, past, beats=beats)

    def _write(self, run: str, shard: str, rows: list[RunRow], part: Sequence[Change], *, beats: bool) -> float:
        packed, half = pack_rows(rows), len(part) // 2
        if len(packed) > MOST_BYTES and half:
            # In order: the last page says that those before it are there.
            early = [row for row in rows if row.sequence < part[half].sequence]
            late = [row for row in rows if row.sequence >= part[half].sequence]
            units = self._write(run, shard, early, part[:half], beats=False)
            return units + self._write(run, shard, late, part[half:], beats=beats)
        first, last = part[0], part[-1]
        values = {ROWS: packed, "shard": shard, "last": last.sequence, "created": last.created or 0.0}
        key = page_key(log_partition(run, shard), f"{first.sequence}#{last.sequence}")
        item = run_item(key, {**values, "beats": int(beats)}, self._table.clock())
        answer = self._table.client.put_item(TableName=self._table.name, Item=item, ReturnConsumedCapacity="TOTAL")
        return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))


def logged(run: Run, plan: Plan, changes: Iterable[Change], invalid: list[InvalidImage]) -> Iterable[RunRow]:
    """Yield changes of what a run looks at: for a verification all, for others the first one of each item."""
    # Images of items before they changed that could not be folded are added to `invalid`.
    names, digests = frozenset(run.names), set[str]()
    for change in changes:
        images = change.record["dynamodb"]
        # An image that comes back from the quarantine is no change of the item it was.
        is_own = change.delta is None and padded(images["SequenceNumber"]) == change.sequence
        is_insert = is_own and change.record.get("eventName") == "INSERT"
        is_direct = is_insert and _type_of(change).endswith(schema.ONCE_SUFFIX)
        if not change.is_foreign and is_filled(run, images.get(NEW) or images.get(OLD) or {}):
            continue
        digest = item_digest(images["Keys"], is_foreign=bool(change.is_foreign)) if is_own else ""
        if digest in digests and run.kind != "verify":
            continue
        keys, origin = images.get("Keys", {}), str(change.record.get("eventSourceARN", ""))
        alone = partial(folded_alone, plan, names, is_foreign=change.is_foreign, keys=keys, origin=origin)
        old, new = (alone(images.get(name) if is_own else None, run.since) for name in (OLD, NEW))
        added: Sums = {}
        if run.kind == "verify":
            at = change.created or 0.0  # A transaction has counted as of its own time.
            added = sums_of(alone(images[NEW], at) if is_direct else _folded(plan, change, names))
        waiting, later = (old.invalid, new.invalid) if run.kind == "backfill" else ((), ())
        # An item that contributed nothing before matters, too: what the scan reads of it came after the cut.
        if sums_of(old) or sums_of(new) or added or waiting or later:
            digests.add(digest)
            number = change.sequence
            lacking = [replace(image, sequence=number, image_name=f"{run.id}#{image.image_name}") for image in waiting]
            invalid += lacking
            entries = tuple(image.entry_id for image in lacking)
            yield RunRow(digest, sums_of(old), entries, number, added, is_direct)


def is_filled(run: Run, item: Image) -> bool:
    """Return whether a run fills an item's group: it began after the cut, and had contributed nothing before."""
    return run.kind == "backfill" and item.get(schema.TYPE, {}).get("S") in run.names


def _type_of(change: Change) -> str:
    """Return the type of the changed item of our own table; "" for the source table's."""
    images = change.record["dynamodb"]
    return "" if change.is_foreign else (images.get(NEW) or images.get(OLD) or {}).get(schema.TYPE, {}).get("S", "")


def _is_beat(run: str, change: Change) -> bool:
    """Return whether a change is of one of a run's heartbeats, by which the shards show how far they are."""
    pk = change.record["dynamodb"].get("Keys", {}).get(schema.PK, {}).get("S", "")
    return not change.is_foreign and pk.startswith(f"{schema.RUN_PREFIX}{run}{_BEAT}")


def is_past(table: Table, run: str, since: float, origin: Origin) -> bool:
    """Return whether a record lies after a run's cut, or was put aside by the run itself."""
    if origin.shard.startswith(found_by("")):
        return origin.shard == found_by(run)  # What a run has met at its cut waits for what that run has filled alone.
    if abs(origin.created - since) < SKEW and (cut := table.read_item(_cut_key(run, origin.shard))):
        return origin.sequence >= str(cut["cut"]["S"])
    return origin.created >= since
