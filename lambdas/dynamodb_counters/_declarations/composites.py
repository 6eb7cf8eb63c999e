"""Declarations made of several aggregates: distinct members and hierarchies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from dynamodb_counters._declarations.aggregates import MAX_GROUPS, Aggregate, OnChange, OnExpiry
from dynamodb_counters._declarations.checks import is_name, require_name, require_precision, require_retention
from dynamodb_counters._declarations.default_keys import Fields, field_names, fields_instead, named_key
from dynamodb_counters._declarations.frozen import Frozen, set_fields, shown
from dynamodb_counters._declarations.measures import Count, Measure, given_measures
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
        pk, sk, pages = self.pk, self.sk, _paged(self.pages, self.sk)
        where, on_change = Attr("items").ge(1), self.on_change
        return Aggregate(
            self.name, self._members, pk=pk, sk=sk, distinct=Count(), where=where, on_change=on_change, pages=pages
        )

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return self._members, self.total


@dataclass(frozen=True, slots=True, init=False)
class Hierarchy(Composite):
    """The same measures at several levels: for a region, each of its desks, each type of a desk.

    Each level groups by one field more. All levels of a top group share a partition key: one Query reads them.

    Parameters
    ----------
    name : str
        Unique in a table; a level's aggregate is named after both, such as ``risk-desk``.
    by : sequence of str, optional
        The fields from the top level down, each of which names a level: ``("region", "desk")`` has a level ``region``,
        by region, and a level ``desk``, by region and desk.
    pk : str, optional
        Key template of the top group, instead of `by`.
    levels : mapping of str to str, or tuple of str, optional
        Sort key templates from the top level down, by the level's name; without names they are called 0, 1, ….
    source, measures, where, on_expiry, max_groups, on_change, **named
        As in `Aggregate`.
    pages : bool, optional
        Whether the groups of a level that are in one top group share pages, as in `Aggregate`. Default False.

    Examples
    --------
    >>> trade = Event("trade", key="id")
    >>> risk = Hierarchy("risk", trade, by=("region", "desk"))
    >>> risk.level("desk").fields
    ('region', 'desk')
    """

    _: KW_ONLY
    pk: str = ""
    levels: Mapping[str, str] | tuple[str, ...] = ()
    measures: Mapping[str, Measure]
    max_groups: int = MAX_GROUPS
    pages: bool = False

    def __init__(
        self,
        name: str,
        source: Event | Items | Aggregate,
        *,
        by: Fields | None = None,
        pk: str = "",
        levels: Mapping[str, str] | tuple[str, ...] = (),
        measures: Mapping[str, Measure] | None = None,
        where: Condition | None = None,
        on_expiry: OnExpiry = "keep",
        max_groups: int = MAX_GROUPS,
        on_change: OnChange = "backfill",
        pages: bool = False,
        **named: Measure,
    ) -> None:
        require_name(name)
        measures = given_measures(name, measures, named)
        set_fields(self, locals())
        self._set_levels(by)
        if not isinstance(self.levels, tuple | Mapping) or not self.levels:
            raise InvalidArgumentError("levels", self.levels, "sort key templates by name, or a tuple of them")
        for level in self.levels if isinstance(self.levels, Mapping) else ():
            if not is_name(level):
                raise InvalidArgumentError("levels", level, "names: a letter, then letters, digits, '-' or '_'")
        _ = self._parts
        if isinstance(self.levels, Mapping):
            object.__setattr__(self, "levels", Frozen(self.levels))

    def _set_levels(self, by: Fields | None) -> None:
        fields = fields_instead(self.name, "by", by, pk=self.pk)
        if fields is None:
            return
        if self.levels:
            raise InvalidArgumentError("levels", self.levels, "no levels where by is given, which names them")
        if not fields or not all(map(is_name, fields)):
            raise InvalidArgumentError("by", by, "attributes that name the levels; for others, pk and levels")
        levels = dict[str, str]()
        for depth, name in enumerate(fields):
            part = Aggregate(f"{self.name}-{name}", self.source, by=fields[: depth + 1], measures=self.measures)
            object.__setattr__(self, "pk", self.pk or part.pk)
            levels[name] = named_key(part.name, fields[1 : depth + 1])
        object.__setattr__(self, "levels", levels)

    def level(self, level: str | int) -> Aggregate:
        """The aggregate of a level, by its name or, if levels have none, its number.

        Parameters
        ----------
        level : str or int
        """
        for known, part in zip(self._templates, self._parts, strict=True):
            if level == known:
                return part
        raise InvalidArgumentError("level", level, f"one of {', '.join(map(repr, self._templates))}")

    @property
    def _templates(self) -> Mapping[str | int, str]:
        levels = self.levels
        return dict(levels.items() if isinstance(levels, Mapping) else enumerate(levels))

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return tuple(
            self._part(f"{self.name}-{level}", pk=self.pk, sk=sk, measures=self.measures, pages=_paged(self.pages, sk))
            for level, sk in self._templates.items()
        )


def _paged(pages: bool, sk: str) -> bool:
    """Whether groups by a sort key are in pages: not if there is one group."""
    return pages and bool(key_template(sk, MAX_SK_BYTES, "sk").fields)


def with_parts(names: Iterable[str], declared: Collection[Aggregate | Window]) -> set[str]:
    """Names that a person gives, with what they mean: of a `Distinct` its members, too, of a `Hierarchy` its levels."""
    aggregates = [one for one in declared if isinstance(one, Aggregate)]
    found = set[str]()
    for name in names:
        sources = [one.source for one in aggregates if one.name == name]
        members = [each.name for each in sources if isinstance(each, Aggregate) and each.name == f"{name}{MEMBERS}"]
        found |= {name, *members} if any(one.name == name for one in declared) else _levels(name, aggregates) or {name}
    return found


def _levels(name: str, aggregates: Iterable[Aggregate]) -> set[str]:
    """The levels of a hierarchy, which differ in their sort keys alone; none if there is no hierarchy of that name."""
    levels = [one for one in aggregates if one.name.startswith(f"{name}-")]
    is_one = all(
        (one.source, one.pk, one.measures) == (two.source, two.pk, two.measures) for one, two in pairwise(levels)
    )
    return {one.name for one in levels} if is_one and len(levels) > 1 else set()
