"""Accept: insert each event once; the stream does the counting. Packed events go into the next chunks of their logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import KEPT_LONGER
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._declarations.sources import digest_of
from dynamodb_counters._items.conditions import Image, TypedValue, present
from dynamodb_counters._items.conversions import event_seconds, plain_value
from dynamodb_counters._items.table_schema import PK, SK, TYPE, is_reserved
from dynamodb_counters._layouts import Layouts, part_of
from dynamodb_counters._table import MAX_STATEMENT_CHARACTERS, Table, calls_of, item_of, time_left
from dynamodb_counters._timeline.tiers import utc
from dynamodb_counters._writes.chunk_writes import ChunkLogs, Entry, LogKey, write_entries
from dynamodb_counters._writes.event_items import key_item, require_mapping, typed_item, with_ttl
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, failed, reason_of, rejected
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

Conflicts: TypeAlias = Literal["free", "read"]

Placed: TypeAlias = tuple[dict[LogKey, list[Entry]], dict[int, Outcome]]
"""Entries by log, and the outcomes of those that have none."""

_MOST_NAMES = 10

_TAKEN: Final = {"DuplicateItem", "DuplicateItemException", "ConditionalCheckFailedException"}
_REFUSED: Final = {"ValidationError", "ValidationException", "ItemCollectionSizeLimitExceeded"}


def accept(table: Table, event: Event, values: Mapping[str, Any]) -> Outcome:
    require_declaration(event, Event)
    if event.packed is not None:
        return accept_many(table, event, [values])[0]
    try:
        item = with_ttl(table, event, typed_item(event, values))
    except InvalidArgumentError as error:
        return rejected(error)
    return insert(table, event, item)


def accept_many(
    table: Table,
    event: Event,
    events: Iterable[Mapping[str, Any]],
    refusal: Callable[[Mapping[str, Any]], str | None] | None = None,
    conflicts: Conflicts = "free",
) -> list[Outcome]:
    """Outcomes in the order of the events; `refusal` has the reason to reject a typed item, or None."""
    require_declaration(event, Event)
    require_choice("conflicts", conflicts, get_args(Conflicts))
    if event.packed is not None and conflicts == "read":
        raise InvalidArgumentError("conflicts", conflicts, "'free': payloads of packed events are not compared")
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        raise InvalidArgumentError("events", events, "an iterable of mappings, one per event")
    outcomes: dict[int, Outcome] = {}
    items: dict[int, dict[str, Any]] = {}
    for index, values in enumerate(events):
        try:
            item = typed_item(event, values)
            if refusal is None or (reason := refusal(item)) is None:
                items[index] = item
            else:
                outcomes[index] = Outcome(OutcomeStatus.REJECTED, reason)
        except InvalidArgumentError as error:
            outcomes[index] = rejected(error)
    if event.packed is not None and items:
        outcomes |= accept_packed(table, event, items)
        items = {}
    by_key: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for index, item in items.items():
        by_key.setdefault(identity(item), {})[index] = with_ttl(table, event, item)
    groups = [list(items.values()) for items in by_key.values()]
    for items, found in zip(by_key.values(), _settle(table, event, groups, conflicts), strict=True):
        outcomes |= zip(items, found, strict=True)
    return [outcomes[index] for index in range(len(outcomes))]


def _settle(table: Table, event: Event, alike: list[list[dict[str, Any]]], conflicts: Conflicts) -> list[list[Outcome]]:
    """Insert items, given together with those of their key; return the outcomes of each key."""
    if event.version is not None:
        # PartiQL cannot say "unless newer": one call per item, and the versions of a key one after the other.
        return table.each(lambda items: [insert(table, event, item) for item in items], alike)
    first = insert_many(table, event, [items[0] for items in alike])
    if conflicts == "read" and table.bulk == "partiql":
        first = _compared(table, event, [items[0] for items in alike], first)
    return [
        [outcome, *(_repeated(table, event, items[0], outcome, item) for item in items[1:])]
        for outcome, items in zip(first, alike, strict=True)
    ]


def _compared(table: Table, event: Event, items: list[dict[str, Any]], outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, with duplicates compared to what is stored: PartiQL does not return it."""
    places = [index for index, outcome in enumerate(outcomes) if outcome == DUPLICATE]
    read = table.side_by_side(lambda index: table.read_item({name: items[index][name] for name in (PK, SK)}), places)
    compared = list(outcomes)
    for index, stored in read:
        item = items[index]
        compared[index] = failed(stored) if isinstance(stored, Exception) else repetition(event, item, stored or item)
    return compared


