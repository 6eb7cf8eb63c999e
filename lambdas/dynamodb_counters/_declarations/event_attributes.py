"""Attributes of events: by types, as JSON Schema, and whether what is sent or declared fits them."""

from __future__ import annotations

import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, Literal, NamedTuple, TypeAlias

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

_TYPES: Final[dict[Any, dict[str, Any]]] = {
    **{kind: {"type": kind} for kind in (str, int, Decimal, bool, bytes, dict, object)},
    float: {"type": Decimal},
    datetime: {"type": str, "format": "date-time"},
    date: {"type": str, "format": "date"},
    Any: {"type": object},
}
"""Arguments of the attribute, by types without parts."""

_LISTS: Final = (list, set, tuple, frozenset)
_DEMANDS: Final = {"ge": "minimum", "le": "maximum"} | {name: name for name in ("min_length", "max_length", "pattern")}
"""How pydantic and annotated-types call what an attribute has, too."""


def described(kind: Any) -> dict[str, Any] | None:  # noqa: PLR0911
    """Arguments of an `Attribute` that a type says; None if it says nothing of what DynamoDB stores."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        rule = described(arguments[0])
        return rule and rule | _limits(arguments[1:])
    if origin in (typing.Union, types.UnionType):
        others = [other for other in arguments if other is not types.NoneType]
        rule = described(others[0]) if len(others) == 1 else None
        return rule and rule | {"required": False}
    if origin is typing.Literal:
        return _choice(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(tuple(member.value for member in kind))
    if kind in _LISTS or (origin in _LISTS and (origin is not tuple or arguments[1:] == (...,))):
        return {"type": list, "of": arguments[0] if arguments else None}
    if origin in (dict, Mapping) and arguments == (str, Any):
        return {"type": dict}
    # By its name: the module also makes random ones, which nothing here may.
    if isinstance(kind, type) and (kind.__module__, kind.__name__) == ("uuid", "UUID"):
        return {"type": str, "format": "uuid"}
    rule = next((rule for known, rule in _TYPES.items() if kind is known), None)
    return rule or ({"type": dict, "attributes": kind} if fields_of(kind) is not None else None)


def _choice(values: tuple[Any, ...]) -> dict[str, Any] | None:
    for kind in (str, int):
        if values and all(isinstance(value, kind) and not isinstance(value, bool) for value in values):
            return {"type": kind, "one_of": values}
    return None


def fields_of(kind: Any) -> dict[str, dict[str, Any]] | None:
    """The fields of a dataclass, TypedDict or pydantic model, as arguments of an `Attribute`; None of anything else."""
    if not isinstance(kind, type):
        return None
    _require_plain(kind)
    # Its own: a dataclass can inherit those of one of pydantic.
    models: Any = vars(kind).get("__pydantic_fields__")
    if isinstance(models, Mapping):
        return {name: _of_model(name, model) for name, model in models.items()}
    if not is_dataclass(kind) and not typing.is_typeddict(kind):
        return None
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidArgumentError("attributes", kind, f"a class whose annotations can be resolved ({error})") from None
    if not is_dataclass(kind):
        required: Collection[str] = kind.__required_keys__  # type: ignore[attr-defined]
        return {name: _of_typed_dict(hint, name in required) for name, hint in hints.items()}
    for part in fields(kind):
        if hasattr(part.default, "is_required"):
            raise InvalidArgumentError(f"Field of {part.name!r}", part.default, "a dataclass of pydantic for it")
    return {
        part.name: {"type": hints[part.name], "required": part.default is part.default_factory is MISSING}
        for part in fields(kind)
    }


def _of_model(name: str, model: Any) -> dict[str, Any]:
    if model.validation_alias is not None:
        raise InvalidArgumentError(f"alias of {name!r}", model.validation_alias, "none: events have the field's name")
    kind = typing.Annotated[model.annotation, *model.metadata] if model.metadata else model.annotation
    return {"type": kind, "required": model.is_required()}


def _of_typed_dict(hint: Any, required: bool) -> dict[str, Any]:
    # `__required_keys__` does not know what textual annotations say, as with `from __future__ import annotations`.
    while (origin := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
        required = origin is typing.Required
        [hint] = typing.get_args(hint)
    return {"type": hint, "required": required}


def _limits(metadata: Iterable[Any]) -> dict[str, Any]:
    """Arguments that constraints stand for; one that none stands for is refused."""
    limits = dict[str, Any]()
    for constraint in metadata:
        if constraint is None or isinstance(constraint, str):
            continue  # Documentation.
        # A field of pydantic has those of its own.
        inner = getattr(constraint, "metadata", None)
        more = _limits(inner) if isinstance(inner, list) else _limit(constraint)
        if twice := limits.keys() & more.keys():
            raise InvalidArgumentError("constraint", constraint, f"no second {min(twice)}: it would not be enforced")
        limits |= more
    return limits


def _limit(constraint: Any) -> dict[str, Any]:
    names = [*getattr(constraint, "__dataclass_fields__", getattr(constraint, "__dict__", ()))]
    limits = {name: value for name in names if (value := getattr(constraint, name)) is not None}
    # No type takes another's text, which is strict.
    if not names or limits.keys() - _DEMANDS.keys() - {"strict"}:
        raise InvalidArgumentError("constraint", constraint, f"{', '.join(_DEMANDS)}: others would not be enforced")
    values = {_DEMANDS[name]: value for name, value in limits.items() if name != "strict"}
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


class _Limit(NamedTuple):
    """An argument of an `Attribute`: types it fits, its check, JSON's keyword, its words, and whether a value fits."""

    types: tuple[type, ...]
    require: Callable[[str, Any], object]
    keyword: str
    words: str
    allows: Callable[[Any, Any], Any]


