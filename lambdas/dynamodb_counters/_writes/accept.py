"""Accept: insert each event once; the stream does the counting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.checks import require_choice
from dynamodb_counters._declarations.composites import require_declaration
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._table import Table
from dynamodb_counters._writes.event_items import key_item, require_mapping, typed_item, with_ttl
from dynamodb_counters._writes.insert import differing, failed, insert, insert_many, repetition
from dynamodb_counters._writes.outcomes import ACCEPTED, DUPLICATE, Outcome, OutcomeStatus, rejected
from dynamodb_counters._writes.packed_accept import accept_packed, retract_packed
from dynamodb_counters.errors import InvalidArgumentError

Conflicts: TypeAlias = Literal["free", "read"]


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
    if event.packed is not None:
        return retract_packed(table, event, values)
    item = key_item(event, values)
    key = {name: item[name] for name in (PK, SK)}
    return "Attributes" in table.client.delete_item(TableName=table.name, Key=key, ReturnValues="ALL_OLD")
