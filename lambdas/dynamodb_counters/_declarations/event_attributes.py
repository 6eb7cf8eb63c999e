"""Attributes of events: by types, as JSON Schema, and whether what is sent or declared fits them."""

from __future__ import annotations

import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeAlias

from dynamodb_counters._declarations import checks
from dynamodb_counters._declarations.measures import Count, Frozen, Measure, TimeWeighted, call_text
from dynamodb_counters._items import conversions
from dynamodb_counters._items.conditions import LIST_MARK, Condition, Image, TypedValue
from dynamodb_counters._items.conversions import Number, canonical_time, format_number, parse_number
from dynamodb_counters._items.keys import ORDER, is_time, parts_of
from dynamodb_counters._items.schema import is_reserved
from dynamodb_counters.errors import InvalidArgumentError

AttributeTypes: TypeAlias = Mapping[str, Any] | type
"""Declared attributes: names with types or `Attribute`; or a dataclass, TypedDict or pydantic model."""
Format: TypeAlias = Literal["date", "date-time", "uuid"]
Kind: TypeAlias = Literal["a number", "a string", "a string or number", "a time"]
Rule: TypeAlias = dict[str, Any]
Where: TypeAlias = Condition | None

# By type: what DynamoDB calls it, its words, and its JSON Schema.
KINDS: Final[dict[Any, tuple[tuple[str, ...], str, dict[str, Any]]]] = {
    str: (("S",), "a string", {"type": "string"}),
    int: (("N",), "a whole number", {"type": "integer"}),
    Decimal: (("N",), "a number", {"type": "number"}),
    bool: (("BOOL",), "true or false", {"type": "boolean"}),
    bytes: (("B",), "binary", {"type": "string"}),  # It cannot be sent as JSON; what is read back is base64.
    dict: (("M",), "a map", {"type": "object"}),
    list: (("L", "SS", "NS", "BS"), "a list", {"type": "array"}),
    object: ((), "any value", {}),
}
_NUMBERS: Final = (int, Decimal)
_RULES: Final[dict[Any, Rule]] = {
    **{kind: {"type": kind} for kind in (str, int, Decimal, bool, bytes, dict, object)},
    **{kind: {"type": list} for kind in (list, set, tuple, frozenset)},
    dict[str, Any]: {"type": dict},
    float: {"type": Decimal},
    datetime: {"type": str, "format": "date-time"},
    date: {"type": str, "format": "date"},
    Any: {"type": object},
}
_ALLOWED: Final = "str, int, Decimal, float, bool, bytes, datetime, date, UUID, Enum, Literal, list, dict or a class"
# How pydantic and annotated-types call what an attribute has, too.
_CONSTRAINTS: Final = {"ge": "minimum", "le": "maximum", "min_length": "min_length", "max_length": "max_length"}


