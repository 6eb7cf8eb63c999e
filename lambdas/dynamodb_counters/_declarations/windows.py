"""Windows: counts over trailing minutes, hours, days or years, from time buckets."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Final, Literal, TypeAlias

from dynamodb_counters._declarations.aggregates import ON_EXPIRY, OnExpiry
from dynamodb_counters._declarations.checks import (
    Fields,
    fields_instead,
    named_key,
    require_attribute,
    require_choice,
    require_duration,
    require_key,
    require_name,
    require_no_member,
    require_where,
)
from dynamodb_counters._declarations.measures import Count, Sum, TimeWeighted
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._items.conditions import LIST_MARK, Condition
from dynamodb_counters._items.key_templates import KeyTemplate, key_template
from dynamodb_counters._items.table_schema import MAX_PK_BYTES, MAX_SK_BYTES
from dynamodb_counters._timeline.tiers import TIERS, TOTAL, Tier, tiers_up_to
from dynamodb_counters.errors import InvalidArgumentError

Late: TypeAlias = Literal["drop", "quarantine"]

TIER_FIELD: Final = "_tier"
"""The sort key field that the runtime fills in with the letter of a bucket's tier."""

BUCKET_FIELD: Final = "_bucket"
"""The sort key field that the runtime fills in with the start of a bucket."""

_DAY: Final = timedelta(days=1)
_YEARS: Final = timedelta(days=3650)
"""A level is the sum of all changes before, so there must be buckets that cover these."""

_PRECISIONS: Final = tuple(timedelta(seconds=tier.slot_seconds) for tier in TIERS)


@dataclass(frozen=True)
class Window:
    """Counts over trailing time: events are added up in time buckets, each with a total and a slot per finer unit.

    Precision and longest window determine the buckets: 24 hours to the minute take an item per hour with a slot per
    minute; 30 days, one per day with a slot per hour besides.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    source : Event or Items
    by : str or sequence of str, optional
        The fields that make up a group, as in `Aggregate` but without lists. Default: none, for one group of all. Items
        lie in the partition of the source's if these are the fields of its partition key, else in one named after it.
    pk : str, optional
        Key template of its items' partition instead of `by`. Its fields make up the group.
    time : str
        Attribute that holds the event's time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    retention : timedelta or None, optional
        How long a bucket is kept after its end. Default None: for good.
    measure : Count, Sum or TimeWeighted, optional
        Number to keep. Default ``Count()``.
    where, on_expiry
        As in `Aggregate`.
    late : {"drop", "quarantine"}, optional
        Treatment of an event whose bucket's retention is over; either way a metric counts it. Default ``"drop"``.
    future_tolerance : timedelta or None, optional
        An event further ahead of its arrival goes to quarantine; None accepts any. Default 15 minutes.
    precision : timedelta, optional
        1 second, minute, hour or day: windows start and end on such a unit. Default 1 minute.
    longest : timedelta, optional
        The longest window that is read regularly; longer ones within the retention read more items. Besides the buckets
        that have slots of the precision, it keeps each longer kind that is shorter than this. Default 24 hours,
        or the retention if that is shorter; 10 years of a `TimeWeighted`, as all that was before makes its level.

    Examples
    --------
    >>> job = Event("job", key=("customer", "id"))
    >>> Window("jobs", job, by="customer", time="at", retention=timedelta(hours=25)).fields
    ('customer',)
    """

    name: str
    source: Event | Items
    _: KW_ONLY
    by: InitVar[Fields | None] = None
    pk: str = ""
    time: str
    retention: timedelta | None = None
    measure: Count | Sum | TimeWeighted = field(default_factory=Count)
    where: Condition | None = None
    late: Late = "drop"
    future_tolerance: timedelta | None = timedelta(minutes=15)
    on_expiry: OnExpiry = "keep"
    precision: timedelta = timedelta(minutes=1)
    longest: timedelta | None = None

    def __post_init__(self, by: Fields | None) -> None:
        require_name(self.name)
        if not isinstance(self.source, Event | Items):
            raise InvalidArgumentError("source", self.source, "an Event or Items")
        require_where(self.where, bookkeeping=isinstance(self.source, Items) and self.source.keys is not None)
        fields = fields_instead(self.name, "by", by, default=(), pk=self.pk)
        if fields is not None:
            is_shared = isinstance(self.source, Event) and fields and fields == self.source._pk_template.fields
            object.__setattr__(self, "pk", self.source.pk if is_shared else named_key(self.name, fields))
        require_key("pk", self.pk)
        said, given = ("pk", self.pk) if fields is None else ("by", by)
        if any(LIST_MARK in name for name in self.fields):
            raise InvalidArgumentError(said, given, "fields that are not lists; an Aggregate counts each member")
        require_attribute("time", self.time)
        if not isinstance(self.measure, Count | Sum | TimeWeighted):
            raise InvalidArgumentError("measure", self.measure, "a Count(), Sum('ms') or TimeWeighted('seats')")
        if isinstance(self.measure, TimeWeighted) and self.retention is not None:
            raise InvalidArgumentError("retention", self.retention, "None: a level is the sum of all changes before")
        require_no_member("time", [self.time])
        require_no_member("where", self.where._attributes if self.where is not None else ())
        require_duration("retention", self.retention)
        require_duration("future_tolerance", self.future_tolerance, zero=True)
        require_choice("late", self.late, ("drop", "quarantine"))
        require_choice("on_expiry", self.on_expiry, ON_EXPIRY)
        if self.precision not in _PRECISIONS:
            raise InvalidArgumentError("precision", self.precision, "1 second, 1 minute, 1 hour or 1 day")
        require_duration("longest", self.longest)
        if self.longest is not None and not self.precision <= self.longest <= (self.retention or timedelta.max):
            raise InvalidArgumentError("longest", self.longest, "from the precision up to the retention")
        if isinstance(self.source, Event):
            known = self.source._known
            known.require_key(said, self.fields, self.where)
            known.require("time", self.time, "a time", self.where)
            known.require_measure("measure", self.measure, self.where)
            known.require_where(self.where)
        if not set(self._attributes).isdisjoint(self.fields):
            raise InvalidArgumentError(said, given, f"fields other than {', '.join(sorted(self._attributes))}")

    @cached_property
    def _longest_window(self) -> timedelta:
        """The longest window, which its tiers follow."""
        if self.longest is not None:
            return self.longest
        usual = _YEARS if isinstance(self.measure, TimeWeighted) else _DAY
        return max(self.precision, min(usual, self.retention or usual))

    @property
    def _unit(self) -> int:
        return self.precision // timedelta(seconds=1)

    @cached_property
    def _kept_tiers(self) -> tuple[Tier, ...]:
        return tiers_up_to(self._unit, self._longest_window.total_seconds())

    @cached_property
    def _attributes(self) -> tuple[str, ...]:
        """The attributes that hold the counts of a bucket."""
        names = dict.fromkeys((TOTAL, *(slot for tier in self._kept_tiers for slot in tier.slots)))
        return tuple(attribute for name in names for attribute in self.measure._attributes(name))

    @cached_property
    def _pk_template(self) -> KeyTemplate:
        return key_template(self.pk, MAX_PK_BYTES, "pk")

    @cached_property
    def _sk_template(self) -> KeyTemplate:
        return key_template(f"WINDOW#{self.name}#{{{TIER_FIELD}}}#{{{BUCKET_FIELD}}}", MAX_SK_BYTES, "name")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make up a group, in the order of the key."""
        return self._pk_template.fields
