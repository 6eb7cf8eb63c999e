"""Declarations made of several aggregates, such as distinct members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._declarations.aggregates import MAX_GROUPS, Aggregate, OnChange, OnExpiry
from dynamodb_counters._declarations.checks import require_name, require_precision, require_retention
from dynamodb_counters._declarations.default_keys import Fields, field_names, fields_instead
from dynamodb_counters._declarations.frozen import shown
from dynamodb_counters._declarations.measures import Count
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters._items.conditions import Attr, Condition
from dynamodb_counters._items.key_templates import key_template
from dynamodb_counters._items.table_schema import MAX_SK_BYTES
from dynamodb_counters.errors import InvalidArgumentError

MEMBERS: Final = "-members"
"""End of the name of the aggregate that counts the members of a `Distinct`."""

_SHARED: Final = ("where", "on_expiry", "max_groups", "on_change", "retention")
"""Arguments of a composite that are those of its parts, as far as it has them."""


@dataclass(frozen=True, slots=True)
class Composite:
    """A declaration that is made of aggregates, or of one that users do not see."""

    name: str
    source: Event | Items | Aggregate
    _: KW_ONLY
    where: Condition | None = None
    on_expiry: OnExpiry = "keep"
    on_change: OnChange = "backfill"

    @property
    def _counted(self) -> Aggregate:
        """The aggregate of a declaration that is made of one."""
        raise NotImplementedError

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        """The aggregates, each after its source."""
        return (self._counted,)

    def _part(self, name: str, **more: Any) -> Aggregate:
        """An aggregate of its source's items."""
        shared = {each: getattr(self, each) for each in _SHARED if hasattr(self, each)}
        return Aggregate(name, self.source, **shared, **more)


@dataclass(frozen=True, slots=True)
class Grouped(Composite):
    """A composite by fields of its source's items, which may have a unit of time."""

    source: Event | Items
    _: KW_ONLY
    by: Fields = ()

    def __post_init__(self) -> None:
        require_name(self.name)
        if not isinstance(self.source, Event | Items):
            raise InvalidArgumentError("source", self.source, "an Event or Items")
        object.__setattr__(self, "by", field_names("by", self.by))

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make up a group."""
        return tuple(self.by)

    @property
    def _unit_field(self) -> str:
        """The unit of its `time`, where it has one."""
        timed: Any = self
        return f"{timed.time}:{require_precision(timed.precision).name}"


@dataclass(frozen=True, slots=True)
class Distinct(Composite):
    """How many different members a group has: visitors of a page, active players.

    It keeps a count per member and counts the members with a count above 0. So a member counts once however many items
    it has, and no longer when all of them are gone. A group by ``at:day`` has the exact number per day;
    the number for several days is not the sum of theirs, as a member may be in each.

    Parameters
    ----------
    name : str
        A letter, then up to 55 letters, digits, ``-`` or ``_``; unique in a table.
    member : str
        Attribute that identifies a member.
    source, by, pk, sk, where, on_expiry, max_groups, on_change
        As in `Aggregate`.
    retention : timedelta or None, optional
        How long a group goes on counting after the end of the minute, hour, day or month in its key. Its members are
        deleted by TTL three days after that, its number stays. A later event, correction or deletion is late: dropped,
        and metered. Needs ``on_expiry="keep"``. Default None: members are kept for good.
    pages : bool, optional
        Whether members share pages, and groups too, as in `Aggregate`. Default False.

    Examples
    --------
    >>> view = Event("view", key=("url", "time", "clientId"))
    >>> visitors = Distinct("visitors", view, by="url", member="clientId")
    >>> visitors.total.fields
    ('url',)

    By the day, each day's members kept for a month:

    >>> daily = Distinct("daily", view, by=("url", "time:day"), member="clientId", retention=timedelta(days=31))
    """

    _: KW_ONLY
    by: InitVar[Fields | None] = None
    pk: str = ""
    sk: str = ""
    member: str
    max_groups: int = MAX_GROUPS
    # Few have them, so the repr shows them only where they are set.
    retention: timedelta | None = field(default=None, repr=False)
    pages: bool = field(default=False, repr=False)

    __repr__ = shown

    def __post_init__(self, by: Fields | None) -> None:
        require_name(self.name)
        if fields_instead(self.name, "by", by, default=(), pk=self.pk, sk=self.sk) is not None:
            retention = self.retention if self.pages else None
            total = Aggregate(self.name, self.source, by=by, items=Count(), pages=self.pages, retention=retention)
            object.__setattr__(self, "pk", total.pk)
            object.__setattr__(self, "sk", total.sk)
        if not isinstance(self.member, str):
            raise InvalidArgumentError("member", self.member, "the name of one attribute, such as 'user'")
        if isinstance(self.source, Event):
            self.source._known.require_key("member", [self.member], self.where)
        if self.member in self.total.fields:
            raise InvalidArgumentError("member", self.member, "an attribute that is not part of the group's key")
        # The number lacks members, so a time among these alone says nothing of it.
        require_retention(self.retention, self.total.fields)
        if self.retention is not None and self.on_expiry != "keep":
            raise InvalidArgumentError("on_expiry", self.on_expiry, "'keep' with a retention: its counts stay")

    @property
    def _members(self) -> Aggregate:
        """The aggregate that counts each member's items, in the measure ``items``."""
        sk = f"{self.sk}#MEMBER#{{{self.member}}}"
        return self._part(f"{self.name}{MEMBERS}", pk=self.pk, sk=sk, items=Count(), pages=self.pages)

    @property
    def total(self) -> Aggregate:
        """The aggregate that counts members, in the measure ``distinct``."""
        # One group in a partition has an item of its own.
        pages = self.pages and bool(key_template(self.sk, MAX_SK_BYTES, "sk").fields)
        return Aggregate(
            self.name,
            self._members,
            pk=self.pk,
            sk=self.sk,
            distinct=Count(),
            where=Attr("items").ge(1),
            on_change=self.on_change,
            pages=pages,
        )

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return self._members, self.total


def with_parts(names: Iterable[str], declared: Iterable[Aggregate | Window]) -> set[str]:
    """Names that a person gives, with what they mean: of a `Distinct` its members, too."""
    names = {*names}
    sources = [(each.name, each.source) for each in declared if each.name in names]
    members = [
        source.name for name, source in sources if isinstance(source, Aggregate) and source.name == f"{name}{MEMBERS}"
    ]
    return {*names, *members}
