"""Conditions on an item's attributes, written like boto3's ``Attr``, and how an image's attributes are read.

Comparisons follow DynamoDB: values of different types are never equal and have no order; a missing attribute satisfies
only ``not_exists`` and ``ne``. Unlike there, null is missing, as in an event's optional attribute.

A path is an attribute name, or names joined by dots that lead through maps. It is one `literal` name, dots and all,
where an aggregate's items are read. Readers raise `MalformedImageError` for an image without a usable attribute.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.conversions import Number, format_number, parse_number, require_storable
from dynamodb_counters._items.keys import DEFAULT_MARK, DERIVED_MARK, derivation, parts_of
from dynamodb_counters._items.schema import MAX_NUMBER_DIGITS
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

TypedValue: TypeAlias = Mapping[str, Any]
Image: TypeAlias = Mapping[str, TypedValue]  # An item as a stream record has it: attribute name to {type: value}.
Predicate: TypeAlias = Callable[[Image], bool]
Operand: TypeAlias = str | int | Decimal | bool

LIST_MARK: Final = "[]"
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "begins_with")


def is_plain(field: str) -> bool:
    return not any(mark in field for mark in (".", LIST_MARK, DERIVED_MARK, DEFAULT_MARK))


def reader(path: str, *, literal: bool = False) -> Callable[[Image], TypedValue | None]:
    """Return a function that finds an attribute's typed value, or None."""
    first, *rest = [path] if literal else path.split(".")
    if not rest:
        return lambda image: image.get(first)

    def read(image: Image) -> TypedValue | None:
        value = image.get(first)
        for name in rest:
            value = value.get("M", {}).get(name) if value is not None else None
        return value

    return read


def number_reader(path: str, *, literal: bool = False, default: Number | None = None) -> Callable[[Image], Number]:
    find = reader(path, literal=literal)

    def read_any(image: Image) -> Number:
        value = find(image)
        if default is not None and is_absent(value):
            return default
        text = present(value, path).get("N")
        if text is None:
            raise MalformedImageError(f"attribute {path!r} is not a number")
        # Emulators store numbers that DynamoDB refuses; the fold's arithmetic could not take them.
        return require_storable(path, parse_number(text))

    if not literal and "." in path:
        return read_any

    def read(image: Image) -> Number:
        # Hot path, runs for every sum and record: nearly always a short whole number.
        try:
            text = image[path]["N"]
            return int(text) if len(text) <= MAX_NUMBER_DIGITS else read_any(image)
        except (KeyError, ValueError):
            return read_any(image)

    return read


def text_reader(field: str, *, literal: bool = False) -> Callable[[Image], str]:
    """Return a function that reads the text a string or number has in a key, or what is derived of it."""
    path, name, default = parts_of(field, literal=literal)
    find, derived = reader(path, literal=literal), derivation(name)

    def read_any(image: Image) -> str:
        value = find(image)
        if default is not None and is_absent(value):
            return default
        return _text(present(value, path), path) if derived is None else derived.text(present(value, path))

    if path != field or (not literal and "." in path):
        return read_any

    def read(image: Image) -> str:
        # Hot path, runs for every field, aggregate and record: nearly always a string.
        try:
            text: str = image[path]["S"]
            return text
        except KeyError:
            return read_any(image)

    return read


def texts_reader(path: str) -> Callable[[Image], list[str]]:
    """Return a function that reads the text of each different member of a list or set; the path ends in ``[]``."""
    find = reader(path.removesuffix(LIST_MARK))

    def read(image: Image) -> list[str]:
        value = present(find(image), path)
        kind = next((kind for kind in ("L", "SS", "NS") if kind in value), None)
        if kind is None:
            raise MalformedImageError(f"attribute {path!r} is neither a list nor a set of strings or numbers")
        members = value["L"] if kind == "L" else [{kind[0]: text} for text in value[kind]]
        return list(dict.fromkeys([_text(member, path) for member in members]))

    return read


def is_absent(value: TypedValue | None) -> bool:
    return value is None or "NULL" in value


def present(value: TypedValue | None, path: str) -> TypedValue:
    if value is None:
        raise MalformedImageError(f"attribute {path!r} is missing")
    return value