def _require_pattern(name: str, pattern: object) -> None:
    try:
        if not isinstance(pattern, str):
            raise TypeError("no text")
        re.compile(pattern)
    except (TypeError, re.error) as error:
        raise InvalidArgumentError(name, pattern, f"a regular expression as text ({error})") from None


_NUMBERS: Final = (int, Decimal)
_LENGTHS: Final = ((str, list), partial(require_count, least=0))
_LIMITS: Final = {
    "pattern": _Limit((str,), _require_pattern, "pattern", "that matches {}", re.search),
    "minimum": _Limit(_NUMBERS, require_storable, "minimum", "of at least {}", operator.le),
    "maximum": _Limit(_NUMBERS, require_storable, "maximum", "of at most {}", operator.ge),
    "min_length": _Limit(*_LENGTHS, "min{}", "of at least {} {}", lambda least, value: least <= len(value)),
    "max_length": _Limit(*_LENGTHS, "max{}", "of at most {} {}", lambda most, value: most >= len(value)),
    "one_of": _Limit((str, *_NUMBERS), lambda *_: None, "enum", "", operator.contains),
}


@dataclass(frozen=True)
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
        rule = described(self.type)
        if rule is None:
            allowed = "str, int, Decimal, float, bool, bytes, datetime, date, UUID, an Enum or Literal, list, dict or"
            raise InvalidArgumentError("type", self.type, f"{allowed} object; a dataclass, TypedDict or pydantic model")
        self._take(rule)
        require_bool("required", self.required)
        if self.format is not None:
            require_choice("format", self.format, tuple(_FORMATS))
        for name in self._limits:
            _LIMITS[name].require(name, getattr(self, name))
        fits: dict[str, tuple[type, ...]] = {"format": (str,), "of": (list,), "attributes": (dict,)}
        fits |= {name: limit.types for name, limit in _LIMITS.items()}
        for name, kinds in fits.items():
            if getattr(self, name) != getattr(Attribute, name) and self.type not in kinds:
                allowed = f"None for {self.type.__name__}, not {' or '.join(kind.__name__ for kind in kinds)}"
                raise InvalidArgumentError(name, getattr(self, name), allowed)
        for value in self.one_of:
            if isinstance(value, bool) or not isinstance(value, str if self.type is str else _NUMBERS):
                raise InvalidArgumentError("one_of", value, f"values of the type {self.type.__name__}")

    def _take(self, rule: dict[str, Any]) -> None:
        """Note what the type says; what was said besides stands."""
        if isinstance(self.one_of, str) or not isinstance(self.one_of, Sequence):
            raise InvalidArgumentError("one_of", self.one_of, "a sequence of values")
        object.__setattr__(self, "one_of", tuple(self.one_of))
        for name, value in rule.items():
            if name in ("type", "required") or getattr(self, name) == getattr(Attribute, name):
                object.__setattr__(self, name, value)
        if self.of is not None and not isinstance(self.of, Attribute):
            object.__setattr__(self, "of", Attribute(self.of))
        if self.attributes is not None:
            object.__setattr__(self, "attributes", attributes_of(self.attributes))

    @cached_property
    def _limits(self) -> tuple[str, ...]:
        """The arguments that demand something besides its type and format."""
        return tuple(name for name in _LIMITS if getattr(self, name) != getattr(Attribute, name))


AttributeTypes: TypeAlias = Mapping[str, Any] | type
"""Declared attributes: names with types or `Attribute`; or a dataclass, TypedDict or pydantic model."""


_OUTER: Final = ContextVar[tuple[Any, ...]]("outer", default=())
"""What the attributes being read are part of."""