def _repeated(table: Table, event: Event, first: dict[str, Any], outcome: Outcome, item: dict[str, Any]) -> Outcome:
    """Outcome of an event whose key another one of the call has, which had the given outcome."""
    if not differing(event, item, first):
        return DUPLICATE if outcome == ACCEPTED else outcome
    if outcome == ACCEPTED:
        return repetition(event, item, first)
    # It may be what is stored, or may be stored where the first could not.
    return outcome if outcome.status == OutcomeStatus.FAILED else insert(table, event, item)


def retract(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Delete an event; the stream takes back what it counted. Return whether there was such an event."""
    require_declaration(event, Event)
    require_mapping(values)
    item = key_item(event, values)
    if event.packed is None:
        key = {name: item[name] for name in (PK, SK)}
        return "Attributes" in table.client.delete_item(TableName=table.name, Key=key, ReturnValues="ALL_OLD")
    placed, outcomes = _placed(table, event, {0: item}, retracts=True)
    [outcome] = (outcomes | _write(table, event, placed)).values()
    if outcome.status == OutcomeStatus.REJECTED:
        raise InvalidArgumentError("values", dict(values), f"an event that can be accepted ({outcome.reason})")
    if outcome.status == OutcomeStatus.FAILED:
        raise UnavailableError(f"the event may not be retracted: {outcome.reason}; retract it again")
    return any(entry.was_live for entries in placed.values() for entry in entries)


def accept_packed(table: Table, event: Event, items: Mapping[int, Mapping[str, Any]]) -> dict[int, Outcome]:
    try:
        entries, outcomes = _placed(table, event, items, retracts=False)
    except (ClientError, BotoCoreError) as error:
        return dict.fromkeys(items, failed(error))
    return outcomes | _write(table, event, entries)


def _placed(table: Table, event: Event, items: Mapping[int, Mapping[str, Any]], *, retracts: bool) -> Placed:
    Layouts.of_table(table).require(event, puts=True)
    entries, outcomes, now = dict[LogKey, list[Entry]](), dict[int, Outcome](), table.clock()
    for index, item in items.items():
        place = _log_entry(event, item, now, index, retracts=retracts)
        if isinstance(place, Outcome):
            outcomes[index] = place
        else:
            key, entry = place
            entries.setdefault(key, []).append(entry)
    return entries, outcomes


def _log_entry(
    event: Event, item: Mapping[str, Any], now: float, index: int, *, retracts: bool
) -> tuple[LogKey, Entry] | Outcome:
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

    # A log of each part and tenant, then another of each: none waits for all the buckets of another one.
    begun, turns = Counter[str](), dict[LogKey, int]()
    for key in entries:
        turns[key] = begun[key.part]
        begun[key.part] += 1
    # Chunks of one log follow one another; different logs have nothing to do with each other.
    for key, failure in table.side_by_side(write, sorted(turns, key=turns.__getitem__)):
        if isinstance(failure, Exception):
            raise failure
        for entry in entries[key]:
            assert entry.outcome is not None
            outcomes[entry.index] = entry.outcome
    return outcomes


def repetition(event: Event, image: Image, stored: Image) -> Outcome:
    """Outcome of an event whose key is taken by `stored`: a conflict, unless the payloads are equal."""
    version = event.version
    # An older version is a repetition: it is what came late of a source that corrects itself.
    if version is not None and not (version in stored and is_same(image[version], stored[version])):
        return DUPLICATE
    different = differing(event, image, stored)
    if not different:
        return DUPLICATE
    held = {name: plain_value(value) for name, value in stored.items() if not is_reserved(name)}
    return Outcome(OutcomeStatus.CONFLICT, f"the stored event of this key differs in {listed(different)}", held)


def differing(event: Event, image: Image, other: Image) -> list[str]:
    """The names of the attributes in which two events of one key differ, whatever the table has added to them."""
    # In a key, 1 and "1" are the same.
    names = sorted(name for name in image.keys() | other.keys() if not is_reserved(name) and name not in event.fields)
    return [name for name in names if not is_same(image.get(name, {}), other.get(name, {}))]


def listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")


def is_same(one: TypedValue, other: TypedValue) -> bool:
    """Whether typed values are equal, numbers by value and sets without order."""
    if one == other or one.keys() != other.keys():
        return one == other
    [(kind, content)] = one.items()
    known: Any = other[kind]
    match kind:
        case "L":
            return len(content) == len(known) and all(map(is_same, content, known))
        case "M":
            return content.keys() == known.keys() and all(is_same(part, known[name]) for name, part in content.items())
    # DynamoDB keeps 1.50 as 1.5.
    return bool(plain_value(one) == plain_value(other))


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
    try:
        table.client.put_item(**request)
    except (ClientError, BotoCoreError) as error:
        outcome = _outcome_of(error)
        stored = item_of(error) if isinstance(error, ClientError) else {}
        return repetition(event, item, stored) if stored and outcome == DUPLICATE else outcome
    return ACCEPTED


def insert_many(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    """Put typed items with distinct keys, each unless its key is taken."""
    if table.bulk == "put":
        return table.each(lambda item: insert(table, event, item), items)
    found = table.each(lambda chunk: _insert_chunk(table, event, chunk), calls_of(items))
    return [outcome for outcomes in found for outcome in outcomes]


def _insert_chunk(table: Table, event: Event, items: Sequence[dict[str, Any]]) -> list[Outcome]:
    statements = [_statement(table.name, item) for item in items]
    outcomes = [Outcome(OutcomeStatus.FAILED, "not tried")] * len(items)
    pending = []
    for index, statement in enumerate(statements):
        if len(statement["Statement"]) > MAX_STATEMENT_CHARACTERS:
            outcomes[index] = insert(table, event, items[index])
        else:
            pending.append(index)
    for _ in table.tries() if pending else ():
        try:
            tried = [statements[index] for index in pending]
            answers: Any = table.client.batch_execute_statement(Statements=tried)["Responses"]
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or error.response["Error"]["Code"] not in _REFUSED:
                for index in pending:
                    outcomes[index] = failed(error)
                continue
            # One bad statement can make DynamoDB refuse the whole call: sent alone, each gets its own answer.
            for index in pending:
                outcomes[index] = insert(table, event, items[index])
            break
        for index, answer in zip(pending, answers, strict=True):
            outcomes[index] = _outcome_of(ClientError(answer, "INSERT")) if "Error" in answer else ACCEPTED
        pending = [index for index in pending if outcomes[index].status == OutcomeStatus.FAILED]
        if not pending:
            break
    return outcomes


def _outcome_of(error: Exception) -> Outcome:
    answer: Any = error.response["Error"] if isinstance(error, ClientError) else {}
    if answer.get("Code") in _TAKEN:
        return DUPLICATE
    return Outcome(OutcomeStatus.REJECTED, reason_of(answer)) if answer.get("Code") in _REFUSED else failed(error)


def _statement(table_name: str, item: dict[str, Any]) -> BatchStatementRequestTypeDef:
    names = ",".join("'" + name.replace("'", "''") + "':?" for name in item)
    return {"Statement": f'INSERT INTO "{table_name}" VALUE {{{names}}}', "Parameters": list(item.values())}