def _text(value: TypedValue, path: str) -> str:
    if "S" in value:
        return str(value["S"])
    if "N" in value:
        return format_number(parse_number(value["N"]))
    raise MalformedImageError(f"attribute {path!r} is neither a string nor a number, which a key needs")


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of an item, built by `Attr` and combined with ``&``, ``|`` and ``~``.

    Parameters
    ----------
    operator : str
        ``eq``, ``ne``, ``lt``, ``le``, ``gt``, ``ge``, ``begins_with``, ``exists``, ``and``, ``or`` or ``not``.
    attribute : str or None
        The attribute tested; None for ``and``, ``or`` and ``not``.
    operands : tuple
        Values to compare with, or the combined conditions.
    """

    operator: str
    attribute: str | None
    operands: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", tuple(self.operands))

    @property
    def _tests(self) -> Iterator[tuple[str, str, tuple[Operand, ...]]]:
        """Attribute, operator and operands of every test of one attribute."""
        if self.attribute is not None:
            yield self.attribute, self.operator, self.operands
        else:
            yield from (test for part in self.operands for test in part._tests)

    @property
    def _attributes(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._tests)

    @property
    def _required(self) -> frozenset[str]:
        """The attributes without which it never holds."""
        if self.operator in ("ne", "not"):
            return frozenset()
        if self.attribute is not None:
            return frozenset((self.attribute,))
        combine = frozenset.union if self.operator == "and" else frozenset.intersection
        return combine(*(part._required for part in self.operands))

    def __bool__(self) -> bool:
        expected = "conditions combined with &, | and ~, not with 'and', 'or', 'not'"
        raise InvalidArgumentError("condition", self, expected)

    def __and__(self, other: Condition) -> Condition:
        return Condition("and", None, (self, other)) if isinstance(other, Condition) else NotImplemented

    def __or__(self, other: Condition) -> Condition:
        return Condition("or", None, (self, other)) if isinstance(other, Condition) else NotImplemented

    def __invert__(self) -> Condition:
        return Condition("not", None, (self,))


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute of an item, to build a `Condition` from.

    Parameters
    ----------
    name : str
        Attribute name; dots lead into maps: ``"address.city"``.

    Examples
    --------
    >>> Attr("bytes").gt(0)
    Condition(operator='gt', attribute='bytes', operands=(0,))
    >>> is_paid = Attr("status").eq("paid") & ~Attr("test").exists()
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("name", self.name, "an attribute name")

    def eq(self, value: Operand) -> Condition:
        """Test whether the attribute equals `value`."""
        return self._compare("eq", value)

    def ne(self, value: Operand) -> Condition:
        """Test whether the attribute does not equal `value`, or is missing."""
        return self._compare("ne", value)

    def lt(self, value: Operand) -> Condition:
        """Test whether the attribute is less than `value`."""
        return self._compare("lt", value)

    def le(self, value: Operand) -> Condition:
        """Test whether the attribute is less than or equal to `value`."""
        return self._compare("le", value)

    def gt(self, value: Operand) -> Condition:
        """Test whether the attribute is greater than `value`."""
        return self._compare("gt", value)

    def ge(self, value: Operand) -> Condition:
        """Test whether the attribute is greater than or equal to `value`."""
        return self._compare("ge", value)

    def between(self, low: Operand, high: Operand) -> Condition:
        """Test whether the attribute is between `low` and `high`, both included."""
        return self.ge(low) & self.le(high)

    def is_in(self, values: list[Operand]) -> Condition:
        """Test whether the attribute equals one of `values`."""
        if not isinstance(values, list | tuple) or not values:
            raise InvalidArgumentError("values", values, "a list of at least one value")
        return Condition("or", None, tuple(self.eq(value) for value in values))

    def begins_with(self, prefix: str) -> Condition:
        """Test whether the attribute is a string that begins with `prefix`."""
        if not isinstance(prefix, str):
            raise InvalidArgumentError("prefix", prefix, "a str")
        return self._compare("begins_with", prefix)

    def exists(self) -> Condition:
        """Test whether the attribute exists, with any value but null."""
        return Condition("exists", self.name)

    def not_exists(self) -> Condition:
        """Test whether the attribute does not exist, or is null."""
        return ~self.exists()

    def _compare(self, name: str, value: Operand) -> Condition:
        if isinstance(value, bool) and name not in ("eq", "ne"):
            raise InvalidArgumentError("value", value, "a str, int or Decimal, because booleans have no order")
        if not isinstance(value, str | bool):
            require_storable("value", value)
        return Condition(name, self.name, (value,))


def compile_condition(condition: Condition, *, literal: bool = False) -> Predicate:
    """Return a function that tests an item image; `literal` as for `reader`."""
    name, attribute = condition.operator, condition.attribute
    if name in ("and", "or"):
        parts = [compile_condition(part, literal=literal) for part in condition.operands]
        combine = all if name == "and" else any
        return lambda image: combine(part(image) for part in parts)
    if name == "not":
        part = compile_condition(condition.operands[0], literal=literal)
        return lambda image: not part(image)
    if attribute is None or name not in ("exists", *_COMPARISONS):
        raise InvalidArgumentError("operator", name, "a known operator with its attribute")
    find = reader(attribute, literal=literal)
    if name == "exists":
        return lambda image: not is_absent(find(image))
    compare: Callable[[Any, Any], bool] = str.startswith if name == "begins_with" else getattr(operator, name)
    operand, unequal = condition.operands[0], name == "ne"
    kind = "BOOL" if isinstance(operand, bool) else "S" if isinstance(operand, str) else "N"
    # DynamoDB orders strings by UTF-8 bytes, Python by code points: the same order.
    read: Callable[[Any], Any] = parse_number if kind == "N" else lambda value: value

    def holds(image: Image) -> bool:
        value = (find(image) or {}).get(kind)
        return unequal if value is None else compare(read(value), operand)

    return holds
