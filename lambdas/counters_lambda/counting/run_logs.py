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
from dynamodb_counters._fold.fold import Sums, Unfoldable, _folded, folded_alone, sums_of
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import NEW, OLD, Change, Origin, padded
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import base64_text, format_number, parse_number
from dynamodb_counters._items.schema import (
    CHECKPOINT,
    ONCE_SUFFIX,
    PK,
    RUN_PREFIX,
    SK,
    TYPE,
    bookkeeping_item,
    bookkeeping_key,
    put_as_seen,
)
from dynamodb_counters._quarantine import PROVISIONAL, Quarantine
from dynamodb_counters._registry import Run
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY
from dynamodb_counters.errors import CheckpointError
from dynamodb_counters.exactly_once import shard_digest

KEPT: Final = 30 * DAY
"""How long a run's items stay, in seconds: no run takes longer."""

RUN_SK_PREFIX: Final = "RUN#"
"""Starts the sort keys of the items that hold where runs are."""

ONLY_SHARD: Final = "only"
"""Name of an emulator's single shard where events do not name it."""

ROWS: Final = "rows"
MOST_BYTES: Final = 350_000
"""Most bytes of one page's rows: an item has 400 KB."""

_DIGEST_BYTES: Final = 12
_BEAT: Final = "~beat~"


@dataclass(frozen=True, slots=True)
class RunRow:
    """What an item contributes that a scan has read, or had contributed before a change that was logged."""

    digest: str
    sums: Sums
    entries: tuple[str, ...] = ()
    """Entries of the quarantine that hold what of it cannot be folded."""
    sequence: str = ""
    added: Sums = field(default_factory=dict)
    """What the change added, for verifications."""
    is_direct: bool = False
    """Whether the transaction that inserted the item has counted it."""


def found_by(run: str) -> str:
    """Stands for the shard of what a run's scan has found."""
    return f"run~{run}"


def run_key(run: str) -> dict[str, Any]:
    return bookkeeping_key(RUN_SK_PREFIX + run)


def _part_key(run: str, sk: str) -> dict[str, Any]:
    return {PK: {"S": RUN_PREFIX + run}, SK: {"S": sk}}


def cut_key(run: str, shard: str) -> dict[str, Any]:
    return _part_key(run, f"CUT#{shard_digest(shard)}")


def log_key(run: str, shard: str, first: str = "", last: str = "") -> dict[str, Any]:
    return _part_key(f"{run}~log~{shard_digest(shard)}", f"{first}#{last}")


def scan_key(run: str, segment: int, number: int) -> dict[str, Any]:
    return _part_key(f"{run}~scan~{segment}", f"{number:08}")


def beat_key(run: str, number: str) -> dict[str, Any]:
    return _part_key(f"{run}{_BEAT}{number}", "BEAT")


def is_bookkeeping(image: Image) -> bool:
    """Whether an item is of the table's own bookkeeping, a run's pages among it."""
    return image.get(TYPE, {}).get("S") == CHECKPOINT


def run_item(key: Mapping[str, Any], values: Mapping[str, Any], now: float) -> dict[str, Any]:
    return bookkeeping_item(key, values, int(now + KEPT))


def item_digest(keys: Image, *, is_foreign: bool = False) -> str:
    """Name of an item in a run: 96 bits of a digest of its key, and of whether it lies in the source table."""
    text = json.dumps([is_foreign, *([name, keys[name]] for name in sorted(keys))], default=base64_text)
    return base64_text(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES])


def pack_rows(rows: Iterable[RunRow]) -> bytes:
    plain = [
        [row.digest, _plain(row.sums), row.entries, row.sequence, _plain(row.added), row.is_direct] for row in rows
    ]
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode())


