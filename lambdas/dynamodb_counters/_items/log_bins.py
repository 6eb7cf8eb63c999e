"""Bins that grow with their values: what stands for a bin differs from each value in it by a relative error. Pure.

As in DDSketch (https://arxiv.org/abs/1908.10693): bin i has the values above g^(i-1) up to g^i, with
g = (1 + error) / (1 - error). Bounds are decimals, not floats: each machine puts a value into the same bin.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from functools import cache, lru_cache
from typing import Final

from dynamodb_counters._items.decimals import Number

LEAST_ERROR: Final = Decimal("0.001")
MOST_ERROR: Final = Decimal("0.5")

_ZERO: Final = "zero"
_NEGATIVE: Final = "n"
_NAME: Final = re.compile(rf"{_ZERO}|{_NEGATIVE}?(0|-?[1-9]\d{{0,5}})", re.ASCII)
_EXACT: Final = Context(prec=40)

_ROUNDED: Final = Decimal("0.999")
"""The part of the error that bins take; the rest is for the digits that are not shown of their values."""


class LogBins:
    """The bins of a relative error.

    >>> bins = LogBins(Decimal("0.01"))
    >>> bins.name_of(Decimal(250)), bins.value_of("277"), bins.name_of(Decimal(-3))
    ('277', Decimal('250.787'), 'n55')
    """

    def __init__(self, error: Decimal) -> None:
        self.error = error
        taken = error * _ROUNDED
        self._growth = _EXACT.divide(1 + taken, 1 - taken)
        self._log = math.log(self._growth)
        self._shown = Context(prec=4 - error.adjusted())
        self._bound = cache(lambda index: _EXACT.power(self._growth, index))
        self.name_of = lru_cache(maxsize=4096)(self._name_of)

    def _name_of(self, value: Number) -> str:
        """The bin of a value."""
        size = Decimal(value).copy_abs()
        if not size:
            return _ZERO
        # The nearest bound is the bin's own or the one below it.
        index = round(math.log(size) / self._log)
        index += size > self._bound(index)
        return f"{_NEGATIVE if value < 0 else ''}{index}"

    def value_of(self, name: str) -> Decimal:
        """The number that stands for all values of a bin."""
        if name == _ZERO:
            return Decimal(0)
        size = _EXACT.divide(2 * self._bound(int(name.removeprefix(_NEGATIVE))), 1 + self._growth)
        shown = self._shown.plus(size)
        return -shown if name.startswith(_NEGATIVE) else shown


@cache
def log_bins(error: Decimal) -> LogBins:
    return LogBins(error)


def is_bin(name: str) -> bool:
    """Whether a bin may have this name."""
    return _NAME.fullmatch(name) is not None
