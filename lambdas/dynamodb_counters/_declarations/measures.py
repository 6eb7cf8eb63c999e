"""Measures: what a group keeps, which attributes it takes, and how they read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final, Literal, TypeAlias

from dynamodb_counters._declarations.checks import require_attribute
from dynamodb_counters._items.decimals import Number, format_number, require_storable
from dynamodb_counters.errors import InvalidArgumentError

MAX_BINS: Final = 100

Value: TypeAlias = Number | Mapping[Number, Number] | None
"""How a measure reads: a number; for a histogram a number a bin; None for the average of nothing."""

_DIVISION: Final = Context(prec=38)  # as many digits as DynamoDB keeps


@dataclass(frozen=True, slots=True)
class Count:
    """How many items there are: each adds 1."""

    def attributes(self, name: str) -> tuple[str, ...]:
        """Name the attributes that hold it."""
        return (name,)

    def read(self, name: str, numbers: Mapping[str, Number]) -> Number:
        """Read it from the numbers of an item."""
        return numbers.get(name, 0)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a number attribute, exactly.

    Parameters
    ----------
    attribute : str
        A number in every item the aggregate looks at; an item without it goes to quarantine.
    cap : int, Decimal or None, optional
        Most that one item adds. Default: no cap.

    Examples
    --------
    >>> Sum("paths", cap=12).cap
    12
    """

    attribute: str
    cap: Number | None = None

    def __post_init__(self) -> None:
        require_attribute("attribute", self.attribute)
        if self.cap is not None:
            require_storable("cap", self.cap)

    def attributes(self, name: str) -> tuple[str, ...]:
        """Name the attributes that hold it."""
        return (name,)

    def read(self, name: str, numbers: Mapping[str, Number]) -> Number:
        """Read it from the numbers of an item."""
        return numbers.get(name, 0)


@dataclass(frozen=True, slots=True)
class Average:
    """The average of a number attribute: its sum and count are kept, exactly, and divided when read.

    Parameters
    ----------
    attribute : str
        A number in every item the aggregate looks at; an item without it goes to quarantine.
    """

    attribute: str

    def __post_init__(self) -> None:
        require_attribute("attribute", self.attribute)

    def attributes(self, name: str) -> tuple[str, ...]:
        """Name the attributes that hold it: sum and count."""
        return (f"{name}.sum", f"{name}.count")

    def read(self, name: str, numbers: Mapping[str, Number]) -> Number | None:
        """Read it from the numbers of an item; None where nothing was counted."""
        total, count = (numbers.get(attribute, 0) for attribute in self.attributes(name))
        if not count:
            return None
        average = _DIVISION.divide(Decimal(total), Decimal(count))
        return int(average) if average == average.to_integral_value() else average


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many items have which value of a number attribute.

    Parameters
    ----------
    attribute : str
        A number in every item the aggregate looks at; an item without it goes to quarantine.
    exactly : sequence of int or Decimal, optional
        A bin for each of these values.
    at_least : sequence of int or Decimal, optional
        A bin for each of these, which holds all values from it on.
    bounds : sequence of int or Decimal, optional
        A bin for each of these, which holds the values from it to before the next; the last one is open.

    Raises
    ------
    InvalidArgumentError
        Not just one of the three kinds, or bins that are not 1 to 100 rising numbers.

    Examples
    --------
    >>> Histogram("paths", exactly=range(1, 13)).bins[-1]
    12
    """

    attribute: str
    exactly: Sequence[Number] = ()
    at_least: Sequence[Number] = ()
    bounds: Sequence[Number] = ()

    def __post_init__(self) -> None:
        require_attribute("attribute", self.attribute)
        for argument in ("exactly", "at_least", "bounds"):
            bins = getattr(self, argument)
            if not isinstance(bins, Iterable) or isinstance(bins, Mapping):
                raise InvalidArgumentError(argument, bins, "a sequence of numbers")
            object.__setattr__(self, argument, tuple(bins))
        given = [bins for bins in (self.exactly, self.at_least, self.bounds) if bins]
        if len(given) != 1:
            raise InvalidArgumentError("exactly", self.exactly, "bins for just one of exactly, at_least and bounds")
        for number in self.bins:
            require_storable(self.kind, number)
        if len(self.bins) > MAX_BINS or any(low >= high for low, high in zip(self.bins, self.bins[1:], strict=False)):
            raise InvalidArgumentError(
                self.kind, self.bins, f"1 to {MAX_BINS} numbers, each greater than the one before"
            )

    @property
    def kind(self) -> Literal["exactly", "at_least", "bounds"]:
        """Which kind of bins it has."""
        return "exactly" if self.exactly else "at_least" if self.at_least else "bounds"

    @property
    def bins(self) -> tuple[Number, ...]:
        """The numbers that name the bins."""
        return tuple(self.exactly or self.at_least or self.bounds)

    def attributes(self, name: str) -> tuple[str, ...]:
        """Name the attributes that hold it, one a bin."""
        return tuple(f"{name}.{format_number(number)}" for number in self.bins)

    def read(self, name: str, numbers: Mapping[str, Number]) -> dict[Number, Number]:
        """Read it from the numbers of an item: how many in each bin."""
        return {
            number: numbers.get(attribute, 0)
            for number, attribute in zip(self.bins, self.attributes(name), strict=True)
        }

    def places(self, value: Number) -> range:
        """Tell which bins a value is in.

        Parameters
        ----------
        value : int or Decimal
            A value of the attribute.

        Returns
        -------
        range
            Places in `bins`.

        Examples
        --------
        >>> list(Histogram("n", at_least=[1, 5, 10]).places(7))
        [0, 1]
        """
        after = bisect_right(self.bins, value)
        if self.kind == "at_least":
            return range(after)
        inside = after > 0 and (self.kind == "bounds" or self.bins[after - 1] == value)
        return range(after - 1, after) if inside else range(0)


Measure: TypeAlias = Count | Sum | Average | Histogram
MEASURES: Final = (Count, Sum, Average, Histogram)