def unpack_rows(packed: bytes) -> list[RunRow]:
    return [
        RunRow(digest, _sums(sums), tuple(entries), sequence, _sums(added), is_direct)
        for digest, sums, entries, sequence, added, is_direct in json.loads(zlib.decompress(bytes(packed)))
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


NO_CUT: Final = "~"
"""After every sequence number: no record of the shard is past the cut."""


class RunLogs:
    """The logs and cuts of one table's runs, as one process knows them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._cuts: dict[tuple[str, str], str] = {}

    def cut(self, run: Run, shard: str, changes: Sequence[Change]) -> str:
        """The first record of a shard that a run counts from, alike for everyone; `NO_CUT` if it is still to come."""
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

        def is_past(change: Change) -> bool:
            created = change.created or 0.0
            # Its items of before were deleted long ahead of the cut; they may be deleted up to then.
            is_filled = run.kind == "backfill" and change.record["dynamodb"].get(NEW) and _type_of(change) in run.names
            return created >= run.since or (bool(is_filled) and created >= run.since - SKEW)

        first = next((change.sequence for change in changes if is_past(change)), None)
        key = cut_key(run.id, shard)
        item = run_item(key, {"cut": first or NO_CUT, "shard": shard}, self._table.clock())
        if first is None or not self._table.write("put_item", **put_as_seen(self._table.name, item, {}, ())):
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
        relevant = [change for change in past if _type_of(change) != CHECKPOINT or _is_beat(run.id, change)]
        if not relevant:
            return 0.0
        unfoldable: list[Unfoldable] = []
        rows = list(logged(run, plan, relevant, unfoldable))
        # Before the page that names them.
        quarantine.keep(shard, unfoldable, PROVISIONAL)
        beats = any(_is_beat(run.id, change) for change in relevant)
        return len(unfoldable) + self._write(run.id, shard, rows, past, beats=beats)

    def _write(self, run: str, shard: str, rows: list[RunRow], part: Sequence[Change], *, beats: bool) -> float:
        packed = pack_rows(rows)
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


def logged(run: Run, plan: Plan, changes: Iterable[Change], unfoldable: list[Unfoldable]) -> Iterable[RunRow]:
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
        keys, origin = images.get("Keys", {}), str(change.record.get("eventSourceARN", ""))
        alone = partial(folded_alone, plan, names, is_foreign=change.is_foreign, keys=keys, origin=origin)
        old, new = (alone(images.get(name) if is_own else None, run.since) for name in (OLD, NEW))
        added: Sums = {}
        if run.kind == "verify":
            # A transaction has counted as of its own time.
            at = change.created or 0.0
            added = sums_of(alone(images[NEW], at) if is_direct else _folded(plan, change, names))
        waiting, later = (old.unfoldable, new.unfoldable) if run.kind == "backfill" else ((), ())
        # An item that contributed nothing before matters, too: what the scan reads of it came after the cut.
        if sums_of(old) or sums_of(new) or added or waiting or later:
            met.add(digest)
            lacking = [
                replace(each, sequence=change.sequence, image_name=f"{run.id}#{each.image_name}") for each in waiting
            ]
            unfoldable += lacking
            entries = tuple(image.entry_id for image in lacking)
            yield RunRow(digest, sums_of(old), entries, change.sequence, added, is_direct)


def is_filled(run: Run, item: Image) -> bool:
    """Whether a run fills an item's group: it began after the cut, and had contributed nothing before."""
    return run.kind == "backfill" and item.get(TYPE, {}).get("S") in run.names


def _type_of(change: Change) -> str:
    """Type of the changed item of our own table; "" for the source table's."""
    images = change.record["dynamodb"]
    return "" if change.is_foreign else (images.get(NEW) or images.get(OLD) or {}).get(TYPE, {}).get("S", "")


def _is_beat(run: str, change: Change) -> bool:
    """Whether a change is of one of a run's heartbeats, by which the shards show how far they are."""
    pk = change.record["dynamodb"].get("Keys", {}).get(PK, {}).get("S", "")
    return not change.is_foreign and pk.startswith(f"{RUN_PREFIX}{run}{_BEAT}")


def is_past(table: Table, run: str, since: float, origin: Origin) -> bool:
    """Whether a record lies after a run's cut, or was put aside by the run itself."""
    if origin.shard.startswith(found_by("")):
        # What a run has met at its cut waits for what that run has filled alone.
        return origin.shard == found_by(run)
    if abs(origin.created - since) < SKEW and (cut := table.read_item(cut_key(run, origin.shard))):
        return origin.sequence >= str(cut["cut"]["S"])
    return origin.created >= since