def rule_of(kind: Any) -> Rule | None:  # noqa: PLR0911
    """Return what a type says of an attribute; None if it says nothing of what DynamoDB stores."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        rule = rule_of(arguments[0])
        return rule and _union(kind, [rule, *map(_constraint_rule, arguments[1:])])
    if origin in (typing.Required, typing.NotRequired):
        # As text, annotations do not show in `__required_keys__`.
        rule = rule_of(arguments[0])
        return rule and {"required": origin is typing.Required} | rule
    if origin in (typing.Union, types.UnionType):
        rules = [rule_of(member) for member in arguments if member is not types.NoneType]
        return rules[0] | {"required": False} if len(rules) == 1 and rules[0] else None
    if origin is typing.Literal:
        return _choice(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(tuple(member.value for member in kind))
    if origin in (list, set, frozenset) or (origin is tuple and arguments[1:] == (...,)):
        return {"type": list} | ({"of": arguments[0]} if arguments else {})
    # By its name: the module also makes random ones, which nothing here may.
    if isinstance(kind, type) and (kind.__module__, kind.__name__) == ("uuid", "UUID"):
        return {"type": str, "format": "uuid"}
    rule = next((rule for plain, rule in _RULES.items() if kind == plain), None)
    return rule or ({"type": dict, "attributes": kind} if rules_of(kind) is not None else None)


def _choice(values: tuple[Any, ...]) -> Rule | None:
    kinds = {type(value) for value in values}
    return {"type": kinds.pop(), "one_of": values} if kinds in ({str}, {int}) else None


def _union(kind: Any, rules: Iterable[Rule]) -> Rule:
    union = Rule()
    for rule in rules:
        if repetitions := union.keys() & rule.keys():
            raise InvalidArgumentError("constraint", kind, f"no second {min(repetitions)}: it would not be enforced")
        union |= rule
    return union


def _constraint_rule(constraint: Any) -> Rule:
    """Return what a constraint says of an attribute; refuse one that nothing here would enforce."""
    if constraint is None or isinstance(constraint, str):
        return {}  # Documentation.
    inner = getattr(constraint, "metadata", None)
    if isinstance(inner, list):
        return _union(constraint, map(_constraint_rule, inner))  # A field of pydantic.
    names = getattr(constraint, "__dataclass_fields__", getattr(constraint, "__dict__", ()))
    limits = {name: value for name in names if (value := getattr(constraint, name)) is not None}
    # No type takes another's text, which is strict.
    if not names or limits.keys() - _CONSTRAINTS.keys() - {"strict"}:
        raise InvalidArgumentError("constraint", constraint, f"{', '.join(_CONSTRAINTS)}: others would not be enforced")
    values = {_CONSTRAINTS[name]: value for name, value in limits.items() if name != "strict"}
    return {name: Decimal(str(value)) if isinstance(value, float) else value for name, value in values.items()}


def rules_of(kind: Any) -> dict[str, Rule] | None:
    """Return what a dataclass, TypedDict or pydantic model says of its fields, by name; None of anything else."""
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
        return {name: {"type": hint, "required": name in required} for name, hint in hints.items()}
    for part in fields(kind):
        if hasattr(part.default, "is_required"):
            raise InvalidArgumentError(f"Field of {part.name!r}", part.default, "a dataclass of pydantic for it")
    required = [part.name for part in fields(kind) if part.default is part.default_factory is MISSING]
    return {part.name: {"type": hints[part.name], "required": part.name in required} for part in fields(kind)}


def _of_model(name: str, model: Any) -> Rule:
    if model.validation_alias is not None:
        raise InvalidArgumentError(f"alias of {name!r}", model.validation_alias, "none: events have the field's name")
    kind = typing.Annotated[model.annotation, *model.metadata] if model.metadata else model.annotation
    return {"type": kind, "required": model.is_required()}


def _require_plain(kind: type) -> None:
    """Refuse a class that demands of its fields what would not be enforced."""
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", {})
    harmless = {"extra": (None, "allow", "ignore"), "str_min_length": (None, 0), "str_max_length": (None,)}
    demands = [name for name, values in harmless.items() if config.get(name) not in values]
    for names in ("field_validators", "model_validators", "validators", "root_validators"):
        demands += getattr(getattr(kind, "__pydantic_decorators__", None), names, ())
    for hook in ("__post_init__", "model_post_init"):
        # pydantic has hooks of its own.
        if getattr(getattr(kind, hook, None), "__module__", "pydantic").partition(".")[0] != "pydantic":
            demands.append(hook)
    demands += ["RootModel"] if getattr(kind, "__pydantic_root_model__", False) else []
    if demands:
        allowed = f"a class of fields without {demands[0]!r}, which would not be enforced"
        raise InvalidArgumentError("attributes", kind, allowed)


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
    format : {"date", "date-time", "uuid"}, optional
        The form of the text: that of `date`, `datetime` or `UUID`. Default: any text.
    minimum, maximum : int or Decimal, optional
        The least and the greatest number allowed. Default: no limit.
    min_length, max_length : int, optional
        The least and the greatest number of characters of a text, or of members of a list. Default: no limit.
    of : type or Attribute, optional
        Rule for each member of a list. Default: anything.
    attributes : mapping of str to type or Attribute, optional
        Attributes of a map. Default: any.
    """

    type: Any
    required: bool = True
    one_of: Sequence[str | Number] = ()
    format: Format | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    min_length: int | None = None
    max_length: int | None = None
    of: Any = None
    attributes: Any = None
    __repr__ = call_text

    def __post_init__(self) -> None:
        rule = rule_of(self.type)
        if rule is None:
            raise InvalidArgumentError("type", self.type, _ALLOWED)
        checks.require_bool("required", self.required)
        kind: type = rule["type"]
        # Arguments come before what the type says.
        explicit = {name: getattr(self, name) for name in _ARGUMENTS if getattr(self, name) != getattr(Attribute, name)}
        for name, value in (rule | explicit).items():
            kinds, stored = _ARGUMENTS.get(name, ((kind,), None))
            allowed = f"None for {kind.__name__}, not {' or '.join(fit.__name__ for fit in kinds)}"
            checks.require(kind in kinds, name, value, allowed)
            object.__setattr__(self, name, value if stored is None else stored(name, value))
        for value in self.one_of:
            if isinstance(value, bool) or not isinstance(value, str if kind is str else _NUMBERS):
                raise InvalidArgumentError("one_of", value, f"values of the type {kind.__name__}")

    @cached_property
    def _limits(self) -> tuple[str, ...]:
        return tuple(name for name in _LIMITS if getattr(self, name) != getattr(Attribute, name))


