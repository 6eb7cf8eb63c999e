"""Events as DynamoDB items."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.table_schema import PK, SK, TTL, TYPE, is_reserved
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from boto3.dynamodb.types import TypeSerializer


def event_item(table: Table, event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """Typed item of an event; `InvalidArgumentError` if an attribute cannot be stored, is reserved or missing."""
    return with_ttl(table, event, typed_item(event, values))


def with_ttl(table: Table, event: Event, item: dict[str, Any]) -> dict[str, Any]:
    """The item, to be deleted once the event's retention is over."""
    if event.retention is not None:
        item[TTL] = {"N": str(int(table.clock() + event.retention.total_seconds()))}
    return item


def typed_item(event: Event | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Typed attributes of an item; for an event with its key and type."""
    if not isinstance(values, Mapping):
        raise InvalidArgumentError("values", values, "a mapping of attribute names to values")
    if event is None:
        return {name: _typed(name, value) for name, value in values.items()}
    for name in values:
        if not isinstance(name, str) or not name or is_reserved(name):
            raise InvalidArgumentError("values", name, "attribute names that are not reserved (pk, sk, ttl, _…)")
    item = {name: _typed(name, value) for name, value in values.items()}
    if event.version is not None and not {"S", "N"} & item.get(event.version, {}).keys():
        raise InvalidArgumentError(event.version, values.get(event.version), "a string or number: the event's version")
    item[PK] = {"S": event.pk_template.render(values)}
    item[SK] = {"S": event.sk_template.render(values)}
    item[TYPE] = {"S": event.name}
    return item


def key_item(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """Key and typed key fields of an event."""
    key = {PK: {"S": event.pk_template.render(values)}, SK: {"S": event.sk_template.render(values)}}
    return {**{name: _typed(name, values[name]) for name in event.fields}, **key}


@cache
def _serializer() -> TypeSerializer:
    # Imported here: the aggregator accepts nothing, so its cold start need not wait for boto3.
    from boto3.dynamodb.types import TypeSerializer  # noqa: PLC0415

    return TypeSerializer()


def _typed(name: str, value: Any) -> dict[str, Any]:
    if type(value) is str and type(name) is str and value.isascii() and name.isascii():
        return {"S": value}  # Nearly every attribute is one: the serializer takes five times as long.
    try:
        typed = dict(_serializer().serialize(value))
        _require_unicode(name, name)
        _require_unicode(name, value)
    except InvalidArgumentError:
        raise
    except Exception as error:  # noqa: BLE001
        # The serializer raises errors of many kinds: its own, the decimal module's, Unicode errors.
        raise InvalidArgumentError(name, value, f"a value DynamoDB can store ({error})") from None
    return typed


def _require_unicode(name: str, value: Any) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(name, value, "valid Unicode (it holds a lone surrogate)") from None
    elif isinstance(value, Mapping):
        for key, part in value.items():
            _require_unicode(name, key)
            _require_unicode(name, part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            _require_unicode(name, part)
