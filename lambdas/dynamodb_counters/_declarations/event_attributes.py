"""Attributes of events: what each must be, as declared by types, and as JSON Schema for who sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, get_args

from dynamodb_counters._declarations.attribute_types import described, fields_of
from dynamodb_counters._declarations.checks import require_attribute, require_bool, require_choice, require_count
from dynamodb_counters._declarations.frozen import Frozen
from dynamodb_counters._items.decimals import Number, require_storable
from dynamodb_counters.errors import InvalidArgumentError

Format: TypeAlias = Literal["date", "date-time", "email", "ipv4", "ipv6", "uri", "uuid"]
FORMATS: Final = get_args(Format)

_NUMBERS: Final = (int, Decimal)
_JSON_TYPES: Final = {str: "string", int: "integer", Decimal: "number", bool: "boolean", list: "array", dict: "object"}
_JSON_LIMITS: Final = ("pattern", "format", "minimum", "maximum")


@dataclass(frozen=True, slots=True)
class Attribute:
    """Rule for an attribute of an `Event`.

    Parameters
    ----------
    type : type
        ``str``, ``int``, ``Decimal`` or ``float`` (any number), ``bool``, ``bytes``, ``datetime`` (ISO 8601 with an
        offset), ``date``, ``UUID``, an ``Enum``, a ``Literal``, ``list[…]`` or ``set[…]``, ``dict``, ``object``
        (anything); or a dataclass, TypedDict or pydantic model: a map with these attributes. ``… | None``: optional.
    required : bool, optional
        Whether an event without it is rejected; one that is not required may also be null. Default True.
    one_of : sequence of str or number, optional
        The only values allowed. Default: any.
    pattern : str, optional
        A regular expression found in the text; ``^`` and ``$`` tie it to the whole. Default: any text.
    format : {"date", "date-time", "email", "ipv4", "ipv6", "uri", "uuid"}, optional
        The form of the text; ``"date-time"`` has an offset from UTC. Default: any text.
    minimum, maximum : int or Decimal, optional
        The least and the greatest number allowed. Default: no limit.
    min_length, max_length : int, optional
        The least and the greatest number of characters of a text, or of members of a list. Default: no limit.
    of : type or Attribute, optional
        Rule for each member of a list. Default: anything.
    attributes : mapping of str to type or Attribute, optional
        Attributes of a map. Default: any.

    Examples
    --------
    >>> Attribute(str, one_of=["free", "pro"], required=False).one_of
    ('free', 'pro')
    >>> Attribute(list[str]).of
    Attribute(type=str)
    """

    type: Any
    required: bool = True
    one_of: Sequence[str | Number] = ()
    pattern: str | None = None
    format: Format | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    min_length: int | None = None
    max_length: int | None = None
    of: Any = None
    attributes: Any = None

    def __post_init__(self) -> None:
        found = described(self.type)
        if found is None:
            allowed = "str, int, Decimal, float, bool, bytes, datetime, date, UUID, an Enum or Literal, list, dict or"
            raise InvalidArgumentError("type", self.type, f"{allowed} object; a dataclass, TypedDict or pydantic model")
        self._take(found)
        require_bool("required", self.required)
        if self.format is not None:
            require_choice("format", self.format, FORMATS)
        try:
            re.compile("" if self.pattern is None else self.pattern)
        except (TypeError, re.error) as error:
            raise InvalidArgumentError("pattern", self.pattern, f"a regular expression ({error})") from None
        for name in ("minimum", "maximum"):
            if (limit := getattr(self, name)) is not None:
                require_storable(name, limit)
        for name in ("min_length", "max_length"):
            if (length := getattr(self, name)) is not None:
                require_count(name, length, least=0)
        self._require_fitting()

    def __repr__(self) -> str:
        """Show what is not the default."""
        names = [name for name in self.__slots__ if name != "type" and getattr(self, name) != _DEFAULTS[name]]
        said = [f"type={self.type.__name__}", *(f"{name}={getattr(self, name)!r}" for name in names)]
        return f"Attribute({', '.join(said)})"

    def _take(self, found: dict[str, Any]) -> None:
        """Note what the type says; what was said besides stands."""
        if isinstance(self.one_of, str) or not isinstance(self.one_of, Sequence):
            raise InvalidArgumentError("one_of", self.one_of, "a sequence of values")
        object.__setattr__(self, "one_of", tuple(self.one_of) or found.get("one_of", ()))
        for name, value in found.items():
            if name in ("type", "required") or getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.of is not None:
            object.__setattr__(self, "of", as_attribute(self.of))
        if self.attributes is not None:
            object.__setattr__(self, "attributes", attributes_of(self.attributes))

    def _require_fitting(self) -> None:
        """Refuse what says nothing about values of the type."""
        fits: dict[str, tuple[type, ...]] = {
            **dict.fromkeys(("pattern", "format"), (str,)),
            **dict.fromkeys(("minimum", "maximum"), _NUMBERS),
            **dict.fromkeys(("min_length", "max_length"), (str, list)),
            "of": (list,),
            "attributes": (dict,),
        }
        for name, kinds in fits.items():
            if getattr(self, name) is not None and self.type not in kinds:
                allowed = f"None for {self.type.__name__}, not {' or '.join(kind.__name__ for kind in kinds)}"
                raise InvalidArgumentError(name, getattr(self, name), allowed)
        for value in self.one_of:
            is_one = isinstance(value, str) if self.type is str else isinstance(value, _NUMBERS)
            if self.type not in (str, *_NUMBERS) or isinstance(value, bool) or not is_one:
                raise InvalidArgumentError("one_of", value, f"values of the type {self.type.__name__}")


_DEFAULTS: Final = {name: spec.default for name, spec in Attribute.__dataclass_fields__.items()}

AttributeTypes: TypeAlias = Mapping[str, Any] | type
"""Declared attributes: names with types or `Attribute`; or a dataclass, TypedDict or pydantic model."""


def as_attribute(declared: Any) -> Attribute:
    """The attribute that a type or an `Attribute` declares."""
    return declared if isinstance(declared, Attribute) else Attribute(declared)


def attributes_of(declared: AttributeTypes) -> Frozen[str, Attribute]:
    """Attributes by name, of whatever declares them."""
    if isinstance(declared, Mapping):
        found: Mapping[Any, Any] = {
            name: each if isinstance(each, Attribute) else {"type": each} for name, each in declared.items()
        }
    else:
        fields = fields_of(declared)
        if fields is None:
            allowed = "a mapping of names to types or Attribute, or a dataclass, TypedDict or pydantic model"
            raise InvalidArgumentError("attributes", declared, allowed)
        found = fields
    for name in found:
        require_attribute("attributes", name)
    return Frozen({name: _named(name, each) for name, each in found.items()})


def _named(name: str, declared: Any) -> Attribute:
    try:
        return declared if isinstance(declared, Attribute) else Attribute(**declared)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.argument} of {name!r}", error.value, error.expected) from None


def json_schema(attributes: Mapping[str, Attribute], *, openapi: bool = False) -> dict[str, Any]:
    """The schema of an object with these attributes, in draft 7; or with `openapi` as OpenAPI 3.0 has it."""
    required = [name for name, attribute in attributes.items() if attribute.required]
    return {
        "type": "object",
        # OpenAPI forbids an empty one.
        **({"required": required} if required else {}),
        "properties": {name: _schema(attribute, openapi=openapi) for name, attribute in attributes.items()},
    }


def _schema(attribute: Attribute, *, openapi: bool) -> dict[str, Any]:
    if attribute.attributes is not None:
        schema = json_schema(attribute.attributes, openapi=openapi)
    else:
        # Binary cannot be sent as JSON; what is read back is base64.
        kind = "string" if attribute.type is bytes else _JSON_TYPES.get(attribute.type)
        schema = {} if kind is None else {"type": kind}
    unit = "Items" if attribute.type is list else "Length"
    given = {name: getattr(attribute, name) for name in _JSON_LIMITS}
    given |= {f"min{unit}": attribute.min_length, f"max{unit}": attribute.max_length}
    schema |= {name: _plain(value) for name, value in given.items() if value is not None}
    if attribute.one_of:
        schema["enum"] = list(map(_plain, attribute.one_of))
    if attribute.type is list:
        schema["items"] = {} if attribute.of is None else _schema(attribute.of, openapi=openapi)
    if attribute.required or not schema:
        return schema
    return {**schema, "nullable": True} if openapi else {"anyOf": [schema, {"type": "null"}]}


def _plain(value: str | Number) -> str | int | float:
    return float(value) if isinstance(value, Decimal) else value
