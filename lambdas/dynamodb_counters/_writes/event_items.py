"""Events and values as DynamoDB items, and back."""

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


def event_item(table: Table, event: Event, values: Mapping[str, Any], kind: str | None = None) -> dict[str, Any]:
    """Make the item that stands for an event.

    Parameters
    ----------
    table : Table
        Its clock decides when the event may be forgotten.
    event : Event
        What kind of event it is.
    values : mapping of str to object
        Its attributes; those of the key must be strings or numbers.
    kind : str, optional
        The item's type. Default: the event's name.

    Returns
    -------
    dict
        The item, typed as DynamoDB wants it.

    Raises
    ------
    InvalidArgumentError
        An attribute cannot be stored, is reserved, or misses from the key.
    """
    item = typed_item(event, values)
    item[TYPE] = {"S": kind or event.name}
    if event.retention is not None:
        item[TTL] = {"N": str(int(table.clock() + event.retention.total_seconds()))}
    return item


def typed_item(event: Event | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Type the attributes of an event, with its key; or of an item that is none.

    Parameters
    ----------
    event : Event or None
        What kind of event it is.
    values : mapping of str to object
        Its attributes; those of the key must be strings or numbers.

    Returns
    -------
    dict
        The item, typed as DynamoDB wants it.

    Raises
    ------
    InvalidArgumentError
        An attribute cannot be stored, is reserved in an event, or misses from the key.
    """
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


@cache
def _serializer() -> TypeSerializer:
    # Imported here: the aggregator accepts nothing, and its cold start need not wait for boto3.
    from boto3.dynamodb.types import TypeSerializer  # noqa: PLC0415

    return TypeSerializer()


def _typed(name: str, value: Any) -> dict[str, Any]:
    try:
        typed = dict(_serializer().serialize(value))
        _require_unicode(name, name)
        _require_unicode(name, value)
    except InvalidArgumentError:
        raise
    except Exception as error:  # noqa: BLE001
        # The serializer answers with errors of many kinds: of its own, of the decimal module, of Unicode.
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
