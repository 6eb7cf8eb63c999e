"""Events as DynamoDB items."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from itertools import chain, count
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.event_attributes import canonical_values
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._declarations.sources import digest_of
from dynamodb_counters._items.conditions import Image, TypedValue, present
from dynamodb_counters._items.conversions import converted, event_seconds, plain_value, require_storable, sortable_time
from dynamodb_counters._items.schema import MAX_NUMBER_DIGITS, PK, SK, TTL, TYPE, is_reserved, key_of
from dynamodb_counters._registry import Layouts, part_of
from dynamodb_counters._table import Table, ending_at, item_of, time_left
from dynamodb_counters._tiers import utc
from dynamodb_counters._writes.chunk_writes import ChunkLogs, Entry, LogKey, closing_time, write_entries
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, failed, rejected
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
_MOST_LEVELS: Final = 32
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
_NAME_BYTES: Final = 65_535
_BEYOND: Final = 10**MAX_NUMBER_DIGITS
_JSON_TYPES: Final = frozenset((str, int, bool, list, dict, type(None)))  # Of values that stand for themselves.
_MOST_NAMES: Final = 10
_ABSENT: Final = {"": None}

Values: TypeAlias = Mapping[str, Any]


def with_ttl(table: Table, event: Event, item: dict[str, Any]) -> dict[str, Any]:
    """Let the item be deleted once the event's retention is over; return it."""
    if event.retention is not None:
        item[TTL] = {"N": str(int(table.clock() + event.retention.total_seconds()))}
    return item


def typed_item(event: Event | None, values: Values) -> dict[str, Any]:
    """Return the attributes of an item; for an event with its key and type, and none that is reserved or missing."""
    require_mapping(values)
    if event is None:
        return {name: _typed(name, value) for name, value in values.items()}
    for name in values:
        if not isinstance(name, str) or not name or is_reserved(name):
            raise InvalidArgumentError("values", name, "attribute names that are not reserved (pk, sk, ttl, _…)")
    item: dict[str, Any] = {name: _typed(name, value) for name, value in values.items()}
    if event._declared_attributes is not None:
        item = canonical_values(event._declared_attributes, item)
        values = {name: item[name]["S"] if isinstance(value, str) else value for name, value in values.items()}
    if (version := event.version) is not None:
        if not {"S", "N"} & item.get(version, {}).keys():
            raise InvalidArgumentError(version, values.get(version), "a string or number: the event's version")
        declared = (event._declared_attributes or {}).get(version)
        if isinstance(values[version], datetime) or (declared is not None and declared.format == "date-time"):
            item[version] = {"S": sortable_time(item[version]["S"])}
    item[PK] = {"S": event._pk_template.render(values)}
    item[SK] = {"S": event._sk_template.render(values)}
    item[TYPE] = {"S": event.name}
    return item


def require_mapping(values: object) -> None:
    if not isinstance(values, Mapping):
        # A dataclass is not converted: what stands in it would be, too, and what it lacks.
        allowed = "a mapping of attribute names to values, such as dataclasses.asdict(…) or a model's model_dump()"
        raise InvalidArgumentError("values", values, allowed)


def key_item(event: Event, values: Values) -> dict[str, Any]:
    """Return the key of an event, and the attributes that it is made of; other values are ignored."""
    values = event._canonical({name: values[name] for name in event.fields if name in values})
    key = {PK: {"S": event._pk_template.render(values)}, SK: {"S": event._sk_template.render(values)}}
    return {**{name: _typed(name, values[name]) for name in event.fields}, **key}


def _typed(name: str, value: Any) -> dict[str, Any]:
    if type(value) is str and type(name) is str and value.isascii() and name.isascii() and len(name) <= _NAME_BYTES:
        return {"S": value}  # Nearly every attribute is one.
    _require_name(name, name)
    return _typed_value(name, value, _MOST_LEVELS)


def _typed_value(name: str, value: Any, levels: int) -> dict[str, Any]:
    if not levels:
        raise InvalidArgumentError(name, type(value), f"a value of at most {_MOST_LEVELS} nested levels")
    if type(value) not in _JSON_TYPES:
        value = converted(name, value)
    if isinstance(value, str):
        _require_unicode(name, value)
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if type(value) is int and -_BEYOND < value < _BEYOND:
        return {"N": str(value)}
    if isinstance(value, int | Decimal):
        number = Decimal(require_storable(name, value))
        if len(number.as_tuple().digits) > MAX_NUMBER_DIGITS:
            raise InvalidArgumentError(name, value, f"a number of at most {MAX_NUMBER_DIGITS} digits")
        return {"N": str(number or 0)}
    return {"NULL": True} if value is None else _typed_container(name, value, levels)