def attributes_of(kinds: AttributeTypes) -> Frozen[Attribute]:
    rules = {name: {"type": kind} for name, kind in kinds.items()} if isinstance(kinds, Mapping) else rules_of(kinds)
    if rules is None:
        allowed = "a mapping of names to types or Attribute, or a dataclass, TypedDict or pydantic model"
        raise InvalidArgumentError("attributes", kinds, allowed)
    for name in rules:
        checks.require_attribute("attributes", name)
    try:
        return Frozen({name: _named(name, **rule) for name, rule in rules.items()})
    except RecursionError:
        raise InvalidArgumentError("attributes", kinds, "a class that does not contain itself") from None


def _named(name: str, type: Any, **arguments: Any) -> Attribute:  # noqa: A002 - as of an Attribute
    try:
        return type if isinstance(type, Attribute) else Attribute(type, **arguments)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.argument} of {name!r}", error.value, error.expected) from None


def _values(name: str, values: object) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidArgumentError(name, values, "a sequence of values")
    return tuple(values)


_LENGTH: Final = ((str, list), partial(checks.require_count, least=0))
# By argument of an attribute: the types that it fits, and what checks it and returns what is stored of it.
_ARGUMENTS: Final[dict[str, tuple[tuple[type, ...], Callable[[str, Any], object]]]] = {
    "format": ((str,), lambda name, form: checks.require_choice(name, form, tuple(_FORMATS))),
    "one_of": ((str, *_NUMBERS), _values),
    "minimum": (_NUMBERS, conversions.require_storable),
    "maximum": (_NUMBERS, conversions.require_storable),
    "min_length": _LENGTH,
    "max_length": _LENGTH,
    "of": ((list,), lambda _, kind: kind if isinstance(kind, Attribute) else Attribute(kind)),
    "attributes": ((dict,), lambda _, kinds: attributes_of(kinds)),
}
# By argument: JSON's keyword, its words, and whether it allows a value.
_LIMITS: Final[dict[str, tuple[str, str, Callable[[Any, Any], bool]]]] = {
    "minimum": ("minimum", "of at least {}", operator.le),
    "maximum": ("maximum", "of at most {}", operator.ge),
    "min_length": ("min{}", "of at least {} {}", lambda least, value: least <= len(value)),
    "max_length": ("max{}", "of at most {} {}", lambda limit, value: limit >= len(value)),
    "one_of": ("enum", "", operator.contains),
}


