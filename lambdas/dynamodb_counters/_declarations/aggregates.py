"""Aggregates and windows: numbers kept current over all items of a source, an item per group or per bucket of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, cast

from dynamodb_counters._declarations import checks
from dynamodb_counters._declarations.checks import BUCKET_FIELD, TIER_FIELD, WRITE_SHARD_FIELD, Fields, require
from dynamodb_counters._declarations.event_attributes import Attribute, Vocabulary
from dynamodb_counters._declarations.measures import Count, Measure, Sum, TimeWeighted, measures_of
from dynamodb_counters._declarations.sources import Direct, Event, Items, Keyed
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.keys import KeyTemplate, key_template, scale_of, tier_of
from dynamodb_counters._items.schema import MAX_PK_BYTES, MAX_SK_BYTES, PK, SK, TTL
from dynamodb_counters._tiers import TIERS, TOTAL, Tier, require_anchor, time_zone
from dynamodb_counters.errors import InvalidArgumentError

OnExpiry: TypeAlias = Literal["keep", "subtract"]
# Most attributes of an aggregate: all may change in one update, whose expression has at most 4 KB.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_ATTRIBUTES: Final = 120
MAX_PAGED_ATTRIBUTES: Final = 26  # In pages, which name each by a letter.
MAX_GROUPS: Final = 1000  # Groups that one item may touch by default: each is a write for every event.
PARTITION_MARK: Final = "#~"  # Comes before the digit in which the partition keys of pages end.
# How many units of time ago a member was active before, at most the longest span: a field of those in pages.
GAP: Final = "gap"


@dataclass(frozen=True, slots=True)
class Ranking:
    """A leaderboard that ranks the groups of an aggregate by one of its measures, through the table's ranking index.

    Parameters
    ----------
    measure : str
        Name of a `Count` or `Sum` of the aggregate.
    leaderboard : str
        Key template of the leaderboard, with fields of the group: groups with the same key are ranked together.
    write_shards : int, optional
        Index partitions that share its writes, 1 to 100: one per 500 changes of score per second. Default 1.
    """

    measure: str
    leaderboard: str
    write_shards: int = 1

    def __post_init__(self) -> None:
        checks.require_arguments(self)
        checks.require_key("leaderboard", self.leaderboard)

    @property
    def _template(self) -> KeyTemplate:
        return key_template(f"{self.leaderboard}#~{{{WRITE_SHARD_FIELD}}}", MAX_PK_BYTES, "leaderboard")


def require_counting(declaration: Any, *sources: type) -> None:
    """Refuse a name, a source of another kind, and how its items are not to be chosen or to expire."""
    checks.require_arguments(declaration)
    source, where = declaration.source, declaration.where
    require(isinstance(source, sources), "source", source, f"an {' or '.join(kind.__name__ for kind in sources)}")
    checks.require_where(where, bookkeeping=isinstance(source, Items) and source.keys is not None)
    if where is not None and not isinstance(source, Aggregate):
        checks.require_no_member("where", where._attributes)
        for name in where._attributes if isinstance(source, Event) and source.packed is not None else ():
            require(name not in (PK, SK, TTL), "where", name, f"an attribute of {source.name!r}, whose items hold many")


@dataclass(frozen=True, init=False, repr=False)
class Aggregate(Keyed):
    """Numbers kept current over all items of a source, one item per group.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    source : Event, Items or Aggregate
        The items it counts. Another aggregate's items have its fields and measures as attributes.
    by : str or sequence of str, optional
        The attributes that make up a group. ``outer.inner`` reaches into a map, ``tags[]`` counts an item under each
        member of a list once, ``at:day`` is the UTC minute, hour, day or month of a time, ``status:class`` is 2xx,
        ``plan?free`` has a default. Default: one group of all.
    pk, sk : str, optional
        Key templates instead of `by`, if you care how items are named. Their fields, as ``{at:day}``, are the group.
    measures : mapping of str to Count, Sum, Average or Histogram, optional
        Numbers by name, for names that no keyword can have. Default: `named`, or a `Count` named as the aggregate.
    where : Condition, optional
        Which items of the source to count. Default: all.
    on_expiry : {"keep", "subtract"}, optional
        Whether an item stays counted that is deleted by TTL, or by anyone after its ``ttl``. Default ``"keep"``.
    write_shards : int, optional
        Items that share a group's writes, 1 to 100; a read adds them up. Default 1.
    ranking : Ranking, optional
        Ranks the groups by a measure. Default: not ranked.
    max_groups : int, optional
        Most groups, 1 to 10,000, that one item may count in by its lists; one with more is quarantined. Default 1,000.
    retention : timedelta or None, optional
        How long a group counts after the end of the one minute, hour, day or month in its key. Default: for good.
    pages : bool, optional
        Whether many groups share an item, a page. Not for rankings or write shards. Default False.
    **named : Count, Sum, Average or Histogram
        Numbers by name; at most 120 attributes in total.

    Examples
    --------
    >>> view = Event("view", key=("url", "time", "clientId"))
    >>> Aggregate("views", view, by="url").fields
    ('url',)
    >>> list(Aggregate("shops", view, views=Count(), paid=Sum("cents")).measures)
    ['views', 'paid']
    """

    name: str
    source: Event | Items | Aggregate | Direct
    _: KW_ONLY
    pk: str = ""
    sk: str = ""
    measures: Mapping[str, Measure]
    where: Condition | None = None
    on_expiry: OnExpiry = "keep"
    write_shards: int = 1
    ranking: Ranking | None = None
    max_groups: int = MAX_GROUPS
    retention: timedelta | None = None
    pages: bool = False
    _shelved: int = 0  # The number of the first fields of `sk` that groups have in common which share pages.
    _longest: int = 0  # Set by `ActiveMembers`: over how many buckets its pages look back, which therefore never split.
    _thresholds: tuple[Any, ...] = field(default=(), compare=False)  # Those that watch its groups, without it.

    def __init__(
        self,
        name: str,
        source: Event | Items | Aggregate,
        *,
        by: Fields | None = None,
        pk: str = "",
        sk: str = "",
        measures: Mapping[str, Measure] | None = None,
        where: Condition | None = None,
        on_expiry: OnExpiry = "keep",
        write_shards: int = 1,
        ranking: Ranking | None = None,
        max_groups: int = MAX_GROUPS,
        retention: timedelta | None = None,
        pages: bool = False,
        _shelved: int = 0,
        _longest: int = 0,
        _thresholds: tuple[Any, ...] = (),
        **named: Measure,
    ) -> None:
        self._take(locals(), Event, Items, Aggregate)

    def _take(self, values: dict[str, Any], *sources: type) -> None:
        """Set the fields to arguments, and to their defaults; refuse what contradicts itself."""
        for part in fields(self):
            object.__setattr__(self, part.name, values.get(part.name, part.default))
        require_counting(self, *sources)
        object.__setattr__(self, "measures", measures_of(self.name, self.measures, values["named"]))
        self._set_keys(values["by"])
        checks.require_key("pk", self.pk)
        checks.require_key("sk", self.sk)
        digits, own = [*filter(scale_of, self.fields)], self._sk_template.fields
        keys = [checks.named_key(self.name, names) for names in (self._pk_template.fields, own)]
        is_of_ranks = digits == [*own] and [*keys, len(own) - 1, True] == [self.pk, self.sk, self._shelved, self.pages]
        require(not digits or is_of_ranks, "sk", self.sk, "no digits of a number, by which Ranks counts")
        checks.require_retention(self.retention, self.fields)
        for attribute in self._attributes:
            require(attribute not in self.fields, "measures", attribute, "attributes that are not fields of the key")
        limit = MAX_PAGED_ATTRIBUTES if self.pages else MAX_ATTRIBUTES
        require(len(self._attributes) <= limit, "measures", list(self.measures), f"at most {limit} attributes in total")
        if isinstance(self.source, Aggregate):
            require(self.source.write_shards == 1, "source", self.source.name, "an aggregate with write_shards=1")
        if isinstance(self.source, Event | Aggregate):
            vocabulary, pk = self.source._vocabulary, self._pk_template.fields
            for name in self.fields:
                argument = "by" if values["by"] is not None else "pk" if name in pk else "sk"
                vocabulary.require_key(argument, [name], self.where)
            vocabulary.require_all("measures", self.measures.values(), self.where)
        if self.ranking is not None:
            self._require_rankable(self.ranking)
        if self.pages:
            self._require_paged()

    @cached_property
    def _pk_template(self) -> KeyTemplate:
        text = self.pk if self.write_shards == 1 else f"{self.pk}#~{{{WRITE_SHARD_FIELD}}}"
        return key_template(text, MAX_PK_BYTES - (len(PARTITION_MARK) + 1) * self.pages, "pk")

    @cached_property
    def _listed_by(self) -> tuple[str, ...]:
        return (*self._pk_template.fields, *self._sk_template.fields[: self._shelved])

    @property
    def _tier(self) -> Tier:
        return cast("Tier", tier_of(self._listed_by[-1]))

    @property
    def _unit(self) -> int:
        return self._tier.seconds

    @cached_property
    def _attributes(self) -> tuple[str, ...]:
        return tuple(attribute for name, measure in self.measures.items() for attribute in measure._attributes(name))

    def _set_keys(self, by: Fields | None) -> None:
        fields = checks.fields_instead(self.name, "by", by, self.pk, self.sk)
        if fields is None:
            return
        source, pk, rest = self.source, checks.named_key(self.name, fields[:1]), fields[1:]
        if self.pages:
            shared = [name for name in fields if self.retention is not None and tier_of(name)]
            pk, rest = checks.named_key(self.name, shared), tuple(name for name in fields if name not in shared)
        elif isinstance(source, Event | Aggregate) and source._pk_template.fields:
            # In the source's partition, if that determines the group, one shard feeds it, and one Query reads both.
            count = len(source._pk_template.fields)
            beside = key_template(checks.named_key(self.name, fields[count:]), MAX_SK_BYTES, "sk")
            if fields[:count] == source._pk_template.fields and not beside.overlaps(source._sk_template):
                pk, rest = source.pk, fields[count:]
        object.__setattr__(self, "pk", pk)
        object.__setattr__(self, "sk", checks.named_key(self.name, rest))

    @property
    def _vocabulary(self) -> Vocabulary:
        texts, numbers = (*self.fields, *((GAP,) if self._longest else ())), self._attributes
        attributes = dict.fromkeys(texts, Attribute(str)) | dict.fromkeys(numbers, Attribute(Decimal))
        return Vocabulary(self.name, attributes, literal=True)

    def _require_rankable(self, ranking: Any) -> None:
        require(isinstance(ranking, Ranking), "ranking", ranking, "a Ranking(measure=…, leaderboard=…)")
        measures = [name for name, measure in self.measures.items() if isinstance(measure, Count | Sum)]
        require(ranking.measure in measures, "ranking", ranking.measure, "a Count or Sum of the aggregate")
        allowed = f"fields of the group: {', '.join(self.fields) or 'none'}"
        is_of_group = {*ranking._template.fields} <= {*self.fields, WRITE_SHARD_FIELD}
        require(is_of_group, "ranking", ranking.leaderboard, allowed)
        require(self.write_shards == 1, "write_shards", self.write_shards, "1, and write_shards of its Ranking instead")

    def _require_paged(self) -> None:
        require(self.ranking is None, "ranking", self.ranking, "None with pages: the index ranks items")
        require(self.write_shards == 1, "write_shards", self.write_shards, "1 with pages: a group is in one")
        rest = self._sk_template.fields[self._shelved :]
        require(rest, "sk", self.sk, "a field by which the groups of a page differ")
        has_time = self.retention is None or any(map(tier_of, self._listed_by))
        require(has_time, "pk", self.pk, "the time of the retention, as a page expires as a whole")


@dataclass(frozen=True, init=False, repr=False)
class Counter(Aggregate):
    """Numbers that `Counters.increment` adds to and `Counters.reset` sets to 0, one item per group.

    Nothing else changes them: no event, no item, no backfill, no repair. Aggregates may count its groups, thresholds
    watch them, a ranking ranks them.

    Parameters
    ----------
    name, by, pk, sk, ranking, retention
        As in `Aggregate`. The fields are those that a call names.
    measures, **named
        As in `Aggregate`, but each is a `Count`.
    """

    # What a call adds depends on none of these.
    source: Direct = field(init=False, default=Direct())
    where: None = field(init=False, default=None)
    on_expiry: OnExpiry = field(init=False, default="keep")
    write_shards: int = field(init=False, default=1)
    max_groups: int = field(init=False, default=MAX_GROUPS)
    pages: bool = field(init=False, default=False)
    _shelved: int = field(init=False, default=0)
    _longest: int = field(init=False, default=0)

    def __init__(
        self,
        name: str,
        *,
        by: Fields | None = None,
        pk: str = "",
        sk: str = "",
        measures: Mapping[str, Measure] | None = None,
        ranking: Ranking | None = None,
        retention: timedelta | None = None,
        _thresholds: tuple[Any, ...] = (),
        **named: Measure,
    ) -> None:
        self._take(locals(), Direct)
        for measure in self.measures.values():
            require(isinstance(measure, Count), "measures", measure, "a Count: no item has attributes to look at")
        checks.require_no_member("by", self.fields)


@dataclass(frozen=True)
class Window(Keyed):
    """Counts over trailing time: events are added up in time buckets, each with a total and a slot per finer unit.

    Parameters
    ----------
    source : Event or Items
    name, by, pk, where, on_expiry
        As in `Aggregate`, but no group by the members of a list.
    time : str
        Attribute that holds the event's time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    retention : timedelta or None, optional
        How long a bucket is kept after its end. Default None: for good.
    measure : Count, Sum or TimeWeighted, optional
        Number to keep. Default ``Count()``.
    late : {"drop", "quarantine"}, optional
        Treatment of an event whose bucket's retention is over; either way a metric counts it. Default ``"drop"``.
    future_tolerance : timedelta or None, optional
        An event further ahead of its arrival goes to quarantine; None accepts any. Default 15 minutes.
    precision : timedelta, optional
        1 second, minute, hour or day: windows start and end on such a unit. Default 1 minute.
    longest : timedelta, optional
        The longest window that is read regularly; longer ones within the retention read more items. Default 24 hours
        or the retention, if that is shorter; 10 years of a `TimeWeighted`, as all that was before makes its level.
    tz : str, optional
        Time zone of its calendar for reads that name none: an IANA name, or one of its fields, which holds that of each
        group. It can change at any time, as `anchor` can. Default ``"UTC"``.
    anchor : int, optional
        Day on which its months begin, 1 to 31; the last day of a month that is shorter. Default 1.
    """

    name: str
    source: Event | Items
    _: KW_ONLY
    by: InitVar[Fields | None] = None
    pk: str = ""
    time: str
    retention: timedelta | None = None
    measure: Count | Sum | TimeWeighted = field(default=Count())
    where: Condition | None = None
    late: Literal["drop", "quarantine"] = "drop"
    future_tolerance: timedelta | None = timedelta(minutes=15)
    on_expiry: OnExpiry = "keep"
    precision: timedelta = timedelta(minutes=1)
    longest: timedelta | None = None
    tz: str = "UTC"
    anchor: int = 1

    def __post_init__(self, by: Fields | None) -> None:
        require_counting(self, Event, Items)
        fields = checks.fields_instead(self.name, "by", by, self.pk)
        if fields is not None:
            is_shared = isinstance(self.source, Event) and fields and fields == self.source._pk_template.fields
            object.__setattr__(self, "pk", self.source.pk if is_shared else checks.named_key(self.name, fields))
        checks.require_key("pk", self.pk)
        argument, value = ("pk", self.pk) if fields is None else ("by", by)
        checks.require_no_member(argument, self.fields)
        checks.require_attribute("time", self.time)
        if not isinstance(self.measure, Count | Sum | TimeWeighted):
            raise InvalidArgumentError("measure", self.measure, "a Count(), Sum('ms') or TimeWeighted('seats')")
        if isinstance(self.measure, TimeWeighted):
            require(self.retention is None, "retention", self.retention, "None: a level is the sum of all changes")
        checks.require_no_member("time", [self.time])
        precisions = [timedelta(seconds=tier.slot_seconds) for tier in TIERS]
        require(self.precision in precisions, "precision", self.precision, "1 second, 1 minute, 1 hour or 1 day")
        if self.longest is not None and not self.precision <= self.longest <= (self.retention or timedelta.max):
            raise InvalidArgumentError("longest", self.longest, "from the precision up to the retention")
        if self.tz not in self.fields:
            time_zone(self.tz)
        require_anchor(self.anchor, "month")
        if isinstance(self.source, Event):
            vocabulary = self.source._vocabulary
            vocabulary.require_key(argument, self.fields, self.where)
            vocabulary.require("time", self.time, "a time", self.where)
            vocabulary.require_all("measure", [self.measure], self.where)
        for name in self._attributes:
            require(name not in self.fields, argument, value, f"fields other than {name!r}, which it counts in")

    @cached_property
    def _longest_window(self) -> timedelta:
        if self.longest is not None:
            return self.longest
        # A level is the sum of all changes before, so there must be buckets that cover these.
        default = timedelta(days=3650 if isinstance(self.measure, TimeWeighted) else 1)
        return max(self.precision, min(default, self.retention or default))

    @property
    def _unit(self) -> int:
        return self.precision // timedelta(seconds=1)

    @cached_property
    def _kept_tiers(self) -> tuple[Tier, ...]:
        # The one with slots of the precision, then each whose buckets are shorter than the longest window.
        finest, *coarser = (tier for tier in TIERS if tier.slot_seconds >= self._unit)
        return (finest, *(tier for tier in coarser if tier.seconds < self._longest_window.total_seconds()))

    @cached_property
    def _attributes(self) -> tuple[str, ...]:
        names = dict.fromkeys((TOTAL, *(slot for tier in self._kept_tiers for slot in tier.slots)))
        return tuple(attribute for name in names for attribute in self.measure._attributes(name))

    @cached_property
    def _sk_template(self) -> KeyTemplate:
        return key_template(f"WINDOW#{self.name}#{{{TIER_FIELD}}}#{{{BUCKET_FIELD}}}", MAX_SK_BYTES, "name")