def _typed_container(name: str, value: Any, levels: int) -> dict[str, Any]:
    if isinstance(value, list | tuple):
        return {"L": [_typed_value(name, part, levels - 1) for part in value]}
    if isinstance(value, Mapping):
        for inner in value:
            _require_name(name, inner)
        return {"M": {inner: _typed_value(name, part, levels - 1) for inner, part in value.items()}}
    if isinstance(value, AbstractSet):
        # Different values may stand for the same one, which a set holds once.
        parts = dict.fromkeys(converted(name, part) for part in value)
        members = [_typed_value(name, part, levels) for part in parts]
        for kind in ("S", "N", "B"):
            if members and all(kind in member for member in members):
                return {f"{kind}S": [member[kind] for member in members]}
        raise InvalidArgumentError(name, value, "a set of strings, numbers or binaries that is not empty")
    # boto3 reads binaries as objects with a `value`.
    binary = getattr(value, "value", value)
    if isinstance(binary, bytes | bytearray):
        return {"B": bytes(binary)}
    raise InvalidArgumentError(name, value, "a value DynamoDB can store")


def _require_name(argument: str, name: Any) -> None:
    if isinstance(name, str):
        _require_unicode(argument, name)
    if not isinstance(name, str) or not 0 < len(name.encode()) <= _NAME_BYTES:
        raise InvalidArgumentError(argument, name, f"names that are strings of 1 to {_NAME_BYTES:,} bytes")


def _require_unicode(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, text, "valid Unicode (it holds a lone surrogate)") from None


def accept(table: Table, event: Event, values: Values) -> Outcome:
    now = table.clock()
    # A log of packed events may take many requests.
    longest = LONGEST_REQUEST if getattr(event, "packed", None) is None else math.inf
    with ending_at(now + min(time_left(now), longest)):
        return accept_many(table, event, [values])[0]


def accept_many(
    table: Table, event: Event, events: Iterable[Values], refusal: Callable[[Image], str | None] = lambda _: None
) -> list[Outcome]:
    """Return outcomes in the order of the events; `refusal` has the reason to reject a typed item, or None."""
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
    """Insert items, those of the same key one after the other; return their outcomes by index."""
    alike = defaultdict[tuple[str, str], list[int]](list)
    for index, item in items.items():
        alike[identity(with_ttl(table, event, item))].append(index)
    results = table.each(lambda same: [(n, insert(table, event, items[n])) for n in same], [*alike.values()])
    return dict(chain.from_iterable(results))


def retract(table: Table, event: Event, values: Values) -> bool:
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
    Layouts.of_table(table).require(event, puts=True)
    entries, outcomes, now = defaultdict[LogKey, dict[int, Entry]](dict), dict[int, Outcome](), table.clock()
    for index, item in items.items():
        values = {name: value for name, value in item.items() if name not in (PK, SK, TYPE)}
        digest = digest_of(item[PK]["S"], item[SK]["S"])
        log = _log_of(event, values, digest, now)
        if isinstance(log, Outcome):
            outcomes[index] = log
        else:
            entries[log][index] = Entry(item[PK]["S"], digest, values, retracts)
    logs = ChunkLogs.of_table(table)

    def write(key: LogKey) -> Iterable[tuple[int, Outcome]]:
        results = write_entries(table, logs.get(event, key), [*entries[key].values()])
        logs.forget(key)
        return zip(entries[key], results, strict=True)

    # A log of each part and tenant, then another of each: none waits for all the buckets of another one.
    rounds = defaultdict[str, Iterator[int]](count)
    turns = {key: next(rounds[key.part]) for key in entries}
    return outcomes | dict(chain.from_iterable(table.each(write, sorted(turns, key=turns.__getitem__))))


def _log_of(event: Event, values: Image, digest: bytes, now: float) -> LogKey | Outcome:
    """Return the log of an event, or the refusal of one that has no time, or comes too early or too late."""
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
    """Judge an event whose key is taken by `stored`: a conflict, unless the payloads are equal."""
    version, different = event.version, differences(event, image, stored)
    # An older version is a repetition: it is what came late of a source that corrects itself.
    if not different or (version is not None and version in different):
        return DUPLICATE
    names = ", ".join(map(repr, different[:_MOST_NAMES])) + (", …" if len(different) > _MOST_NAMES else "")
    values = {name: plain_value(value) for name, value in stored.items() if not is_reserved(name)}
    return Outcome(OutcomeStatus.CONFLICT, f"the stored event of this key differs in {names}", values)


def differences(event: Event, image: Image, stored: Image) -> list[str]:
    """Return in which attributes two events of the same key differ, whatever the table has added to them."""
    # In a key, 1 and "1" are the same.
    names = sorted(name for name in image.keys() | stored.keys() if not is_reserved(name) and name not in event.fields)
    return [name for name in names if _comparable(image.get(name, _ABSENT)) != _comparable(stored.get(name, _ABSENT))]


def _comparable(value: TypedValue) -> tuple[str, object]:
    """Return a typed value as DynamoDB keeps it: 1.50 as 1.5, and sets without order."""
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
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else None
            if isinstance(error, ClientError) and code == "ConditionalCheckFailedException":
                return repetition(event, item, item_of(error) or item)
            if code == "ValidationException":
                return Outcome(OutcomeStatus.REJECTED, str(error))
            outcome = failed(error)
        else:
            return ACCEPTED
    return outcome