def attributes_of(declared: AttributeTypes) -> Frozen[str, Attribute]:
    """Attributes by name, of whatever declares them."""
    parts = fields_of(declared)
    if isinstance(declared, Mapping):
        parts = {name: {"type": kind} for name, kind in declared.items()}
    if parts is None:
        allowed = "a mapping of names to types or Attribute, or a dataclass, TypedDict or pydantic model"
        raise InvalidArgumentError("attributes", declared, allowed)
    for name in parts:
        require_attribute("attributes", name)
    outer = _OUTER.get()
    if any(other is declared for other in outer):
        raise InvalidArgumentError("attributes", declared, "a class that does not contain itself")
    token = _OUTER.set((*outer, declared))
    try:
        return Frozen({name: _named(name, **part) for name, part in parts.items()})
    finally:
        _OUTER.reset(token)


def _named(name: str, type: Any, **more: Any) -> Attribute:  # noqa: A002 - as of an Attribute
    try:
        return type if isinstance(type, Attribute) else Attribute(type, **more)
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
    schema = dict(_KINDS[attribute.type][2]) if attribute.attributes is None else json_schema(attribute.attributes)
    schema |= {} if attribute.format is None else {"format": attribute.format}
    unit = "Items" if attribute.type is list else "Length"
    schema |= {_LIMITS[name].keyword.format(unit): _plain(getattr(attribute, name)) for name in attribute._limits}
    if attribute.type is list:
        schema["items"] = {} if attribute.of is None else _schema(attribute.of)
    return schema if attribute.required or not schema else {"anyOf": [schema, {"type": "null"}]}


def _plain(bound: Any) -> Any:
    if isinstance(bound, tuple):
        return [*map(_plain, bound)]
    return float(bound) if isinstance(bound, Decimal) else bound


_KINDS: Final[dict[Any, tuple[tuple[str, ...], str, dict[str, Any]]]] = {
    str: (("S",), "a string", {"type": "string"}),
    int: (("N",), "a whole number", {"type": "integer"}),
    Decimal: (("N",), "a number", {"type": "number"}),
    bool: (("BOOL",), "true or false", {"type": "boolean"}),
    # It cannot be sent as JSON; what is read back is base64.
    bytes: (("B",), "binary", {"type": "string"}),
    dict: (("M",), "a map", {"type": "object"}),
    list: (("L", "SS", "NS", "BS"), "a list", {"type": "array"}),
    object: ((), "any value", {}),
}
"""By type: what DynamoDB calls it, its words, and its JSON Schema."""


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


