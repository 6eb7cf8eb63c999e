"""Windows: how many in the last hours, from time buckets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from dynamodb_counters.attributes import LIST_MARK
from dynamodb_counters.conditions import Condition
from dynamodb_counters.declarations.aggregates import OnExpiry
from dynamodb_counters.declarations.checks import (
    require_attribute,
    require_choice,
    require_duration,
    require_key,
    require_name,
    require_where,
)
from dynamodb_counters.declarations.measures import Count, Sum
from dynamodb_counters.declarations.sources import Event, Items
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.keys import KeyTemplate, key_template
from dynamodb_counters.schema import MAX_PK_BYTES, MAX_SK_BYTES
from dynamodb_counters.windows import SLOTS, TOTAL

Late: TypeAlias = Literal["drop", "quarantine"]

BUCKET_FIELD: Final = "_bucket"
"""The field of a window's sort key that the runtime fills in: the start of the bucket."""


@dataclass(frozen=True, slots=True)
class Window:
    """How many in the last hours: counts cut into time buckets, one item a group and hour with a slot a minute.

    Parameters
    ----------
    name : str
        Unique in a table.
    source : Event or Items
        The items it looks at.
    pk : str
        Key template of its items' partition. Its fields are attributes of the source: the group.
    time : str
        Attribute that holds the event's time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    retention : timedelta or None, optional
        How long a bucket is kept after its end. Default: for good.
    measure : Count or Sum, optional
        What to keep. Default ``Count()``.
    where : Condition, optional
        Items it looks at. Default: all of the source.
    late : {"drop", "quarantine"}, optional
        What becomes of an event whose bucket's retention is over. Default ``"drop"``; either way it is metered.
    future_tolerance : timedelta or None, optional
        An event further ahead of its arrival goes to quarantine. Default 15 minutes; None accepts any.
    on_expiry : {"keep", "subtract"}, optional
        Whether an item deleted by TTL stays counted. Default ``"keep"``.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.

    Examples
    --------
    >>> job = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
    >>> Window("jobs", job, pk="CUSTOMER#{customer}", time="at", retention=timedelta(hours=25)).fields
    ('customer',)
    """

    name: str
    source: Event | Items
    pk: str
    time: str
    retention: timedelta | None = None
    measure: Count | Sum = field(default_factory=Count)
    where: Condition | None = None
    late: Late = "drop"
    future_tolerance: timedelta | None = timedelta(minutes=15)
    on_expiry: OnExpiry = "keep"

    def __post_init__(self) -> None:
        require_name(self.name)
        if not isinstance(self.source, Event | Items):
            raise InvalidArgumentError("source", self.source, "an Event or Items")
        require_where(self.where)
        require_key("pk", self.pk)
        if any(name.endswith(LIST_MARK) for name in self.fields):
            raise InvalidArgumentError("pk", self.pk, "fields that are no lists; an Aggregate counts under each member")
        if not {TOTAL, *SLOTS}.isdisjoint(self.fields):
            raise InvalidArgumentError("pk", self.pk, f"fields other than {TOTAL!r} and {SLOTS[0]!r} to {SLOTS[-1]!r}")
        require_attribute("time", self.time)
        if not isinstance(self.measure, Count | Sum):
            raise InvalidArgumentError("measure", self.measure, "Count() or Sum('attribute')")
        require_duration("retention", self.retention)
        require_duration("future_tolerance", self.future_tolerance, zero=True)
        require_choice("late", self.late, ("drop", "quarantine"))
        require_choice("on_expiry", self.on_expiry, ("keep", "subtract"))

    @property
    def pk_template(self) -> KeyTemplate:
        """The partition key's template."""
        return key_template(self.pk, MAX_PK_BYTES, "pk")

    @property
    def sk_template(self) -> KeyTemplate:
        """The sort key's template; its one field is the start of the bucket."""
        return key_template(f"WINDOW#{self.name}#H#{{{BUCKET_FIELD}}}", MAX_SK_BYTES, "name")

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make a group, in the order of the key."""
        return self.pk_template.fields
