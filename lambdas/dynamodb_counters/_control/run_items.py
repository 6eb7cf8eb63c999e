"""Runs: backfills and verifications, which go on apart from the counting, and the items that they keep. Pure."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._fold.item_layout import GroupRef
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.bookkeeping import bookkeeping_item, bookkeeping_key
from dynamodb_counters._items.conversions import base64_text
from dynamodb_counters._items.decimals import Number, format_number, parse_number
from dynamodb_counters._items.table_schema import CHECKPOINT, PK, RUN_PREFIX, SK, TYPE
from dynamodb_counters._items.watermarks import shard_digest
from dynamodb_counters._timeline.times import DAY

KEPT: Final = 30 * DAY
"""How long a run's items stay, in seconds: no run takes longer."""

RUNS: Final = "runs"
"""Attribute of the history's item with the open runs."""

RUN_SK_PREFIX: Final = "RUN#"
"""Starts the sort keys of the items that hold where runs are."""

ONLY_SHARD: Final = "only"
"""Name of an emulator's single shard where events do not name it."""

_MOST_TABLES: Final = 2
"""Tables scanned by a run: that of the counts, and a source table."""

ROWS: Final = "rows"
MOST_BYTES: Final = 350_000
"""Most bytes of one page's rows: an item has 400 KB."""

_DIGEST_BYTES: Final = 12
_BEAT: Final = "~beat~"

Sums: TypeAlias = Mapping[GroupRef, Mapping[str, Number]]
"""Numbers to add, by group and measure."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is open: `names` are the generations whose contributions it keeps, `since` is where its cut lies."""

    id: str
    kind: Literal["backfill", "verify"]
    since: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change in a run's log: the item's digest, what it had contributed, what the change added (verifications)."""

    digest: str
    sequence: str
    old: Sums
    added: Sums = field(default_factory=dict)
    is_direct: bool = False
    """Whether the transaction that inserted the item has counted it."""
    entries: tuple[str, ...] = ()
    """Entries of the quarantine that hold what of it could not be folded before the change."""


@dataclass(frozen=True, slots=True)
class ScannedItem:
    """An item that a scan has read: its digest, what it contributes, and entries with what cannot be folded of it."""

    digest: str
    sums: Sums
    entries: tuple[str, ...] = ()


def found_by(run: str) -> str:
    """Stands for the shard of what a run's scan has found."""
    return f"run~{run}"


def generation_of(run: str) -> int:
    """The generation that a run fills, read from its id; 0 for a verification."""
    return int(run.partition("r")[0])


def runs_text(runs: Iterable[Run]) -> str:
    return json.dumps({run.id: [run.kind, run.since, *run.names] for run in sorted(runs, key=lambda run: run.id)})


def read_runs(item: Mapping[str, Any]) -> tuple[Run, ...]:
    """The open runs that the history's item holds; none if it is spoiled."""
    try:
        known = json.loads(item.get(RUNS, {}).get("S", "{}"))
        return tuple(Run(name, kind, int(since), tuple(names)) for name, (kind, since, *names) in known.items())
    except (AttributeError, TypeError, ValueError):
        return ()


def run_key(run: str) -> dict[str, Any]:
    """Key of the item that holds where a run is: all of them are in one partition, so that they can be listed."""
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


def page_partitions(run: str, item: Mapping[str, Any]) -> Iterator[str]:
    """The partition keys of a run's pages, found by its item: of its logs, and of what it has scanned."""
    parents, _ = json.loads(item["shards"]["S"])
    yield from (log_key(run, shard)[PK]["S"] for shard in (*parents, ONLY_SHARD))
    segments = _MOST_TABLES * int(item["segments"]["N"])
    yield from (scan_key(run, segment, 0)[PK]["S"] for segment in range(segments))


def is_beat(run: str, keys: Image) -> bool:
    """Whether an item is one of a run's heartbeats, by which the shards show how far they are."""
    return bool(keys.get(PK, {}).get("S", "").startswith(f"{RUN_PREFIX}{run}{_BEAT}"))


def is_bookkeeping(image: Image) -> bool:
    """Whether an item is of the table's own bookkeeping, a run's pages among it."""
    return image.get(TYPE, {}).get("S") == CHECKPOINT


def run_item(key: Mapping[str, Any], values: Mapping[str, Any], now: float) -> dict[str, Any]:
    return bookkeeping_item(key, values, int(now + KEPT))


def item_digest(keys: Image, *, is_foreign: bool = False) -> str:
    """Name of an item in a run: 96 bits of a digest of its key, and of whether it lies in the source table."""
    text = json.dumps([is_foreign, *([name, keys[name]] for name in sorted(keys))], default=base64_text)
    return base64_text(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES])


def pack_log(changes: Iterable[LoggedChange]) -> bytes:
    return _pack(
        [[one.digest, one.sequence, _plain(one.old), _plain(one.added), one.is_direct, one.entries] for one in changes]
    )


def unpack_log(rows: bytes) -> list[LoggedChange]:
    return [
        LoggedChange(digest, sequence, _sums(old), _sums(added), is_direct, tuple(entries))
        for digest, sequence, old, added, is_direct, entries in _unpack(rows)
    ]


def pack_scanned(items: Iterable[ScannedItem]) -> bytes:
    return _pack([[item.digest, _plain(item.sums), item.entries] for item in items])


def unpack_scanned(rows: bytes) -> list[ScannedItem]:
    return [ScannedItem(digest, _sums(sums), tuple(entries)) for digest, sums, entries in _unpack(rows)]


def _pack(rows: Sequence[Any]) -> bytes:
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode())


def _unpack(rows: bytes) -> Any:
    return json.loads(zlib.decompress(bytes(rows)))


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
