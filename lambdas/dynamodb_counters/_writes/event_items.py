"""Events as DynamoDB items."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.event_attributes import canonical_values
from dynamodb_counters._items.conversions import converted, require_storable, sortable_time
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS, PK, SK, TTL, TYPE, is_reserved
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

_MOST_LEVELS: Final = 32
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

_NAME_BYTES: Final = 65_535
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html"""

_BEYOND: Final = 10**MAX_NUMBER_DIGITS


def with_ttl(table: Table, event: Event, item: dict[str, Any]) -> dict[str, Any]:
    """The item, to be deleted once the event's retention is over."""
    if event.retention is not None:
        item[TTL] = {"N": str(int(table.clock() + event.retention.total_seconds()))}
    return item


def typed_item(event: Event | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Typed attributes of an item; for an event with its key and type, and none that is reserved or missing."""
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
    if event.version is not None:
        item[event.version] = _version(event, values, item.get(event.version, {}))
    item[PK] = {"S": event._pk_template.render(values)}
    item[SK] = {"S": event._sk_template.render(values)}
    item[TYPE] = {"S": event.name}
    return item


def require_mapping(values: object) -> None:
    if not isinstance(values, Mapping):
        # A dataclass is not converted: what stands in it would be, too, and what it lacks.
        allowed = "a mapping of attribute names to values, such as dataclasses.asdict(…) or a model's model_dump()"
        raise InvalidArgumentError("values", values, allowed)


def _version(event: Event, values: Mapping[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    name = str(event.version)
    if not {"S", "N"} & typed.keys():
        raise InvalidArgumentError(name, values.get(name), "a string or number: the event's version")
    declared = (event._declared_attributes or {}).get(name)
    is_time = isinstance(values[name], datetime) or (declared is not None and declared.format == "date-time")
    return {"S": sortable_time(typed["S"])} if is_time else typed


def key_item(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    """The key of an event, and the attributes that it is made of; other values are ignored."""
    values = event._canonical({name: values[name] for name in event.fields if name in values})
    key = {PK: {"S": event._pk_template.render(values)}, SK: {"S": event._sk_template.render(values)}}
    return {**{name: _typed(name, values[name]) for name in event.fields}, **key}


def _typed(name: str, value: Any) -> dict[str, Any]:
    if type(value) is str and type(name) is str and value.isascii() and name.isascii() and len(name) <= _NAME_BYTES:
        return {"S": value}  # Nearly every attribute is one.
    _require_name(name, name)
    return _typed_value(name, value, _MOST_LEVELS)


def _typed_value(name: str, value: Any, levels: int) -> dict[str, Any]:
    """Values that JSON holds, by their exact types, which is fast; what is left takes longer."""
    if not levels:
        raise InvalidArgumentError(name, type(value), f"a value of at most {_MOST_LEVELS} nested levels")
    kind = type(value)
    if kind is str:
        _require_unicode(name, value)
        return {"S": value}
    if kind is int and -_BEYOND < value < _BEYOND:
        return {"N": str(value)}
    if kind is list:
        return {"L": [_typed_value(name, part, levels - 1) for part in value]}
    if kind is dict:
        for inner in value:
            _require_name(name, inner)
        return {"M": {inner: _typed_value(name, part, levels - 1) for inner, part in value.items()}}
    if kind is bool:
        return {"BOOL": value}
    return {"NULL": True} if value is None else _converted(name, value, levels)


def _converted(name: str, value: Any, levels: int) -> dict[str, Any]:
    plain = converted(name, value)
    if isinstance(value, list | tuple | Mapping):
        plain = dict(value) if isinstance(value, Mapping) else list(value)
    if plain is not value:
        return _typed_value(name, plain, levels)
    if isinstance(value, int | Decimal):
        number = Decimal(require_storable(name, value))
        if len(number.as_tuple().digits) > MAX_NUMBER_DIGITS:
            raise InvalidArgumentError(name, value, f"a number of at most {MAX_NUMBER_DIGITS} digits")
        return {"N": str(number or 0)}
    if isinstance(value, str):
        _require_unicode(name, value)
        return {"S": value}
    if isinstance(value, AbstractSet):
        return _typed_set(name, value, levels)
    # boto3 reads binaries as objects with a `value`.
    binary = getattr(value, "value", value)
    if isinstance(binary, bytes | bytearray):
        return {"B": bytes(binary)}
    raise InvalidArgumentError(name, value, "a value DynamoDB can store")


def _typed_set(name: str, value: AbstractSet[Any], levels: int) -> dict[str, Any]:
    # Different values may stand for the same one, which a set holds once.
    members = [_typed_value(name, one, levels) for one in dict.fromkeys(converted(name, each) for each in value)]
    for kind in ("S", "N", "B"):
        if members and all(kind in member for member in members):
            return {f"{kind}S": [member[kind] for member in members]}
    raise InvalidArgumentError(name, value, "a set of strings, numbers or binaries that is not empty")


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