def json_schema(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return the schema of an object with these attributes: JSON Schema of draft 7 and of OpenAPI 3.1."""
    return {
        "type": "object",
        "required": [name for name, attribute in attributes.items() if attribute.required],
        "properties": {name: _schema(attribute) for name, attribute in attributes.items()},
    }


def _schema(attribute: Attribute) -> dict[str, Any]:
    schema = dict(KINDS[attribute.type][2]) if attribute.attributes is None else json_schema(attribute.attributes)
    schema |= {} if attribute.format is None else {"format": attribute.format}
    unit = "Items" if attribute.type is list else "Length"
    schema |= {_LIMITS[name][0].format(unit): _plain(getattr(attribute, name)) for name in attribute._limits}
    if attribute.type is list:
        schema["items"] = {} if attribute.of is None else _schema(attribute.of)
    return schema if attribute.required or not schema else {"anyOf": [schema, {"type": "null"}]}


def _plain(bound: Any) -> Any:
    if isinstance(bound, tuple):
        return [*map(_plain, bound)]
    return float(bound) if isinstance(bound, Decimal) else bound


def canonical_values(attributes: Mapping[str, Attribute], item: Image, within: str = "") -> dict[str, TypedValue]:
    """Return the values of a typed item as they are stored; refuse an item that lacks what is declared."""
    stored = dict(item)
    for name, attribute in attributes.items():
        value, path = item.get(name), f"{within}{name}"
        if value is not None and (attribute.required or "NULL" not in value):
            stored[name] = _canonical(path, attribute, value)
        elif attribute.required:
            raise InvalidArgumentError(path, None, f"{expectation(attribute)}: it is required")
    return stored


def _canonical(path: str, attribute: Attribute, value: TypedValue) -> TypedValue:
    [(kind, content)] = value.items()
    plain = parse_number(content) if kind == "N" else content
    if attribute.type is object:
        return value
    fits = kind in KINDS[attribute.type][0] and (attribute.type is not int or plain == int(plain))
    fits = fits and all(_LIMITS[name][2](getattr(attribute, name), plain) for name in attribute._limits)
    text = canonical_text(attribute, content) if fits and attribute.format is not None else ""
    if not fits or text is None:
        raise InvalidArgumentError(path, conversions.plain_value(value), expectation(attribute))
    if kind == "M":
        return {kind: canonical_values(attribute.attributes or {}, content, f"{path}.")}
    if attribute.of is not None:
        members = content if kind == "L" else [{kind[0]: member} for member in content]
        members = [_canonical(f"{path}[{index}]", attribute.of, member) for index, member in enumerate(members)]
        # A set holds no text twice.
        return {kind: members if kind == "L" else list(dict.fromkeys(member[kind[0]] for member in members))}
    return value if attribute.format is None else {kind: text}


def canonical_text(attribute: Attribute, text: str) -> str | None:
    """Return the text that a value of the type and format has in a key, for any of its texts; None for what is none."""
    try:
        if attribute.type in _NUMBERS:
            number = parse_number(text)
            return format_number(number) if attribute.type is Decimal or number == int(number) else None
        return text if attribute.format is None else _FORMATS[attribute.format][0](text)
    except (ValueError, ArithmeticError):
        return None


def expectation(attribute: Attribute) -> str:
    if attribute.one_of:
        return f"one of {', '.join(map(_bound_text, attribute.one_of))}"
    unit = "members" if attribute.type is list else "characters"
    bounds = [_LIMITS[name][1].format(_bound_text(getattr(attribute, name)), unit) for name in attribute._limits]
    words = " ".join([type_words(attribute), *bounds])
    return words if attribute.of is None else f"{words}, each {expectation(attribute.of)}"


def type_words(attribute: Attribute) -> str:
    return KINDS[attribute.type][1] if attribute.format is None else _FORMATS[attribute.format][1]


def _bound_text(bound: str | Number) -> str:
    return repr(bound) if isinstance(bound, str) else format_number(bound)


def _uuid(text: str) -> str:
    if re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text.lower()) is None:
        raise ValueError("no UUID")
    return text.lower()


# By format: the canonical text of one that has it, a ValueError for others; and its words.
_FORMATS: Final[dict[str, tuple[Callable[[str], str], str]]] = {
    "date": (lambda text: date.fromisoformat(text).isoformat(), "an ISO 8601 date such as '2026-11-20'"),
    "date-time": (canonical_time, "an ISO 8601 time with an offset and no leap second, such as '2026-11-20T10:30:00Z'"),
    "uuid": (_uuid, "a UUID of 36 characters"),
}
_ANY: Final = Attribute(object)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What declarations over a source may name; without attributes, all is allowed."""

    source: str
    attributes: Mapping[str, Attribute] | None
    always: Collection[str | None] = ()  # Those that no item lacks, required or not.
    literal: bool = False  # Whether these are fields, which are texts, and measures of an aggregate, by whole names.

    def require_all(self, argument: str, measures: Iterable[Measure | TimeWeighted], where: Where) -> None:
        """Refuse to measure an attribute that is no number, or may be missing; and what `require_where` refuses."""
        for measure in measures:
            if not isinstance(measure, Count):
                is_there = self.literal and measure.default is not None
                checks.require(not is_there, argument, measure.default, f"none: {self.source!r} has its measures")
                self.require(argument, measure.attribute, "a number", where, default=measure.default)
        self._require_where(where)

    def require_key(self, argument: str, names: Iterable[str], where: Where = None) -> None:
        """Refuse fields of a key that are no attributes, have no text, or may be missing."""
        for name in names:
            path, derivation, default = parts_of(name, literal=self.literal)
            kind: Kind = "a time" if is_time(derivation) else "a number"
            if derivation in ("", ORDER):
                kind = "a string" if self.literal else "a string or number"
            self.require(argument, name, kind, where, path=path, default=default)

    def require(
        self, argument: str, name: str, kind: Kind, where: Where = None, *, path: str = "", default: object = None
    ) -> None:
        """Refuse an attribute, at a `path` if not by its name, that is of another kind or may be missing."""
        path = path or name
        attribute, optional = self._find(argument, name, path)
        is_kind = attribute.type in (object, *_NUMBERS) and kind != "a string"
        is_kind |= attribute.format == "date-time" if kind == "a time" else attribute.type is str and kind != "a number"
        if not is_kind or (kind == "a time" and attribute.one_of):
            raise InvalidArgumentError(argument, name, f"{kind}; {path!r} is {expectation(attribute)}")
        for part in optional if default is None else ():
            whole = part.removesuffix(LIST_MARK)
            is_there = where is not None and any(f"{field}.".startswith(f"{whole}.") for field in where._required)
            allowed = f"where=Attr({whole!r}).exists(), or a default where it takes one: {part!r} is not required"
            checks.require(is_there, argument, name, allowed)

    def key_text(self, path: str, text: str) -> str:
        """Return the text that a value has in a key; refuse one of another type, but not by limits: they may change."""
        attribute, _ = self._find("values", path, path)
        canonical = canonical_text(attribute, text)
        if canonical is None:
            raise InvalidArgumentError(path, text, type_words(attribute))
        return canonical

    def _require_where(self, where: Where) -> None:
        """Refuse a condition on what is no attribute, or that no item can satisfy."""
        for name, comparison, operands in () if where is None else where._tests:
            is_own = is_reserved(name) and not self.literal
            attribute = _ANY if is_own else self._find("where", name, name)[0]
            for operand in operands:
                types = (bool,) if isinstance(operand, bool) else (str,) if isinstance(operand, str) else _NUMBERS
                allowed = f"what {name!r} can be: {expectation(attribute)}"
                checks.require(attribute.type in (object, *types), "where", operand, allowed)
                if comparison not in ("eq", "ne"):
                    continue
                checks.require(not attribute.one_of or operand in attribute.one_of, "where", operand, allowed)
                if isinstance(operand, str) and (canonical := canonical_text(attribute, operand)) != operand:
                    allowed = type_words(attribute) if canonical is None else repr(canonical)
                    raise InvalidArgumentError("where", operand, f"{allowed}, as {name!r} is stored")

    def _find(self, argument: str, name: str, path: str) -> tuple[Attribute, list[str]]:
        """Return the attribute at a path, and the parts of the path that an item may lack, from the outermost on."""
        attribute, owner, members, optional = _ANY, self.source, self.attributes, list[str]()
        steps = [path] if self.literal else path.split(".")
        for index, step in enumerate(steps):
            part = step if self.literal else step.removesuffix(LIST_MARK)
            if members is None and attribute.type in (dict, object):
                return _ANY, optional  # A map has any members unless its attributes are declared.
            if members is None:
                raise InvalidArgumentError(argument, name, f"a part of a map; {owner!r} is {expectation(attribute)}")
            if part not in members:
                raise InvalidArgumentError(argument, name, f"attributes of {owner!r}: {', '.join(members) or 'none'}")
            attribute, owner = members[part], part
            if not attribute.required and path not in self.always:
                optional.append(".".join(steps[: index + 1]))
            if part != step:
                if attribute.type not in (list, object):
                    raise InvalidArgumentError(argument, name, f"a list; {part!r} is {expectation(attribute)}")
                attribute = attribute.of or _ANY
            members = attribute.attributes
        return attribute, optional
