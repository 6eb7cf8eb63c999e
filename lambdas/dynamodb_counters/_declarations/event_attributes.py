"""Attributes of events: by types, as JSON Schema, and whether what is sent or declared fits them."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, Literal, TypeAlias, get_args

from dynamodb_counters._declarations.checks import require_attribute, require_bool, require_choice, require_count
from dynamodb_counters._declarations.measures import Count, Frozen, Measure, TimeWeighted, shown
from dynamodb_counters._items.conditions import LIST_MARK, Condition, Image, TypedValue
from dynamodb_counters._items.conversions import (
    Number,
    canonical_time,
    format_number,
    parse_number,
    plain_value,
    require_storable,
)
from dynamodb_counters._items.derived_fields import ORDER, is_time, parts_of
from dynamodb_counters._items.table_schema import is_reserved
from dynamodb_counters.errors import InvalidArgumentError

_SCALARS: Final[dict[Any, tuple[type, str | None]]] = {
    **{kind: (kind, None) for kind in (str, int, Decimal, bool, bytes, dict, object)},
    float: (Decimal, None),
    datetime: (str, "date-time"),
    date: (str, "date"),
    Any: (object, None),
}
"""Type and format of the attribute."""

_LISTS: Final = (list, set, tuple, frozenset)
_LIMITS: Final = {"ge": "minimum", "le": "maximum"} | {name: name for name in ("min_length", "max_length", "pattern")}
"""How pydantic and annotated-types call what an attribute has, too."""


def described(kind: Any) -> dict[str, Any] | None:  # noqa: PLR0911
    """Arguments of an `Attribute` that a type says; None if it says nothing of what DynamoDB stores."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        found = described(arguments[0])
        return found and found | _limits(arguments[1:])
    if origin in (typing.Union, types.UnionType):
        others = [each for each in arguments if each is not types.NoneType]
        found = described(others[0]) if len(others) == 1 else None
        return found and found | {"required": False}
    if origin is typing.Literal:
        return _choice(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice([member.value for member in kind])
    if kind in _LISTS or (origin in _LISTS and (origin is not tuple or arguments[1:] == (...,))):
        return {"type": list, "of": arguments[0] if arguments else None}
    if origin in (dict, Mapping) and arguments == (str, Any):
        return {"type": dict}
    # By its name: the module also makes random ones, which nothing here may.
    if isinstance(kind, type) and (kind.__module__, kind.__name__) == ("uuid", "UUID"):
        return {"type": str, "format": "uuid"}
    try:
        scalar = _SCALARS.get(kind)
    except TypeError:
        return None
    if scalar is not None:
        return dict(zip(("type", "format"), scalar, strict=True))
    return {"type": dict, "attributes": kind} if fields_of(kind) is not None else None


def fields_of(kind: Any) -> dict[str, dict[str, Any]] | None:
    """The fields of a dataclass, TypedDict or pydantic model, as arguments of an `Attribute`; None of anything else."""
    if not isinstance(kind, type):
        return None
    _require_plain(kind)
    # Its own: a dataclass can inherit those of one of pydantic.
    models: Any = vars(kind).get("__pydantic_fields__")
    if isinstance(models, Mapping):
        return {name: _of_model(name, each) for name, each in models.items()}
    if is_dataclass(kind):
        hints = _hints(kind)
        for each in fields(kind):
            if hasattr(each.default, "is_required"):
                raise InvalidArgumentError(f"Field of {each.name!r}", each.default, "a dataclass of pydantic for it")
        return {
            each.name: {"type": hints[each.name], "required": each.default is each.default_factory is MISSING}
            for each in fields(kind)
        }
    if typing.is_typeddict(kind):
        required: frozenset[str] = kind.__required_keys__  # type: ignore[attr-defined]
        return {name: _of_typed_dict(hint, required=name in required) for name, hint in _hints(kind).items()}
    return None


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidArgumentError("attributes", kind, f"a class whose annotations can be resolved ({error})") from None


def _of_model(name: str, field: Any) -> dict[str, Any]:
    if field.validation_alias is not None:
        raise InvalidArgumentError(f"alias of {name!r}", field.validation_alias, "none: events have the field's name")
    kind = typing.Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return {"type": kind, "required": field.is_required()}


def _of_typed_dict(hint: Any, *, required: bool) -> dict[str, Any]:
    # `__required_keys__` does not know what textual annotations say, as with `from __future__ import annotations`.
    while (origin := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
        required = origin is typing.Required
        [hint] = typing.get_args(hint)
    return {"type": hint, "required": required}


def _choice(values: Iterable[Any]) -> dict[str, Any] | None:
    found = tuple(values)
    for kind in (str, int):
        if found and all(isinstance(value, kind) and not isinstance(value, bool) for value in found):
            return {"type": kind, "one_of": found}
    return None


def _limits(metadata: Iterable[Any]) -> dict[str, Any]:
    """Arguments that constraints stand for; one that none stands for is refused."""
    merged = dict[str, Any]()
    for each in metadata:
        if each is None or isinstance(each, str):
            continue  # Documentation.
        # A field of pydantic has those of its own.
        inner = getattr(each, "metadata", None)
        limits = _limits(inner) if isinstance(inner, list) else _limit(each)
        if twice := merged.keys() & limits.keys():
            raise InvalidArgumentError("constraint", each, f"no second {min(twice)}: it would not be enforced")
        merged |= limits
    return merged


def _limit(constraint: Any) -> dict[str, Any]:
    parts: Any = fields(constraint) if is_dataclass(constraint) else ()
    names = [each.name for each in parts] or [*getattr(constraint, "__dict__", ())]
    limits = {name: value for name in names if (value := getattr(constraint, name)) is not None}
    # No type takes another's text, which is strict.
    if not names or limits.keys() - _LIMITS.keys() - {"strict"}:
        raise InvalidArgumentError("constraint", constraint, f"{', '.join(_LIMITS)}: others would not be enforced")
    values = {_LIMITS[name]: value for name, value in limits.items() if name != "strict"}
    return {name: Decimal(str(value)) if isinstance(value, float) else value for name, value in values.items()}


def _require_plain(kind: type) -> None:
    """Refuse a class that demands of its fields what would not be enforced."""
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", {})
    harmless = {"extra": (None, "allow", "ignore"), "str_min_length": (None, 0), "str_max_length": (None,)}
    demands = [name for name, values in harmless.items() if config.get(name) not in values]
    for names in ("field_validators", "model_validators", "validators", "root_validators"):
        demands += getattr(getattr(kind, "__pydantic_decorators__", None), names, ())
    for hook in ("__post_init__", "model_post_init"):
        # pydantic has some of its own.
        if getattr(getattr(kind, hook, None), "__module__", "pydantic").partition(".")[0] != "pydantic":
            demands.append(hook)
    if demands or getattr(kind, "__pydantic_root_model__", False):
        allowed = f"a class of fields without {demands[0] if demands else 'RootModel'!r}, which would not be enforced"
        raise InvalidArgumentError("attributes", kind, allowed)


Format: TypeAlias = Literal["date", "date-time", "email", "ipv4", "ipv6", "uri", "uuid"]
FORMATS: Final = get_args(Format)

_NUMBERS: Final = (int, Decimal)
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
    required: bool = field(default=True, repr=False)
    one_of: Sequence[str | Number] = field(default=(), repr=False)
    pattern: str | None = field(default=None, repr=False)
    format: Format | None = field(default=None, repr=False)
    minimum: Number | None = field(default=None, repr=False)
    maximum: Number | None = field(default=None, repr=False)
    min_length: int | None = field(default=None, repr=False)
    max_length: int | None = field(default=None, repr=False)
    of: Any = field(default=None, repr=False)
    attributes: Any = field(default=None, repr=False)

    __repr__ = shown

    def __post_init__(self) -> None:
        found = described(self.type)
        if found is None:
            allowed = "str, int, Decimal, float, bool, bytes, datetime, date, UUID, an Enum or Literal, list, dict or"
            raise InvalidArgumentError("type", self.type, f"{allowed} object; a dataclass, TypedDict or pydantic model")
        self._take(found)
        require_bool("required", self.required)
        if self.format is not None:
            require_choice("format", self.format, FORMATS)
        if self.pattern is not None:
            _require_pattern(self.pattern)
        for name in ("minimum", "maximum"):
            if (limit := getattr(self, name)) is not None:
                require_storable(name, limit)
        for name in ("min_length", "max_length"):
            if (length := getattr(self, name)) is not None:
                require_count(name, length, least=0)
        self._require_fitting()

    def _take(self, found: dict[str, Any]) -> None:
        """Note what the type says; what was said besides stands."""
        if isinstance(self.one_of, str) or not isinstance(self.one_of, Sequence):
            raise InvalidArgumentError("one_of", self.one_of, "a sequence of values")
        object.__setattr__(self, "one_of", tuple(self.one_of) or found.get("one_of", ()))
        for name, value in found.items():
            if name in ("type", "required") or getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.of is not None and not isinstance(self.of, Attribute):
            object.__setattr__(self, "of", Attribute(self.of))
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


def _require_pattern(pattern: object) -> None:
    try:
        if not isinstance(pattern, str):
            raise TypeError("no text")
        re.compile(pattern)
    except (TypeError, re.error) as error:
        raise InvalidArgumentError("pattern", pattern, f"a regular expression as text ({error})") from None


AttributeTypes: TypeAlias = Mapping[str, Any] | type
"""Declared attributes: names with types or `Attribute`; or a dataclass, TypedDict or pydantic model."""


_OUTER: Final = ContextVar[tuple[Any, ...]]("outer", default=())
"""What the attributes being read are part of."""


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
    outer = _OUTER.get()
    if any(each is declared for each in outer):
        raise InvalidArgumentError("attributes", declared, "a class that does not contain itself")
    token = _OUTER.set((*outer, declared))
    try:
        return Frozen({name: _named(name, each) for name, each in found.items()})
    finally:
        _OUTER.reset(token)


def _named(name: str, declared: Any) -> Attribute:
    try:
        return declared if isinstance(declared, Attribute) else Attribute(**declared)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.argument} of {name!r}", error.value, error.expected) from None


def json_schema(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return the schema of an object with these attributes: JSON Schema of draft 7 and of OpenAPI 3.1."""
    return {
        "type": "object",
        "required": [name for name, attribute in attributes.items() if attribute.required],
        "properties": {name: _schema(attribute) for name, attribute in attributes.items()},
    }


def _schema(attribute: Attribute) -> dict[str, Any]:
    if attribute.attributes is not None:
        schema = json_schema(attribute.attributes)
    else:
        kind = _KINDS[attribute.type][2]
        schema = {"type": kind} if kind else {}
    unit = "Items" if attribute.type is list else "Length"
    given = {name: getattr(attribute, name) for name in _JSON_LIMITS}
    given |= {f"min{unit}": attribute.min_length, f"max{unit}": attribute.max_length}
    schema |= {name: _plain(value) for name, value in given.items() if value is not None}
    if attribute.one_of:
        schema["enum"] = list(map(_plain, attribute.one_of))
    if attribute.type is list:
        schema["items"] = {} if attribute.of is None else _schema(attribute.of)
    return schema if attribute.required or not schema else {"anyOf": [schema, {"type": "null"}]}


def _plain(value: str | Number) -> str | int | float:
    return float(value) if isinstance(value, Decimal) else value


_HEX: Final = "[0-9A-Fa-f]"
_KINDS: Final[dict[Any, tuple[str, str, str]]] = {
    str: ("S", "a string", "string"),
    int: ("N", "a whole number", "integer"),
    Decimal: ("N", "a number", "number"),
    bool: ("BOOL", "true or false", "boolean"),
    # It cannot be sent as JSON; what is read back is base64.
    bytes: ("B", "binary", "string"),
    dict: ("M", "a map", "object"),
    list: ("L", "a list", "array"),
    object: ("", "any value", ""),
}
"""By type: what DynamoDB calls it, its words, and what JSON calls it."""

_SETS: Final = frozenset(("SS", "NS", "BS"))


def canonical_values(attributes: Mapping[str, Attribute], item: Image, within: str = "") -> dict[str, TypedValue]:
    """Return the values of a typed item as they are stored; refuse an item that lacks what is declared."""
    stored = dict(item)
    for name, attribute in attributes.items():
        value, path = item.get(name), f"{within}{name}"
        if value is None or (not attribute.required and "NULL" in value):
            if attribute.required:
                raise InvalidArgumentError(path, None, f"{expectation(attribute)}: it is required")
            continue
        stored[name] = _canonical(path, attribute, value)
    return stored


def canonical_text(attribute: Attribute, text: str) -> str | None:
    """The text that a value of the attribute has in a key, for any of its texts; None for what is none."""
    if attribute.type not in (int, Decimal):
        return _text(attribute, text) if attribute.type is str else text
    try:
        number = parse_number(text)
    except (ValueError, ArithmeticError):
        return None
    return format_number(number) if _is_number(attribute, number) else None


def expectation(attribute: Attribute) -> str:
    """Values that are allowed, in words."""
    if attribute.one_of:
        choices = (repr(one) if isinstance(one, str) else format_number(one) for one in attribute.one_of)
        return "one of " + ", ".join(choices)
    if attribute.format is not None:
        return _FORMATS[attribute.format][1]
    if attribute.type is list:
        return "a list" if attribute.of is None else f"a list, each {expectation(attribute.of)}"
    parts = [_KINDS[attribute.type][1]]
    if attribute.pattern is not None:
        parts.append(f"that matches {attribute.pattern!r}")
    for limit, word in ((attribute.minimum, "least"), (attribute.maximum, "most")):
        if limit is not None:
            parts.append(f"of at {word} {format_number(limit)}")
    return " ".join((*parts, *_length_words(attribute)))


def _length_words(attribute: Attribute) -> list[str]:
    limits = ((attribute.min_length, "least"), (attribute.max_length, "most"))
    unit = "members" if attribute.type is list else "characters"
    return [f"of at {word} {limit} {unit}" for limit, word in limits if limit is not None]


def _canonical(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    """Return the value as it is stored."""
    kind = _KINDS[attribute.type][0]
    if kind == "S" and kind in value:
        text = _text(attribute, value[kind])
        if text is not None:
            return {kind: text}
    elif attribute.type is list and (kind in value or not _SETS.isdisjoint(value)):
        return _canonical_list(path, attribute, value)
    elif kind == "M" and kind in value:
        return {kind: canonical_values(attribute.attributes or {}, value[kind], f"{path}.")}
    elif attribute.type is object or (
        kind in value and (kind != "N" or _is_number(attribute, parse_number(value[kind])))
    ):
        return value
    raise InvalidArgumentError(path, plain_value(value), expectation(attribute))


def _canonical_list(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    [(kind, members)] = value.items()
    if not _has_length(attribute, members):
        raise InvalidArgumentError(path, plain_value(value), " ".join(["a list", *_length_words(attribute)]))
    if attribute.of is None:
        return value
    typed = members if kind == "L" else [{kind[0]: member} for member in members]
    found = [_canonical(f"{path}[{index}]", attribute.of, member) for index, member in enumerate(typed)]
    # A set holds no text twice.
    return {kind: found if kind == "L" else list(dict.fromkeys(member[kind[0]] for member in found))}


def _is_number(attribute: Attribute, number: Number) -> bool:
    return (
        (attribute.type is not int or number == int(number))
        and (attribute.minimum is None or number >= attribute.minimum)
        and (attribute.maximum is None or number <= attribute.maximum)
        and (not attribute.one_of or number in attribute.one_of)
    )


def _text(attribute: Attribute, text: str) -> str | None:
    """The canonical text; None for one that is not allowed."""
    is_allowed = (
        (not attribute.one_of or text in attribute.one_of)
        and _has_length(attribute, text)
        and (attribute.pattern is None or re.search(attribute.pattern, text) is not None)
    )
    return None if not is_allowed else text if attribute.format is None else _FORMATS[attribute.format][0](text)


def _has_length(attribute: Attribute, value: Any) -> bool:
    least, most = attribute.min_length, attribute.max_length
    return (least is None or len(value) >= least) and (most is None or len(value) <= most)


def _parsed(parse: Callable[[str], str]) -> Callable[[str], str | None]:
    def parsed(text: str) -> str | None:
        try:
            return parse(text)
        except ValueError:
            return None

    return parsed


def _matched(pattern: str) -> Callable[[str], str | None]:
    match = re.compile(pattern).fullmatch
    return lambda text: text if match(text) else None


def _ipv6(text: str) -> str:
    address = IPv6Address(text)
    # Versions of Python print an IPv4 address within another way.
    is_ipv4 = address.ipv4_mapped is not None and address.scope_id is None
    return f"::ffff:{address.ipv4_mapped}" if is_ipv4 else str(address)


_UUID: Final = _matched(f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")

_FORMATS: Final[dict[str, tuple[Callable[[str], str | None], str]]] = {
    "date": (_parsed(lambda text: date.fromisoformat(text).isoformat()), "an ISO 8601 date such as '2026-11-20'"),
    "date-time": (
        _parsed(canonical_time),
        "an ISO 8601 time with an offset and no leap second, such as '2026-11-20T10:30:00Z'",
    ),
    "email": (_matched(r"[^@\s]{1,64}@[^@\s]{1,255}"), "an email address"),
    "ipv4": (_parsed(lambda text: str(IPv4Address(text))), "an IPv4 address"),
    "ipv6": (_parsed(_ipv6), "an IPv6 address"),
    "uri": (_matched(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "a URI with its scheme"),
    "uuid": (lambda text: text.lower() if _UUID(text) else None, "a UUID of 36 characters"),
}
"""By format: the canonical text of one that has it, None for others; and its words."""


Kind: TypeAlias = Literal["a number", "a string or number", "a time"]


_ANY: Final = Attribute(object)
_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    "a number": (object, *_NUMBERS),
    "a string or number": (object, str, *_NUMBERS),
    "a time": (object, str, *_NUMBERS),
}


@dataclass(frozen=True, slots=True)
class KnownAttributes:
    """The attributes of one event, by which declarations over it are checked; without any, all is allowed."""

    event: str
    attributes: Mapping[str, Attribute] | None
    always: Collection[str | None]
    """Those that no event lacks, required or not."""

    def require_key(self, argument: str, names: Iterable[str], where: Condition | None = None) -> None:
        """Refuse fields of a key that are no attributes, have no text, or may be missing."""
        for name in names:
            path, derived, default = parts_of(name)
            kind: Kind = (
                "a string or number" if derived in ("", ORDER) else "a time" if is_time(derived) else "a number"
            )
            self.require(argument, name, kind, where, path=path, default=default, way=repr(f"{name}?none"))

    def require_measure(self, argument: str, measure: Measure | TimeWeighted, where: Condition | None) -> None:
        """Refuse to measure an attribute that is no number, or may be missing."""
        if not isinstance(measure, Count):
            self.require(argument, measure.attribute, "a number", where, default=measure.default, way="default=0")

    def require(
        self,
        argument: str,
        name: str,
        kind: Kind,
        where: Condition | None = None,
        *,
        path: str = "",
        default: str | Number | None = None,
        way: str = "",
    ) -> None:
        """Refuse an attribute, at a `path` if not by its name, that is of another kind or may be missing."""
        path, needed = path or name, frozenset[str]() if where is None else where._required
        attribute, optional = self._find(argument, name, path)
        is_no_time = attribute.one_of or (attribute.type is str and attribute.format != "date-time")
        if attribute.type not in _TYPES[kind] or (kind == "a time" and is_no_time):
            raise InvalidArgumentError(argument, name, f"{kind}; {path!r} is {expectation(attribute)}")
        for part in optional:
            whole = part.removesuffix(LIST_MARK)
            is_there = default is not None or any(f"{each}.".startswith(f"{whole}.") for each in needed)
            if not is_there:
                # No default stands for a list.
                ways = ["" if path.endswith(LIST_MARK) else way, f"where=Attr({whole!r}).exists()"]
                allowed = f"{' or '.join(filter(None, ways))}: {part!r} is not required"
                raise InvalidArgumentError(argument, name, allowed)
        if default is not None and not optional and attribute is not _ANY:
            raise InvalidArgumentError(argument, name, f"no default: {path!r} is required")

    def key_text(self, path: str, text: str) -> str:
        """The text that a value has in a key; one of another type is refused, but its limits may have been others."""
        attribute, _ = self._find("values", path, path)
        kind = Attribute(attribute.type, format=attribute.format)
        canonical = canonical_text(kind, text)
        if canonical is None:
            raise InvalidArgumentError(path, text, expectation(kind))
        return canonical

    def require_where(self, where: Condition | None) -> None:
        """Refuse a condition on what is no attribute, or that no event can satisfy."""
        for name, comparison, operands in () if where is None else where._tests:
            attribute = _ANY if is_reserved(name) else self._find("where", name, name)[0]
            for operand in operands:
                kinds = (bool,) if isinstance(operand, bool) else (str,) if isinstance(operand, str) else _NUMBERS
                if attribute.type not in (object, *kinds):
                    allowed = f"what {name!r} can be compared with: it is {expectation(attribute)}"
                    raise InvalidArgumentError("where", operand, allowed)
                if attribute.one_of and comparison in ("eq", "ne") and operand not in attribute.one_of:
                    raise InvalidArgumentError("where", operand, f"what {name!r} can be: {expectation(attribute)}")
                if isinstance(operand, str) and attribute.format and comparison in ("eq", "ne"):
                    canonical = canonical_text(Attribute(str, format=attribute.format), operand)
                    if canonical != operand:
                        allowed = expectation(attribute) if canonical is None else repr(canonical)
                        raise InvalidArgumentError("where", operand, f"{allowed}, as {name!r} is stored")

    def _find(self, argument: str, name: str, path: str) -> tuple[Attribute, list[str]]:
        """The attribute at a path, and the parts of the path that an event may lack, from the outermost on."""
        optional = list[str]()
        if self.attributes is None:
            return _ANY, optional
        known: Mapping[str, Attribute] | None = self.attributes
        found, owner, walked = _ANY, self.event, ""
        for marked in path.split("."):
            part = marked.removesuffix(LIST_MARK)
            if known is None and found.type in (dict, object):
                return _ANY, optional  # A map's members are known only if its attributes are declared.
            if known is None:
                raise InvalidArgumentError(argument, name, f"a part of a map; {owner!r} is {expectation(found)}")
            if part not in known:
                raise InvalidArgumentError(argument, name, f"attributes of {owner!r}: {', '.join(known) or 'none'}")
            found, owner = known[part], part
            walked = f"{walked}.{marked}" if walked else marked
            if not found.required and path not in self.always:
                optional.append(walked)
            if part != marked:
                if found.type not in (list, object):
                    raise InvalidArgumentError(argument, name, f"a list; {part!r} is {expectation(found)}")
                found = found.of or _ANY
            known = found.attributes
        return found, optional
