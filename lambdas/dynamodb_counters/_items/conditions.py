"""Conditions on an item's attributes, written like boto3's ``Attr``.

Comparisons follow DynamoDB: values of different types are never equal and have no order; a missing attribute satisfies
only ``not_exists`` and ``ne``. Unlike there, null is missing, as in an event's optional attribute.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.attributes import Image, TypedValue, is_absent, reader
from dynamodb_counters._items.decimals import parse_number, require_storable
from dynamodb_counters.errors import InvalidArgumentError

Predicate: TypeAlias = Callable[[Image], bool]
Operand: TypeAlias = str | int | Decimal | bool

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "begins_with": str.startswith,
}


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

    Examples
    --------
    >>> (Attr("status").eq("paid") & ~Attr("test").exists()).operator
    'and'
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
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("name", self.name, "an attribute name")

    def eq(self, value: Operand) -> Condition:
        """The attribute equals `value`."""
        return self._compare("eq", value)

    def ne(self, value: Operand) -> Condition:
        """The attribute does not equal `value`, or is missing."""
        return self._compare("ne", value)

    def lt(self, value: Operand) -> Condition:
        """The attribute is less than `value`."""
        return self._compare("lt", value)

    def le(self, value: Operand) -> Condition:
        """The attribute is less than or equal to `value`."""
        return self._compare("le", value)

    def gt(self, value: Operand) -> Condition:
        """The attribute is greater than `value`."""
        return self._compare("gt", value)

    def ge(self, value: Operand) -> Condition:
        """The attribute is greater than or equal to `value`."""
        return self._compare("ge", value)

    def between(self, low: Operand, high: Operand) -> Condition:
        """The attribute is between `low` and `high`, both included."""
        return self.ge(low) & self.le(high)

    def is_in(self, values: list[Operand]) -> Condition:
        """The attribute equals one of `values`."""
        if not isinstance(values, list | tuple) or not values:
            raise InvalidArgumentError("values", values, "a list of at least one value")
        return Condition("or", None, tuple(self.eq(value) for value in values))

    def begins_with(self, prefix: str) -> Condition:
        """The attribute is a string that begins with `prefix`."""
        if not isinstance(prefix, str):
            raise InvalidArgumentError("prefix", prefix, "a str")
        return self._compare("begins_with", prefix)

    def exists(self) -> Condition:
        """The attribute exists, with any value but null."""
        return Condition("exists", self.name)

    def not_exists(self) -> Condition:
        """The attribute does not exist, or is null."""
        return ~self.exists()

    def _compare(self, name: str, value: Operand) -> Condition:
        if isinstance(value, bool) and name not in ("eq", "ne"):
            raise InvalidArgumentError("value", value, "a str, int or Decimal, because booleans have no order")
        if not isinstance(value, str | bool):
            require_storable("value", value)
        return Condition(name, self.name, (value,))


def compile_condition(condition: Condition, *, literal: bool = False) -> Predicate:
    """A function that tests an item image; `literal` as for `reader`."""
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
    return _comparison(find, name, condition.operands[0])


_MISSING: Final[TypedValue] = {}


def _comparison(find: Callable[[Image], TypedValue | None], name: str, operand: Operand) -> Predicate:
    compare, unequal = _COMPARISONS[name], name == "ne"
    kind = "BOOL" if isinstance(operand, bool) else "S" if isinstance(operand, str) else "N"
    # DynamoDB orders strings by UTF-8 bytes, Python by code points: the same order.
    read: Callable[[Any], Any] = parse_number if kind == "N" else lambda value: value

    def holds(image: Image) -> bool:
        value = (find(image) or _MISSING).get(kind)
        return unequal if value is None else compare(read(value), operand)

    return holds
