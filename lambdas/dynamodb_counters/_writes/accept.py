"""Accept: insert each event once; the stream does the counting. Packed events go into the next chunks of their logs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._declarations.sources import digest_of
from dynamodb_counters._items.bookkeeping import key_of
from dynamodb_counters._items.conditions import Image, TypedValue, present
from dynamodb_counters._items.conversions import event_seconds, plain_value
from dynamodb_counters._items.table_schema import PK, SK, TYPE, is_reserved
from dynamodb_counters._layouts import Layouts, part_of
from dynamodb_counters._table import Table, ending_at, item_of, time_left
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.chunk_writes import ChunkLogs, Entry, LogKey, closing_time, write_entries
from dynamodb_counters._writes.event_items import key_item, require_mapping, typed_item, with_ttl
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, failed, rejected
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError

_MOST_NAMES: Final = 10
_ABSENT: Final = {"": None}


def accept(table: Table, event: Event, values: Mapping[str, Any]) -> Outcome:
    now = table.clock()
    # A log of packed events may take many requests.
    longest = LONGEST_REQUEST if getattr(event, "packed", None) is None else math.inf
    with ending_at(now + min(time_left(now), longest)):
        return accept_many(table, event, [values])[0]


def accept_many(
    table: Table,
    event: Event,
    events: Iterable[Mapping[str, Any]],
    refusal: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
) -> list[Outcome]:
    """Outcomes in the order of the events; `refusal` has the reason to reject a typed item, or None."""
    require_declaration(event, Event)
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        raise InvalidArgumentError("events", events, "an iterable of mappings, one per event")
    outcomes: dict[int, Outcome] = {}
    items: dict[int, dict[str, Any]] = {}
    for index, values in enumerate(events):
        try:
            item = typed_item(event, values)
        except InvalidArgumentError as error:
            outcomes[index] = rejected(error)
            continue
        if (reason := refusal(item)) is None:
            items[index] = item
        else:
            outcomes[index] = Outcome(OutcomeStatus.REJECTED, reason)
    if event.packed is None:
        outcomes |= _insert_all(table, event, items)
    elif items:
        try:
            outcomes |= _log(table, event, items, retracts=False)
        except (ClientError, BotoCoreError) as error:
            outcomes |= dict.fromkeys(items, failed(error))
    return [outcomes[index] for index in range(len(outcomes))]


def _insert_all(table: Table, event: Event, items: Mapping[int, dict[str, Any]]) -> dict[int, Outcome]:
    """Insert items, those of one key one after the other; return their outcomes by index."""
    alike: dict[tuple[str, str], list[int]] = {}
    for index, item in items.items():
        alike.setdefault(identity(with_ttl(table, event, item)), []).append(index)
    done = table.each(lambda same: [(index, insert(table, event, items[index])) for index in same], [*alike.values()])
    return dict(chain.from_iterable(done))


def retract(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Delete an event; the stream takes back what it counted. Return whether there was such an event."""
    require_declaration(event, Event)
    require_mapping(values)
    item = key_item(event, values)
    if event.packed is None:
        return "Attributes" in table.client.delete_item(TableName=table.name, Key=key_of(item), ReturnValues="ALL_OLD")
    [outcome] = _log(table, event, {0: item}, retracts=True).values()
    if outcome.status == OutcomeStatus.REJECTED:
        raise InvalidArgumentError("values", dict(values), f"an event that can be accepted ({outcome.reason})")
    if outcome.status == OutcomeStatus.FAILED:
        raise UnavailableError(f"the event may not be retracted: {outcome.reason}; retract it again")
    return outcome == ACCEPTED


def _log(table: Table, event: Event, items: Mapping[int, Image], *, retracts: bool) -> dict[int, Outcome]:
    """Accept or retract packed events; return their outcomes by index."""
    Layouts.of_table(table).require(event, puts=True)
    entries, outcomes, now = dict[LogKey, dict[int, Entry]](), dict[int, Outcome](), table.clock()
    for index, item in items.items():
        values = {name: value for name, value in item.items() if name not in (PK, SK, TYPE)}
        digest = digest_of(item[PK]["S"], item[SK]["S"])
        place = _log_of(event, values, digest, now)
        if isinstance(place, Outcome):
            outcomes[index] = place
            continue
        entries.setdefault(place, {})[index] = Entry(item[PK]["S"], digest, values, retracts)
    logs = ChunkLogs.of_table(table)

    def write(key: LogKey) -> Iterable[tuple[int, Outcome]]:
        found = write_entries(table, logs.get(event, key), [*entries[key].values()])
        logs.forget(key)
        return zip(entries[key], found, strict=True)

    # A log of each part and tenant, then another of each: none waits for all the buckets of another one.
    rounds = defaultdict[str, Iterator[int]](count)
    turns = {key: next(rounds[key.part]) for key in entries}
    return outcomes | dict(chain.from_iterable(table.each(write, sorted(turns, key=turns.__getitem__))))


