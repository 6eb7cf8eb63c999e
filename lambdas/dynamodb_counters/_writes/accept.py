"""Accept: insert each event once; the stream counts it, or the transaction that records it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._control.control import Statuses
from dynamodb_counters._declarations import Aggregate, Declarable, Declaration, Event, Window
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.table_schema import COUNTED_IN, ONCE_SUFFIX, PK, SK, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.event_items import key_item, require_mapping, typed_item, with_ttl
from dynamodb_counters._writes.insert import differing, failed, insert, insert_many, repetition
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, rejected
from dynamodb_counters._writes.packed_accept import accept_packed, retract_packed
from dynamodb_counters._writes.update_conditions import only_own, writer_of
from dynamodb_counters.errors import InvalidArgumentError

Conflicts: TypeAlias = Literal["free", "read"]

MAX_COUNTED: Final = 99
"""A transaction holds 100 items at most, one of which is the event.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""


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
    return outcome if outcome.is_failed else insert(table, event, item)


def retract(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Delete an event; the stream takes back what it counted. Return whether there was such an event."""
    require_declaration(event, Event)
    require_mapping(values)
    if event.packed is not None:
        return retract_packed(table, event, values)
    item = key_item(event, values)
    key = {name: item[name] for name in (PK, SK)}
    return "Attributes" in table.client.delete_item(TableName=table.name, Key=key, ReturnValues="ALL_OLD")


def record_once(table: Table, event: Event, values: Mapping[str, Any], declarations: Iterable[Declarable]) -> Outcome:
    """Insert an event and count it, all or nothing; the stream counts it in all other declarations."""
    if not isinstance(declarations, Iterable):
        raise InvalidArgumentError("declarations", declarations, "a sequence of declarations, such as [VIEWS]")
    declared = _countable(event, declarations)
    if event.packed is not None:
        raise InvalidArgumentError("event", event.name, "one that is not packed: a transaction inserts an item")
    try:
        item = with_ttl(table, event, typed_item(event, values))
    except InvalidArgumentError as error:
        return rejected(error)
    try:
        declared = tuple(map(Statuses.of_table(table).counted, declared))
    except InvalidArgumentError as error:
        return Outcome(OutcomeStatus.FAILED, str(error))  # Until a deployment counts it.
    except (ClientError, BotoCoreError) as error:
        return failed(error)
    # While readers use a generation in pages, the stream counts in that.
    declared = tuple(each for each in declared if not isinstance(each, Aggregate) or not each.pages)
    folded = fold(Plan(declared), changes_of([inserted(item, table.clock())]))
    if folded.unfoldable:
        return Outcome(OutcomeStatus.REJECTED, folded.unfoldable[0].reason)
    item[TYPE] = {"S": event.name + ONCE_SUFFIX}
    if declared:
        # A later correction or deletion takes back exactly what has counted it.
        item[COUNTED_IN] = {"SS": [each.name for each in declared]}
    put = {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({PK})",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    # Any shard will do: it only spreads the writes of write-sharded groups.
    shard = str(table.jitter())
    writes, names = [{"Put": put}], ["", *(delta.layout.name for delta in folded.deltas)]
    for delta in folded.deltas:
        update = Update(delta.layout, delta.group, delta.measures, shard).request(table.name)
        own = only_own(update, delta.layout.name)
        writes.append({"Update": {**own, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}})
    return _transact(table, event, writes, names)


def _countable(event: Event, declarations: Iterable[Declarable]) -> tuple[Declaration, ...]:
    declared = list[Declaration]()
    for each in declarations:
        if not isinstance(each, Aggregate | Window):
            raise InvalidArgumentError("declarations", each, "Aggregates and Windows")
        if isinstance(each, Aggregate) and each.pages:
            allowed = "aggregates without pages: transactions would conflict with all groups of a page"
            raise InvalidArgumentError("declarations", each.name, allowed)
        declared.append(each)
    if len(declared) > MAX_COUNTED or any(declaration.source != event for declaration in declared):
        names = [declaration.name for declaration in declared]
        raise InvalidArgumentError("declarations", names, f"up to {MAX_COUNTED} declarations over {event.name!r}")
    return tuple(declared)


def _transact(table: Table, event: Event, writes: list[Any], names: list[str]) -> Outcome:
    outcome = Outcome(OutcomeStatus.FAILED, "not tried")
    for _ in table.tries():
        try:
            table.client.transact_write_items(TransactItems=writes)
        except (ClientError, BotoCoreError) as error:
            reasons: Any = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
            codes = [reason.get("Code") for reason in reasons]
            if codes[:1] == ["ConditionalCheckFailed"]:
                item = writes[0]["Put"]["Item"]
                return repetition(event, item, reasons[0].get("Item", item))
            if "ConditionalCheckFailed" in codes:
                refused = codes.index("ConditionalCheckFailed")
                writer = writer_of(reasons[refused].get("Item", {}), names[refused])
                reason = f"{names[refused]!r} cannot count it: an item of its group is of {writer!r}"
                return Outcome(OutcomeStatus.REJECTED, reason)
            outcome = failed(error)
        else:
            return ACCEPTED
    return outcome
