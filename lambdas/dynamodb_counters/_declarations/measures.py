"""Measures: what a group keeps, the attributes that hold it, and how to read them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from dynamodb_counters._declarations.checks import is_name, require, require_attribute, require_no_member
from dynamodb_counters._items.conversions import Number, format_number, require_storable
from dynamodb_counters._items.schema import is_reserved

MAX_BINS: Final = 100
MOMENT: Final = ".t"  # Ends the attribute with changes of a level times the seconds since their bucket began.
DIVISION: Final = Context(prec=38)  # As many digits as DynamoDB keeps.

Value = TypeVar("Value")


class Frozen(dict[str, Value]):
    """A dict that refuses changes, and has a hash."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("declarations do not change: make another one by dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def call_text(declaration: Any) -> str:
    """Return the repr: a call that makes it, of all that is not by default."""
    values = [(part, getattr(declaration, part.name)) for part in fields(declaration) if part.init]
    pairs = [(part.name, value) for part, value in values if value != part.default]
    texts = [f"{name}={value.__name__ if isinstance(value, type) else repr(value)}" for name, value in pairs]
    return f"{type(declaration).__name__}({', '.join(texts)})"


def ascending(argument: str, numbers: Any, limit: int, least: int = 0) -> tuple[Number, ...]:
    """Return the numbers of a sequence, each greater than the one before; refuse others, too many and too few."""
    is_sequence = isinstance(numbers, Sequence) and not isinstance(numbers, str | bytes)
    require(is_sequence, argument, numbers, "a sequence of numbers")
    stored = tuple(require_storable(argument, number) for number in numbers)
    is_allowed = least <= len(stored) <= limit and all(low < high for low, high in pairwise(stored))
    require(is_allowed, argument, numbers, f"1 to {limit} ascending numbers")
    return stored


class _OfNumber:
    __slots__ = ()
    attribute: Any

    def __post_init__(self) -> None:
        require_attribute("attribute", self.attribute)
        require_no_member("attribute", [self.attribute])
        for argument in ("cap", "default"):
            if (number := getattr(self, argument, None)) is not None:
                require_storable(argument, number)


class _OneAttribute:
    __slots__ = ()

    def _attributes(self, name: str) -> tuple[str, ...]:
        return (name,)

    def _read(self, name: str, numbers: Mapping[str, Number]) -> Number:
        return numbers.get(name, 0)


@dataclass(frozen=True, slots=True)
class Count(_OneAttribute):
    """The number of items."""


@dataclass(frozen=True, slots=True)
class Sum(_OneAttribute, _OfNumber):
    """The exact sum of a number attribute.

    Parameters
    ----------
    attribute : str
        A number attribute; an item without it goes to quarantine, unless there is a `default`.
    cap : int, Decimal or None, optional
        Most that one item adds. Default: no limit.
    default : int, Decimal or None, optional
        Number that stands for an attribute that is missing or null. Default: none.
    """

    attribute: str
    cap: Number | None = None
    default: Number | None = None


@dataclass(frozen=True, slots=True)
class Average(_OfNumber):
    """The average of a number attribute: sum and count are kept exactly and divided when read.

    Parameters
    ----------
    attribute, default
        As in `Sum`.
    """

    attribute: str
    default: Number | None = None

    def _attributes(self, name: str) -> tuple[str, ...]:
        return (f"{name}.sum", f"{name}.count")

    def _read(self, name: str, numbers: Mapping[str, Number]) -> Number | None:
        total, count = (numbers.get(attribute, 0) for attribute in self._attributes(name))
        if not count:
            return None
        average = DIVISION.divide(Decimal(total), Decimal(count))
        return int(average) if average == average.to_integral_value() else average


@dataclass(frozen=True, slots=True)
class Histogram(_OfNumber):
    """How many items have which values of a number attribute.

    Parameters
    ----------
    attribute, default
        As in `Sum`.
    exactly, bounds : sequence of int or Decimal
        One of them: up to 100 ascending numbers, each a bin of items with exactly that value, or from that to below the
        next; the last of `bounds` has no end, and a bin such as ``<0`` what is below the first.
    """

    attribute: str
    exactly: Sequence[Number] = ()
    bounds: Sequence[Number] = ()
    default: Number | None = None

    def __post_init__(self) -> None:
        _OfNumber.__post_init__(self)
        for argument in ("exactly", "bounds"):
            object.__setattr__(self, argument, ascending(argument, getattr(self, argument), MAX_BINS))
        require(bool(self.exactly) != bool(self.bounds), "exactly", self.exactly, "bins for either exactly or bounds")

    @property
    def _names(self) -> tuple[Number | str, ...]:
        return (*self.exactly, *(f"<{format_number(first)}" for first in self.bounds[:1]), *self.bounds)

    def _attributes(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}.{part if isinstance(part, str) else format_number(part)}" for part in self._names)

    def _read(self, name: str, numbers: Mapping[str, Number]) -> dict[Number | str, Number]:
        counts = (numbers.get(attribute, 0) for attribute in self._attributes(name))
        return dict(zip(self._names, counts, strict=True))

    def _bin_indexes(self, value: Number) -> range:
        """Return the index in `_names` of the bin that a value counts in, if there is one."""
        index = bisect_right(self.exactly or self.bounds, value)
        if self.bounds:
            return range(index, index + 1)
        return range(index - (value in self.exactly[index - 1 : index]), index)


@dataclass(frozen=True, slots=True)
class TimeWeighted(_OfNumber):
    """A level that changes, such as seats or gigabytes in use: its value at any time, and its sum over time.

    The measure of a `Window` without a retention: each event says by how much the level changes, and when. It keeps the
    sum of the changes and that of the changes times their moments; GB-hours and seat-days come of these two.

    Parameters
    ----------
    attribute, default
        As in `Sum`: the change, below 0 if the level falls.
    """

    attribute: str
    default: Number | None = None

    def _attributes(self, name: str) -> tuple[str, ...]:
        return (name, name + MOMENT)


Measure: TypeAlias = Count | Sum | Average | Histogram
MEASURES: Final = (Count, Sum, Average, Histogram)


def measures_of(declaration: str, mapping: Any, keywords: Mapping[str, Measure]) -> Frozen[Measure]:
    """Return measures from keywords or from a mapping; from neither, a count under the declaration's name."""
    for name, value in keywords.items():
        allowed = "a measure such as Count(), or the name of another argument"
        require(isinstance(value, (*MEASURES, type)), name, value, allowed)
    require(mapping is None or not keywords, "measures", mapping, "keyword arguments or one mapping, not both")
    measures: Any = (keywords or {declaration: Count()}) if mapping is None else mapping
    is_mapping = isinstance(measures, Mapping) and measures
    require(is_mapping, "measures", measures, "at least one measure, such as {'views': Count()}")
    for name, measure in measures.items():
        allowed = "names of letters, digits, '-' and '_' that are not reserved"
        require(is_name(name) and not is_reserved(name), "measures", name, allowed)
        require(isinstance(measure, MEASURES), "measures", measure, "a Count(), Sum(…), Average(…) or Histogram(…)")
    return Frozen(measures)
