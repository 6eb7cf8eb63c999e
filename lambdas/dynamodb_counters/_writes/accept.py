"""Accept: insert each event once; the stream does the counting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.groups import identity
from dynamodb_counters._declarations.kinds import require_event
from dynamodb_counters._items.table_schema import PK, SK
from dynamodb_counters._table import Table
from dynamodb_counters._writes.bulk_insert import insert_many
from dynamodb_counters._writes.event_items import event_item, require_mapping, typed_item, with_ttl
from dynamodb_counters._writes.insert import ACCEPTED, DUPLICATE, Outcome, insert
from dynamodb_counters._writes.packed_accept import accept_packed, retract_packed
from dynamodb_counters.errors import InvalidArgumentError


def accept(table: Table, event: Event, values: Mapping[str, Any]) -> Outcome:
    require_event(event)
    if event.packed is not None:
        return accept_many(table, event, [values])[0]
    try:
        item = event_item(table, event, values)
    except InvalidArgumentError as error:
        return Outcome("rejected", str(error))
    return insert(table, item, event.version)


def accept_many(
    table: Table,
    event: Event,
    events: Iterable[Mapping[str, Any]],
    refusal: Callable[[Mapping[str, Any]], str | None] | None = None,
) -> list[Outcome]:
    """Outcomes in the order of the events; a repetition within the call is a duplicate of its first occurrence.

    `refusal` tells why the event of a typed item is to be rejected, or None.
    """
    require_event(event)
    outcomes: dict[int, Outcome] = {}
    items: dict[int, dict[str, Any]] = {}
    for index, values in enumerate(events):
        try:
            item = typed_item(event, values)
            reason = None if refusal is None else refusal(item)
        except InvalidArgumentError as error:
            reason = str(error)
        if reason is None:
            items[index] = item
        else:
            outcomes[index] = Outcome("rejected", reason)
    if event.packed is not None and items:
        packed, plain = accept_packed(table, event, items)
        outcomes |= packed
        items = {index: items[index] for index in plain}
    by_key: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for index, item in items.items():
        by_key.setdefault(identity(item), {})[index] = with_ttl(table, event, item)
    groups = [list(items.values()) for items in by_key.values()]
    for items, found in zip(by_key.values(), _settle(table, event, groups), strict=True):
        outcomes |= zip(items, found, strict=True)
    return [outcomes[index] for index in range(len(outcomes))]


def _settle(table: Table, event: Event, groups: list[list[dict[str, Any]]]) -> list[list[Outcome]]:
    """Insert groups of items that share a key; return the outcomes of each group."""
    if event.version is not None:
        # PartiQL cannot say "unless newer": one call per item, and the versions of a key one after the other.
        return list(table.pool.map(lambda items: [insert(table, item, event.version) for item in items], groups))
    first = insert_many(table, [items[0] for items in groups])
    return [
        [outcome] + [DUPLICATE if outcome == ACCEPTED else outcome] * (len(items) - 1)
        for outcome, items in zip(first, groups, strict=True)
    ]


def retract(table: Table, event: Event, values: Mapping[str, Any]) -> bool:
    """Delete an event; the stream takes back what it counted. Return whether there was such an event."""
    require_event(event)
    require_mapping(values)
    if event.packed is not None and (was_there := retract_packed(table, event, values)) is not None:
        return was_there
    key = {PK: {"S": event.pk_template.render(values)}, SK: {"S": event.sk_template.render(values)}}
    return "Attributes" in table.client.delete_item(TableName=table.name, Key=key, ReturnValues="ALL_OLD")
