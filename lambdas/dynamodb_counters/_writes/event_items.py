"""Events as DynamoDB items."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, DecimalException
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dynamodb_counters._declarations import Event
from dynamodb_counters._declarations.attribute_values import require_attributes
from dynamodb_counters._items.conversions import converted
from dynamodb_counters._items.decimals import require_storable
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS, PK, SK, TTL, TYPE, is_reserved
from dynamodb_counters._table import Table
from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from boto3.dynamodb.types import TypeSerializer


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
    item = {name: _typed(name, value) for name, value in values.items()}
    if event._declared_attributes is not None:
        require_attributes(event._declared_attributes, item)
    if event.version is not None and not {"S", "N"} & item.get(event.version, {}).keys():
        raise InvalidArgumentError(event.version, values.get(event.version), "a string or number: the event's version")
    item[PK] = {"S": event._pk_template.render(values)}
    item[SK] = {"S": event._sk_template.render(values)}
    item[TYPE] = {"S": event.name}
    return item


def require_mapping(values: object) -> None:
    if not isinstance(values, Mapping):
        raise InvalidArgumentError("values", values, "a mapping of attribute names to values")


def key_item(event: Event, values: Mapping[str, Any]) -> dict[str, Any]:
    key = {PK: {"S": event._pk_template.render(values)}, SK: {"S": event._sk_template.render(values)}}
    return {**{name: _typed(name, values[name]) for name in event.fields}, **key}


@cache
def _serializer() -> TypeSerializer:
    # Imported here: the aggregator accepts nothing, so its cold start need not wait for boto3.
    from boto3.dynamodb.types import TypeSerializer  # noqa: PLC0415

    return TypeSerializer()


def _typed(name: str, value: Any) -> dict[str, Any]:
    if type(value) is str and type(name) is str and value.isascii() and name.isascii() and len(name) <= _NAME_BYTES:
        return {"S": value}  # Nearly every attribute is one.
    _require_name(name, name)
    return _typed_value(name, value, _MOST_LEVELS)


def _typed_value(name: str, value: Any, levels: int) -> dict[str, Any]:  # noqa: PLR0911
    """Values that JSON holds; boto3's serializer takes several times as long, so it gets only what is left."""
    if not levels:
        raise InvalidArgumentError(name, type(value), f"a value of at most {_MOST_LEVELS} nested levels")
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _require_unicode(name, value)
        return {"S": value}
    if kind is int and -_BEYOND < value < _BEYOND:
        return {"N": str(value)}
    if kind is Decimal and _is_plain(value):
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


def _is_plain(value: Decimal) -> bool:
    """Whether it is far from every limit of DynamoDB's numbers."""
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, int) and len(digits) <= MAX_NUMBER_DIGITS and -50 <= exponent <= 50  # noqa: PLR2004


def _converted(name: str, value: Any, levels: int) -> dict[str, Any]:
    if (plain := converted(name, value)) is not value:
        return _typed_value(name, plain, levels)
    if isinstance(value, list | tuple):
        return _typed_value(name, list(value), levels)
    if isinstance(value, Mapping):
        return _typed_value(name, dict(value), levels)
    if isinstance(value, set | frozenset):
        members = [(member, converted(name, member)) for member in value]
        value = {plain for _, plain in members} if any(plain is not member for member, plain in members) else value
    return _serialized(name, value)


def _serialized(name: str, value: Any) -> dict[str, Any]:
    _require_storable(name, value)
    try:
        return dict(_serializer().serialize(value))
    except DecimalException:
        raise InvalidArgumentError(name, value, f"a number of at most {MAX_NUMBER_DIGITS} digits") from None
    except Exception as error:  # noqa: BLE001
        # The serializer raises errors of many kinds: its own, the decimal module's, Unicode errors.
        raise InvalidArgumentError(name, value, f"a value DynamoDB can store ({error!s:.200})") from None


def _require_storable(name: str, value: Any) -> None:
    """Refuse what the serializer takes and DynamoDB does not: for a value in a chunk, nothing else would."""
    if isinstance(value, str):
        _require_unicode(name, value)
    elif isinstance(value, Decimal):
        require_storable(name, value)
    elif isinstance(value, set | frozenset):
        if not value:
            raise InvalidArgumentError(name, value, "a set that is not empty")
        for member in value:
            _require_storable(name, member)


def _require_name(argument: str, name: Any) -> None:
    if type(name) is str and name.isascii() and 0 < len(name) <= _NAME_BYTES:
        return
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(argument, name, "names that are strings and not empty")
    _require_unicode(argument, name)
    if len(name.encode()) > _NAME_BYTES:
        raise InvalidArgumentError(argument, name, f"names of at most {_NAME_BYTES} bytes")


def _require_unicode(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, text, "valid Unicode (it holds a lone surrogate)") from None
