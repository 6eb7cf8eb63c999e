"""Stream records: the changes of items that the fold counts, and the table that each is of.

Two streams feed the aggregator where items of a source table are counted. Shards of the source's have a name of their
own: two streams may use one name for a shard, and a checkpoint or watermark of one says nothing of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import Declaration, Items
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import Number
from dynamodb_counters._items.schema import CHUNK, ERASED, PK, SEQUENCE_DIGITS, TTL
from dynamodb_counters.errors import MalformedImageError

Record: TypeAlias = Mapping[str, Any]  # As Lambda delivers it.
TtlOf: TypeAlias = Callable[[Record], str | None]  # Names the attribute of a record's item with its TTL.
NEW: Final = "NewImage"
OLD: Final = "OldImage"
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
_TTL_PRINCIPAL: Final = "dynamodb.amazonaws.com"
MAX_TTL_AGE: Final = 5 * 365 * 86_400
"""Seconds after which the TTL process leaves an expired item alone, so that a ``ttl`` of other meaning is none.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-before-you-start.html"""

Aside: TypeAlias = Mapping[str, tuple[frozenset[str] | None, bool]]
"""By image of a record that earlier deliveries put aside: the declarations by which it waits, None for all; and whether
its own entry is there, beside which is put what else waits of it."""
QuarantinedDelta: TypeAlias = tuple[str, tuple[Any, ...], tuple[tuple[str, Number], ...]]
"""A delta that its item could not take: declaration, group key, and what to add."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the record lies in its stream that an entry of the quarantine is of."""

    shard: str
    sequence: str
    created: float


@dataclass(eq=False, slots=True)
class Change:
    """Request of a delivered record to the fold, or of the one that quarantine held, once it is redriven."""

    delivered: InitVar[Record]
    redriven: InitVar[Record | None] = None
    _: KW_ONLY
    delta: QuarantinedDelta | None = None  # What a redrive adds instead of images.
    names: frozenset[str] | None = None  # The declarations that count it; None for all.
    is_foreign: bool | None = None  # Its item lies in a source table, not that of the counts; None if they are one.
    failure: str = ""  # Why what was redriven cannot be read.
    origin: Origin | None = None  # The record that was put aside; None of a delivered one.
    aside: Aside = field(default_factory=dict)
    record: Record = field(init=False)
    sequence: str = field(init=False)
    created: float | None = field(init=False)

    def __post_init__(self, delivered: Record, redriven: Record | None) -> None:
        arrival = delivered["dynamodb"]
        self.sequence = padded(arrival["SequenceNumber"])
        self.created = arrival.get("ApproximateCreationDateTime")
        self.record = delivered if redriven is None else redriven

    def is_aside(self, image_name: str, declaration: str) -> bool:
        names, _ = self.aside.get(image_name, ((), False))
        return names is None or declaration in names


def changes_of(records: Iterable[Record]) -> list[Change]:
    return [Change(record) for record in records]


def inserted(image: Image, created: float | None, sequence: int = 0) -> Record:
    """Return the record of an insertion that no stream delivers."""
    change = {NEW: image, "SequenceNumber": str(sequence), "ApproximateCreationDateTime": created}
    return {"eventName": "INSERT", "dynamodb": change}


def single_image(record: Record, image_name: str) -> Record:
    removed = OLD if image_name == NEW else NEW
    return {**record, "dynamodb": {name: value for name, value in record["dynamodb"].items() if name != removed}}


def is_erasure(record: Record) -> bool:
    """Return whether an event was erased with its counts kept, or rows of erased events were taken out of a chunk."""
    images = record["dynamodb"]
    new, old = images.get(NEW) or {}, images.get(OLD) or {}
    if CHUNK in old:
        return CHUNK in new and new.get(ERASED) != old.get(ERASED)
    if ERASED in old and record.get("eventName") == "REMOVE":
        return True
    # An event that a waiting row had taken back is inserted: no item, it has no key.
    return ERASED in new and PK not in new and record.get("eventName") == "INSERT"


def padded(sequence: str) -> str:
    """Pad a sequence number, so that string order is number order."""
    if len(sequence) > SEQUENCE_DIGITS or not sequence.isdecimal():
        raise MalformedImageError(f"invalid sequence number {sequence!r:.80}: expected 1 to {SEQUENCE_DIGITS} digits")
    return sequence.zfill(SEQUENCE_DIGITS)


def stream_number(sequence: str) -> str:
    """Return a padded sequence number as streams write it: 21 digits at least."""
    # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_SequenceNumberRange.html
    return sequence.lstrip("0").zfill(21)


def created_of(record: Record) -> float:
    """Return when the record was created, in seconds since 1970; 0 if it does not say."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime") or 0)


def is_expiry(record: Record, ttl: str | None = TTL) -> bool:
    """Return whether the TTL process deleted the item; or anyone, once its TTL (the attribute `ttl`) had passed."""
    # Rows erased from a chunk have expired, too: what takes events back is a row of its own, and erased with them.
    if is_erasure(record):
        return True
    if record.get("eventName") != "REMOVE":
        return False
    identity = record.get("userIdentity") or {}
    if identity.get("type") == "Service" and identity.get("principalId") == _TTL_PRINCIPAL:
        return True
    if ttl is None:
        return False
    # A replica in another Region passes on the deletions of its TTL process as if a user had made them.
    change = record["dynamodb"]
    expires_at, created = change[OLD].get(ttl, {}).get("N"), change.get("ApproximateCreationDateTime")
    return None not in (expires_at, created) and 0 <= created - float(expires_at) < MAX_TTL_AGE


class Origins:
    """Separates records of the table `own` from those of the table with the ARN `source`; None if there is no other."""

    def __init__(self, own: str, source: str | None) -> None:
        self._own, self._source = own.rpartition("/")[2], source

    def is_foreign(self, record: Mapping[str, Any]) -> bool | None:
        """Return whether a record, or Lambda's event, is of the source table; None if that is the table of counts."""
        if self._source is None:
            return None
        table = table_of(arn := str(record.get("eventSourceARN", "")))
        # First by the whole ARN: a table of another account or Region may have the same name.
        if table == self._source:
            return True
        if table.rpartition("/")[2] == self._own:
            return False
        raise MalformedImageError(
            f"invalid eventSourceARN={arn!r:.200}: expected a stream of the table {self._own!r} or of {self._source!r}"
        )

    def shard(self, name: str, event: Mapping[str, Any]) -> str:
        """Return a shard's name in the table, by that which Lambda has: with its table, if that is another."""
        # The end of a tumbling window has no records.
        if self._source is None or not self.is_foreign((event.get("Records") or [event])[0]):
            return name
        return f"{name}@{self._source.rpartition('/')[2]}"

    def ttl_of(self, declarations: Iterable[Declaration]) -> TtlOf:
        sources = [declaration.source for declaration in declarations]
        [foreign, *_] = [source._table_keys.ttl for source in sources if isinstance(source, Items)] or [None]
        return lambda record: foreign if self.is_foreign(record) else TTL


def table_of(stream: str) -> str:
    """Return the ARN of the table that a stream is of, by the stream's ARN."""
    return stream.partition("/stream/")[0]


ONE_TABLE: Final = Origins("", None)
