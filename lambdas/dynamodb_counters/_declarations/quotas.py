"""Quotas: at most so many calls in each period, held exactly by leases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from itertools import islice
from typing import Final, NamedTuple

from dynamodb_counters._declarations import checks
from dynamodb_counters._declarations.checks import Fields, field_names, named_key, require
from dynamodb_counters._items.keys import KeyTemplate, key_template
from dynamodb_counters._items.schema import LEASES_PREFIX, MAX_LEASE_FIELDS, MAX_PK_BYTES
from dynamodb_counters._tiers import PERIODS, Period, periods, time_zone, utc

MOST_CALLS: Final = 10**15


class QuotaPeriod(NamedTuple):
    """A period of a quota, from its first second to the one after its last; `sk` is the sort key of its item."""

    start: int
    end: int
    sk: str


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `limit` calls in each period, for each group. Take calls from it with `Counters.leases`.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``. Processes that name the same quota share it.
    limit : int
        The most calls that a group may make in a period.
    per : {"hour", "day", "week", "month", "year"} or timedelta
        A calendar's period in `tz`, weeks from Monday; or a length from 1970 on: whole seconds, a minute or more.
    by : str or sequence of str, optional
        The fields that make up a group, three at most. Default: one group.
    tz : str or tzinfo, optional
        Time zone of the calendar: an IANA name such as ``"Europe/Berlin"``. Default ``"UTC"``.
    portion : int, optional
        The most calls that a process reserves with one write, and that are lost until the period ends if it dies.
        Default: a hundredth of the limit, 1000 at most.
    """

    name: str
    limit: int
    per: Period | timedelta
    by: Fields = ()
    tz: str | tzinfo = "UTC"
    portion: int | None = None

    def __post_init__(self) -> None:
        checks.require_arguments(self)
        checks.require_count("limit", self.limit, MOST_CALLS)
        if isinstance(self.per, timedelta):
            is_fit = self.per >= timedelta(minutes=1) and not self.per % timedelta(seconds=1)
            require(is_fit, "per", self.per, "a timedelta of whole seconds, 1 minute or more")
        else:
            require(self.per in PERIODS, "per", self.per, f"a timedelta or one of {', '.join(map(repr, PERIODS))}")
        fields = field_names("by", self.by, plain=True)
        require(len(fields) <= MAX_LEASE_FIELDS, "by", self.by, f"at most {MAX_LEASE_FIELDS} attributes")
        object.__setattr__(self, "by", fields)
        _ = self._pk_template
        time_zone(self.tz)
        if self.portion is not None:
            checks.require_count("portion", self.portion, self.limit)

    @property
    def _portion_size(self) -> int:
        return self.portion or max(1, min(1000, self.limit // 100))

    @property
    def _pk_template(self) -> KeyTemplate:
        return key_template(LEASES_PREFIX + named_key(self.name, self.by), MAX_PK_BYTES, "by")

    def _period(self, moment: float) -> QuotaPeriod:
        if isinstance(self.per, timedelta):
            length = self.per // timedelta(seconds=1)
            start, name = int(moment // length) * length, f"{length}s"
            end = start + length
        else:
            name = self.per
            start, end = islice(periods(name, moment, math.inf, time_zone(self.tz)), 2)
        return QuotaPeriod(start, end, f"{name}#{utc(start):%Y-%m-%dT%H:%M:%SZ}")