def _log_of(event: Event, values: Image, digest: bytes, now: float) -> LogKey | Outcome:
    """The log of an event, or the refusal of one that has no time, or comes too early or too late."""
    packed = event.packed
    assert packed is not None
    name, tolerance = packed.time, packed.future_tolerance
    try:
        seconds = event_seconds(present(values.get(name), name))
        key = LogKey(event.name, part_of(packed, digest, values), seconds - seconds % packed._bucket_seconds)
    except MalformedImageError as error:
        time = plain_value(values[name]) if name in values else None
        return rejected(InvalidArgumentError(name, time, f"the time of a packed event ({error})"))
    if tolerance is not None and seconds > now + tolerance.total_seconds():
        allowed = f"a time at most {tolerance} ahead of now"
        return rejected(InvalidArgumentError(name, utc(seconds).isoformat(), allowed))
    if closing_time(event, key.start) <= now:
        allowed = f"a time in the last {event.retention}, as the event is kept"
        return rejected(InvalidArgumentError(name, utc(seconds).isoformat(), allowed), OutcomeStatus.TOO_LATE)
    return key


def repetition(event: Event, image: Image, stored: Image) -> Outcome:
    """Outcome of an event whose key is taken by `stored`: a conflict, unless the payloads are equal."""
    version, different = event.version, differing(event, image, stored)
    # An older version is a repetition: it is what came late of a source that corrects itself.
    if not different or (version is not None and version in different):
        return DUPLICATE
    names = ", ".join(map(repr, different[:_MOST_NAMES])) + (", …" if len(different) > _MOST_NAMES else "")
    held = {name: plain_value(value) for name, value in stored.items() if not is_reserved(name)}
    return Outcome(OutcomeStatus.CONFLICT, f"the stored event of this key differs in {names}", held)


def differing(event: Event, image: Image, other: Image) -> list[str]:
    """The names of the attributes in which two events of one key differ, whatever the table has added to them."""
    # In a key, 1 and "1" are the same.
    names = sorted(name for name in image.keys() | other.keys() if not is_reserved(name) and name not in event.fields)
    return [name for name in names if _comparable(image.get(name, _ABSENT)) != _comparable(other.get(name, _ABSENT))]


def _comparable(value: TypedValue) -> tuple[str, object]:
    """A typed value, to be compared as DynamoDB keeps it: 1.50 as 1.5, and sets without order."""
    [(kind, content)] = value.items()
    match kind:
        case "L":
            return kind, [*map(_comparable, content)]
        case "M":
            return kind, {name: _comparable(part) for name, part in content.items()}
    return kind, plain_value(value)


def insert(table: Table, event: Event, item: dict[str, Any]) -> Outcome:
    """Put the typed item of an event unless its key is taken, by the same or a greater version."""
    request: dict[str, Any] = {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({PK})",
        # A refused put is charged for the item it met, and this returns it at no more.
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if (version := event.version) is not None:
        request["ConditionExpression"] += " OR #version < :version"
        request["ExpressionAttributeNames"] = {"#version": version}
        request["ExpressionAttributeValues"] = {":version": item[version]}
    outcome = Outcome(OutcomeStatus.FAILED, "no time was left")
    for _ in table.tries() if time_left(table.clock()) > 0 else ():
        try:
            table.client.put_item(**request)
        except (ClientError, BotoCoreError) as error:
            answer: Any = error.response["Error"] if isinstance(error, ClientError) else {}
            if isinstance(error, ClientError) and answer["Code"] == "ConditionalCheckFailedException":
                return repetition(event, item, item_of(error) or item)
            if answer.get("Code") == "ValidationException":
                return Outcome(OutcomeStatus.REJECTED, str(error))
            outcome = failed(error)
        else:
            return ACCEPTED
    return outcome
