"""Percentiles: how the values of a number are distributed, in bins of a relative error that is guaranteed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.checks import require_attribute, require_precision
from dynamodb_counters._declarations.composites import Grouped
from dynamodb_counters._declarations.default_keys import named_key
from dynamodb_counters._declarations.frozen import shown
from dynamodb_counters._declarations.measures import Count
from dynamodb_counters._declarations.sources import Event
from dynamodb_counters._items.decimals import format_number
from dynamodb_counters._items.derived_fields import LOG
from dynamodb_counters._items.log_bins import LEAST_ERROR, MOST_ERROR
from dynamodb_counters.errors import InvalidArgumentError

IN_BIN: Final = "values"
"""The measure that counts the values of a bin."""


@dataclass(frozen=True, slots=True)
class Percentiles(Grouped):
    """How the values of a number are distributed in each group: percentiles with a relative error that is guaranteed.

    It counts the values of each bin; bins grow with the values, so their number grows with the logarithm of these. Bins
    of a group share a page: a batch writes a group once, a unit up to some 100 bins. An item that is corrected or
    deleted moves or leaves its bin.

    Parameters
    ----------
    source : Event or Items
    attribute : str
        A number attribute; an item without it goes to quarantine.
    error : float or Decimal, optional
        Largest relative error of a percentile, 0.001 to 0.5. Half of it doubles the bins. Default 0.01.
    time : str, optional
        Attribute that holds the event's time, for percentiles over spans of time and series. Default: none.
    precision : timedelta, optional
        With a `time`: 1 minute, hour or day, each with a distribution of its own; a span reads all. Default 1 hour.
    name, by, where, on_expiry, max_groups, on_change
        As in `Aggregate`.
    retention : timedelta or None, optional
        As in `Aggregate`; the time in a group's key is that of `time`, if given. Default None: for good.

    Examples
    --------
    >>> from dynamodb_counters import Event
    >>> request = Event("request", key="id")
    >>> latency = Percentiles("latency", request, by="route", attribute="ms", error=0.02, time="at")
    >>> latency.fields
    ('route',)
    """

    _: KW_ONLY
    attribute: str
    error: float | Decimal = 0.01
    time: str | None = None
    precision: timedelta = timedelta(hours=1)
    max_groups: int = 1000
    retention: timedelta | None = field(default=None, repr=False)

    __repr__ = shown

    def __post_init__(self) -> None:
        Grouped.__post_init__(self)
        require_attribute("attribute", self.attribute)
        is_number = isinstance(self.error, float | int | Decimal) and not isinstance(self.error, bool)
        if not is_number or not LEAST_ERROR <= Decimal(str(self.error)) <= MOST_ERROR:
            raise InvalidArgumentError("error", self.error, f"a number from {LEAST_ERROR} to {MOST_ERROR}")
        if self.time is not None:
            require_attribute("time", self.time)
        if isinstance(self.source, Event):
            self.source._known.require("attribute", self.attribute, "a number", self.where)
            if self.time is not None:
                self.source._known.require("time", self.time, "a time", self.where)
        require_precision(self.precision)
        if self.time is not None and self._unit_field in self.fields:
            raise InvalidArgumentError("by", self.by, f"fields other than {self._unit_field!r}, which the time is")
        _ = self._counted

    @property
    def _counted(self) -> Aggregate:
        """The aggregate that counts the values of each bin, in a shelf of pages per group and unit of time."""
        shelved = () if self.time is None else (self._unit_field,)
        in_bin = f"{self.attribute}:{LOG}{format_number(Decimal(str(self.error)))}"
        pk, sk = named_key(self.name, self.fields), named_key(self.name, (*shelved, in_bin))
        return self._part(self.name, pk=pk, sk=sk, measures={IN_BIN: Count()}, pages=True, _shelved=len(shelved))