def _canonical(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    [kind] = value
    content = value[kind]
    plain = parse_number(content) if kind == "N" else content
    fits = kind in _KINDS[attribute.type][0] and (attribute.type is not int or plain == int(plain))
    for name in attribute._limits:
        fits = fits and _LIMITS[name].allows(getattr(attribute, name), plain)
    if fits:
        if kind == "M":
            return {kind: canonical_values(attribute.attributes or {}, content, f"{path}.")}
        if attribute.of is not None:
            members = content if kind == "L" else [{kind[0]: member} for member in content]
            members = [_canonical(f"{path}[{index}]", attribute.of, member) for index, member in enumerate(members)]
            # A set holds no text twice.
            return {kind: members if kind == "L" else list(dict.fromkeys(member[kind[0]] for member in members))}
        if attribute.format is None:
            return value
        text = canonical_text(attribute, content)
        if text is not None:
            return {kind: text}
    if attribute.type is object:
        return value
    raise InvalidArgumentError(path, plain_value(value), expectation(attribute))


def canonical_text(attribute: Attribute, text: str) -> str | None:
    """The text that a value of the type and format has in a key, for any of its texts; None for what is none."""
    try:
        if attribute.type in _NUMBERS:
            number = parse_number(text)
            return format_number(number) if attribute.type is Decimal or number == int(number) else None
        return text if attribute.format is None else _FORMATS[attribute.format][0](text)
    except (ValueError, ArithmeticError):
        return None


def expectation(attribute: Attribute) -> str:
    """Values that are allowed, in words."""
    if attribute.one_of:
        return f"one of {', '.join(map(_bound_text, attribute.one_of))}"
    unit = "members" if attribute.type is list else "characters"
    bounds = [_LIMITS[name].words.format(_bound_text(getattr(attribute, name)), unit) for name in attribute._limits]
    words = " ".join([type_words(attribute), *bounds])
    return words if attribute.of is None else f"{words}, each {expectation(attribute.of)}"


def type_words(attribute: Attribute) -> str:
    return _KINDS[attribute.type][1] if attribute.format is None else _FORMATS[attribute.format][1]


def _bound_text(bound: str | Number) -> str:
    return repr(bound) if isinstance(bound, str) else format_number(bound)


def _matched(pattern: str) -> Callable[[str], str | None]:
    match = re.compile(pattern).fullmatch
    return lambda text: text if match(text) else None


def _ipv6(text: str) -> str:
    address = IPv6Address(text)
    # Versions of Python print an IPv4 address within another way.
    is_ipv4 = address.ipv4_mapped is not None and address.scope_id is None
    return f"::ffff:{address.ipv4_mapped}" if is_ipv4 else str(address)


_UUID: Final = _matched("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_FORMATS: Final[dict[str, tuple[Callable[[str], str | None], str]]] = {
    "date": (lambda text: date.fromisoformat(text).isoformat(), "an ISO 8601 date such as '2026-11-20'"),
    "date-time": (canonical_time, "an ISO 8601 time with an offset and no leap second, such as '2026-11-20T10:30:00Z'"),
    "email": (_matched(r"[^@\s]{1,64}@[^@\s]{1,255}"), "an email address"),
    "ipv4": (lambda text: str(IPv4Address(text)), "an IPv4 address"),
    "ipv6": (_ipv6, "an IPv6 address"),
    "uri": (_matched(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "a URI with its scheme"),
    "uuid": (lambda text: _UUID(text.lower()), "a UUID of 36 characters"),
}
"""By format: the canonical text of one that has it, None or a ValueError for others; and its words."""


Kind: TypeAlias = Literal["a number", "a string or number", "a time"]

_ANY: Final = Attribute(object)


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
            kind: Kind = "a time" if is_time(derived) else "a number"
            kind = "a string or number" if derived in ("", ORDER) else kind
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
        is_kind = attribute.type in (object, *_NUMBERS) or (attribute.type is str and kind == "a string or number")
        if kind == "a time":
            is_kind = (is_kind or attribute.format == "date-time") and not attribute.one_of
        if not is_kind:
            raise InvalidArgumentError(argument, name, f"{kind}; {path!r} is {expectation(attribute)}")
        for part in optional if default is None else ():
            whole = part.removesuffix(LIST_MARK)
            if not any(f"{there}.".startswith(f"{whole}.") for there in needed):
                # No default stands for a list.
                ways = ["" if path.endswith(LIST_MARK) else way, f"where=Attr({whole!r}).exists()"]
                allowed = f"{' or '.join(filter(None, ways))}: {part!r} is not required"
                raise InvalidArgumentError(argument, name, allowed)
        if default is not None and not optional and attribute is not _ANY:
            raise InvalidArgumentError(argument, name, f"no default: {path!r} is required")

    def key_text(self, path: str, text: str) -> str:
        """The text that a value has in a key; one of another type is refused, but its limits may have been others."""
        attribute, _ = self._find("values", path, path)
        canonical = canonical_text(attribute, text)
        if canonical is None:
            raise InvalidArgumentError(path, text, type_words(attribute))
        return canonical

    def require_where(self, where: Condition | None) -> None:
        """Refuse a condition on what is no attribute, or that no event can satisfy."""
        for name, comparison, operands in () if where is None else where._tests:
            attribute = _ANY if is_reserved(name) else self._find("where", name, name)[0]
            for operand in operands:
                types = (bool,) if isinstance(operand, bool) else (str,) if isinstance(operand, str) else _NUMBERS
                if attribute.type not in (object, *types):
                    allowed = f"what {name!r} can be compared with: it is {expectation(attribute)}"
                    raise InvalidArgumentError("where", operand, allowed)
                if comparison not in ("eq", "ne"):
                    continue
                if attribute.one_of and operand not in attribute.one_of:
                    raise InvalidArgumentError("where", operand, f"what {name!r} can be: {expectation(attribute)}")
                if isinstance(operand, str) and (canonical := canonical_text(attribute, operand)) != operand:
                    allowed = type_words(attribute) if canonical is None else repr(canonical)
                    raise InvalidArgumentError("where", operand, f"{allowed}, as {name!r} is stored")

    def _find(self, argument: str, name: str, path: str) -> tuple[Attribute, list[str]]:
        """The attribute at a path, and the parts of the path that an event may lack, from the outermost on."""
        attribute, owner, known, walked, optional = _ANY, self.event, self.attributes, "", list[str]()
        for marked in path.split("."):
            part = marked.removesuffix(LIST_MARK)
            if known is None and attribute.type in (dict, object):
                return _ANY, optional  # A map's members are known only if its attributes are declared.
            if known is None:
                raise InvalidArgumentError(argument, name, f"a part of a map; {owner!r} is {expectation(attribute)}")
            if part not in known:
                raise InvalidArgumentError(argument, name, f"attributes of {owner!r}: {', '.join(known) or 'none'}")
            attribute, owner = known[part], part
            walked = f"{walked}.{marked}" if walked else marked
            if not attribute.required and path not in self.always:
                optional.append(walked)
            if part != marked:
                if attribute.type not in (list, object):
                    raise InvalidArgumentError(argument, name, f"a list; {part!r} is {expectation(attribute)}")
                attribute = attribute.of or _ANY
            known = attribute.attributes
        return attribute, optional
