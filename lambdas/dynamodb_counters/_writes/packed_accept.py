"""Accepting packed events: each is decided from its log, and what is new goes into the log's next chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import KEPT_LONGER
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._declarations.sources import digest_of
from dynamodb_counters._items.conditions import present
from dynamodb_counters._items.conversions import event_seconds, plain_value
from dynamodb_counters._items.table_schema import PK, SK, TYPE
from dynamodb_counters._layouts import Layouts, part_of
from dynamodb_counters._table import Table, time_left
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.chunk_writes import ChunkLogs, Entry, LogKey, write_entries
from dynamodb_counters._writes.event_items import key_item
from dynamodb_counters._writes.insert import failed
from dynamodb_counters._writes.outcomes import Outcome, OutcomeStatus
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError

Placed: TypeAlias = tuple[dict[LogKey, list[Entry]], dict[int, Outcome]]
"""Entries by log, and the outcomes of those that have none."""


def accept_packed(table: Table, event: Event, items: Mapping[int, Mapping[str, Any]]) -> dict[int, Outcome]:
    """Accept typed items by their index."""
    try:
        entries, outcomes = _placed(table, event, items, retracts=False)
    except (ClientError, BotoCoreError) as error:
        return dict.fromkeys(items, failed(error))
    return outcomes | _write(table, event, entries)


def retract_packed(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Take an event back and return whether it was there."""
    placed, outcomes = _placed(table, event, {0: key_item(event, values)}, retracts=True)
    [outcome] = (outcomes | _write(table, event, placed)).values()
    if outcome.status == OutcomeStatus.REJECTED:
        raise InvalidArgumentError("values", dict(values), f"an event that can be accepted ({outcome.reason})")
    if outcome.status == OutcomeStatus.FAILED:
        raise UnavailableError(f"the event may not be retracted: {outcome.reason}; retract it again")
    return any(entry.was_live for entries in placed.values() for entry in entries)


def _placed(table: Table, event: Event, items: Mapping[int, Mapping[str, Any]], *, retracts: bool) -> Placed:
    Layouts.of_table(table).require(event, puts=True)
    entries, outcomes, now = dict[LogKey, list[Entry]](), dict[int, Outcome](), table.clock()
    for index, item in items.items():
        place = _place(event, item, now, index, retracts=retracts)
        if isinstance(place, Outcome):
            outcomes[index] = place
        else:
            key, entry = place
            entries.setdefault(key, []).append(entry)
    return entries, outcomes


def _place(
    event: Event, item: Mapping[str, Any], now: float, index: int, *, retracts: bool
) -> tuple[LogKey, Entry] | Outcome:
    """An event's log and its entry there."""
    packed = event.packed
    assert packed is not None
    values = {name: value for name, value in item.items() if name not in (PK, SK, TYPE)}
    try:
        seconds = event_seconds(present(values.get(packed.time), packed.time))
        digest = digest_of(item[PK]["S"], item[SK]["S"])
        start = seconds // packed._bucket_seconds * packed._bucket_seconds
        key = LogKey(event.name, part_of(packed, digest, values), start)
    except MalformedImageError as error:
        allowed, refusal = f"the time of a packed event ({error})", None
        if packed.time in values:
            refusal = InvalidArgumentError(packed.time, plain_value(values[packed.time]), allowed)
        return Outcome(OutcomeStatus.REJECTED, str(error), error=refusal)
    end = start + packed._bucket_seconds
    over = None if event.retention is None else end + event.retention.total_seconds()
    if (refused := _refused(event, packed, seconds, over, now)) is not None:
        return refused
    expires_at = None if over is None else int(over + KEPT_LONGER)
    return key, Entry(index, item[PK]["S"], digest, values, retracts, expires_at)


def _refused(event: Event, packed: Packed, seconds: int, over: float | None, now: float) -> Outcome | None:
    """Whether an event comes too early or too late."""
    name, time, tolerance = packed.time, utc(seconds).isoformat(), packed.future_tolerance
    if tolerance is not None and seconds > now + tolerance.total_seconds():
        error = InvalidArgumentError(name, time, f"a time at most {tolerance} ahead of now")
        return Outcome(OutcomeStatus.REJECTED, f"{name!r} lies {seconds - now:.0f} s in the future", error=error)
    if over is not None and over <= now:
        error = InvalidArgumentError(name, time, f"a time in the last {event.retention}, as the event is kept")
        return Outcome(OutcomeStatus.TOO_LATE, f"{name!r} is {time}, which is remembered no more", error=error)
    return None


def _write(table: Table, event: Event, entries: Mapping[LogKey, list[Entry]]) -> dict[int, Outcome]:
    logs, packed, outcomes = ChunkLogs.of_table(table), event.packed, dict[int, Outcome]()
    assert packed is not None

    def write(key: LogKey) -> None:
        if time_left(table.clock()) <= 0:
            for entry in entries[key]:
                entry.outcome = Outcome(OutcomeStatus.FAILED, "no time was left for its log")
            return
        log = logs.get(event, key, entries[key][0].expires_at)
        write_entries(table, log, entries[key], packed.chunk_bytes)
        logs.forget()

    # Chunks of one log follow one another; different logs have nothing to do with each other.
    for key, failure in table.side_by_side(write, _in_turn(entries)):
        if isinstance(failure, Exception):
            raise failure
        for entry in entries[key]:
            assert entry.outcome is not None
            outcomes[entry.index] = entry.outcome
    return outcomes


def _in_turn(keys: Iterable[LogKey]) -> list[LogKey]:
    """A log of each part and tenant, then another of each: none waits for all the buckets of another one."""
    begun, turns = Counter[str](), dict[LogKey, int]()
    for key in keys:
        turns[key] = begun[key.part]
        begun[key.part] += 1
    return sorted(turns, key=turns.__getitem__)
