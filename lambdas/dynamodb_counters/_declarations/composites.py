"""Declarations made of aggregates, thresholds of these, and which read takes which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar

from dynamodb_counters._declarations import checks
from dynamodb_counters._declarations.aggregates import GAP, Aggregate, OnExpiry, Window, require_counting
from dynamodb_counters._declarations.checks import Fields, named_key, require
from dynamodb_counters._declarations.event_attributes import Kind
from dynamodb_counters._declarations.measures import Average, Count, Sum, ascending, call_text
from dynamodb_counters._declarations.quotas import Quota
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._items.conditions import Attr, Condition
from dynamodb_counters._items.conversions import Number, format_number
from dynamodb_counters._items.keys import LEAST_ERROR, LOG, MOST_ERROR, ORDER, Scale, key_template, parts_of, scale_of
from dynamodb_counters._items.schema import MAX_SK_BYTES
from dynamodb_counters.errors import InvalidArgumentError

Kinds = TypeVar("Kinds")

MEMBERS: Final = "-members"  # End of the name of the aggregate that counts the members of a `Distinct`.
MOST_UNITS: Final = 372  # Of time in a member's page: all may change in one update, as of `MAX_ATTRIBUTES`.
TIMED: Final = ("active", "distributions")  # Reads over spans of time.
MOST_LEVELS: Final = 20  # Of a threshold.
MOST_BOUND: Final = 10**18 - 1  # Of scores, in steps.
MOST_STEPS: Final = 10**12  # From the least to the most score.
EVENT_SOURCE: Final = "dynamodb-counters"  # By this and the next, events on EventBridge are known.
DETAIL_TYPE: Final = "Threshold Crossed"


@dataclass(frozen=True, slots=True)
class Composite:
    """Made of aggregates, or of one that users do not see."""

    name: str
    source: Event | Items | Aggregate
    _: KW_ONLY
    where: Condition | None = None
    on_expiry: OnExpiry = "keep"
    __repr__ = call_text

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        raise NotImplementedError

    def _require(self, argument: str, kind: Kind | None = None) -> None:
        """Refuse an argument that names no attribute of a kind, or without a kind none that a key can hold."""
        name = getattr(self, argument)
        checks.require_attribute(argument, name)
        if isinstance(self.source, Event) and kind is None:
            self.source._vocabulary.require_key(argument, [name], self.where)
        elif isinstance(self.source, Event) and kind is not None:
            self.source._vocabulary.require(argument, name, kind, self.where)

    def _part(self, name: str, **arguments: Any) -> Aggregate:
        shared = {field: getattr(self, field) for field in ("where", "on_expiry", "retention") if hasattr(self, field)}
        return Aggregate(name, self.source, **shared, **arguments)


@dataclass(frozen=True, slots=True, repr=False)
class Grouped(Composite):
    """A composite by fields of its source's items, which may have a unit of time."""

    source: Event | Items
    _: KW_ONLY
    by: Fields = ()

    def __post_init__(self) -> None:
        require_counting(self, Event, Items)
        object.__setattr__(self, "by", checks.field_names("by", self.by))
        self._check()
        _ = self._parts

    def _check(self) -> None:
        raise NotImplementedError

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make up a group."""
        return tuple(self.by)

    def _keys(self, *sort_fields: str) -> dict[str, Any]:
        return {"pk": named_key(self.name, self.fields), "sk": named_key(self.name, sort_fields)}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Distinct(Composite):
    """How many different members a group has: visitors of a page, active players.

    A member counts once however many items it has, and no longer when all of them are gone.

    Parameters
    ----------
    member : str
        Attribute that identifies a member.
    name, source, by, pk, sk, where, on_expiry, pages
        As in `Aggregate`; a name has at most 56 characters.
    retention : timedelta or None, optional
        As in `Aggregate`, but TTL deletes the members alone, and the number stays. Needs ``on_expiry="keep"``.
    """

    by: InitVar[Fields | None] = None
    pk: str = ""
    sk: str = ""
    member: str
    retention: timedelta | None = None
    pages: bool = False

    def __post_init__(self, by: Fields | None) -> None:
        require_counting(self, Event, Items, Aggregate)
        if checks.fields_instead(self.name, "by", by, self.pk, self.sk) is not None:
            retention = self.retention if self.pages else None
            total = Aggregate(self.name, self.source, by=by, items=Count(), pages=self.pages, retention=retention)
            object.__setattr__(self, "pk", total.pk)
            object.__setattr__(self, "sk", total.sk)
        self._require("member")
        fields = self.total.fields
        require(self.member not in fields, "member", self.member, "an attribute that is not part of the group's key")
        # The number lacks members, so a time among these alone says nothing of it.
        checks.require_retention(self.retention, fields)
        is_allowed = self.retention is None or self.on_expiry == "keep"
        require(is_allowed, "on_expiry", self.on_expiry, "'keep' with a retention: its counts stay")

    @property
    def total(self) -> Aggregate:
        """The aggregate that counts members, in the measure ``distinct``."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        """The aggregate of each member's items, in the measure ``items``, and the one that counts members."""
        pk, sk = self.pk, self.sk
        member = f"{sk}#MEMBER#{{{self.member}}}"
        members = self._part(f"{self.name}{MEMBERS}", pk=pk, sk=member, items=Count(), pages=self.pages)
        # One group in a partition has an item of its own.
        pages, is_active = self.pages and bool(key_template(sk, MAX_SK_BYTES, "sk").fields), Attr("items").ge(1)
        return members, Aggregate(self.name, members, pk=pk, sk=sk, distinct=Count(), where=is_active, pages=pages)


def with_parts(names: Iterable[str], declarations: Iterable[Aggregate | Window]) -> set[str]:
    """Return names that a person gives with what they mean: of a `Distinct` its members, too, of `Ranks` all digits."""
    result = {*names}
    for part in declarations:
        own, below = part.name, part.source.name if isinstance(part.source, Aggregate) else ""
        result |= {below} if own in result and below == f"{own}{MEMBERS}" else set()
        result |= {own} if (digit := digit_of(part)) and own.removesuffix(f"-{digit}") in result else set()
    return result


def _unit_field(declaration: Any) -> str:
    return f"{declaration.time}:{checks.require_precision(declaration.precision).name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveMembers(Grouped):
    """How many different members were active in any span of time, past or present: the users of the last 30 days.

    A member counts once in a span, however many items it has there, and no longer when all of them are gone.

    Parameters
    ----------
    member : str
        As in `Distinct`.
    time : str
        As in `Window`.
    precision : timedelta, optional
        1 minute, hour or day: spans begin and end on such a unit, in UTC. Default 1 day.
    longest : timedelta, optional
        The longest span that can be asked for, up to 186 units. Default 30 units.
    name, source, by, where, on_expiry
        As in `Aggregate`, but over an `Event` or `Items`; a name has at most 56 characters.
    """

    member: str
    time: str
    precision: timedelta = timedelta(days=1)
    longest: timedelta | None = None

    def _check(self) -> None:
        self._require("member")
        self._require("time", "a time")
        checks.require_precision(self.precision)
        lengths = [times * self.precision for times in range(1, MOST_UNITS // 2 + 1)]
        allowed = f"1 to {MOST_UNITS // 2} times the precision, {self.precision}"
        require(self._longest in lengths, "longest", self._longest, allowed)
        unit = _unit_field(self)
        require({GAP, unit}.isdisjoint(self.fields), "by", self.by, f"fields other than {GAP!r} and {unit!r}")
        allowed = f"an attribute other than {GAP!r} and those of `by`"
        require(self.member not in (*self.fields, GAP), "member", self.member, allowed)

    @property
    def _longest(self) -> timedelta:
        return 30 * self.precision if self.longest is None else self.longest

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        """The aggregate of each member's items by the unit, and the one that counts a unit's members by their gaps."""
        # Those active from a to b are all that were active at some unit in there, but not since a: S. Muthukrishnan,
        # "Efficient algorithms for document retrieval problems", SODA 2002.
        # A page holds a stretch of a member's units, or all gaps of a unit. A unit less than the longest span before a
        # stretch's end is in the next one's page, too: each page shows how long ago its member was active before.
        name, units = f"{self.name}{MEMBERS}", self._longest // self.precision
        stretch = f"{self.time}:{MOST_UNITS - units}{checks.require_precision(self.precision).name[0]}"
        pk, sk = named_key(name, (*self.fields, self.member)), named_key(name, (stretch, _unit_field(self)))
        members = self._part(name, pk=pk, sk=sk, items=Count(), pages=True, _shelved=1, _longest=units)
        keys = self._keys(_unit_field(self), GAP)
        return members, Aggregate(self.name, members, **keys, active=Count(), pages=True, _shelved=1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Extremes(Grouped):
    """The largest and smallest values of each group: maximum and minimum, first and latest, the ten slowest.

    An item that is corrected or deleted takes its value back. A batch writes an item per value that it touches.

    Parameters
    ----------
    attribute : str
        A number, or a time in ISO 8601 with an offset; an item without it goes to quarantine.
    show : str or sequence of str, optional
        Fields that are read with a value, such as the URL of the latest view; ties break by them. Default: none.
    name, source, by, where, on_expiry, retention
        As in `Aggregate`, but over an `Event` or `Items`.
    """

    attribute: str
    show: Fields = ()
    retention: timedelta | None = None

    def _check(self) -> None:
        object.__setattr__(self, "show", checks.field_names("show", self.show))
        self._require("attribute", "a string or number")

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        return (self._part(self.name, **self._keys(f"{self.attribute}:{ORDER}", *self.show), items=Count()),)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Percentiles(Grouped):
    """How the values of a number are distributed in each group: percentiles with a relative error that is guaranteed.

    Parameters
    ----------
    attribute : str
        A number attribute; an item without it goes to quarantine.
    error : float or Decimal, optional
        Largest relative error of a percentile, 0.001 to 0.5. Half of it doubles the bins. Default 0.01.
    time : str, optional
        Attribute that holds the event's time, for percentiles over spans of time and series. Default: none.
    precision : timedelta, optional
        With a `time`: 1 minute, hour or day, each with a distribution of its own; a span reads all. Default 1 hour.
    name, source, by, where, on_expiry, retention
        As in `Aggregate`, but over an `Event` or `Items`; what a retention follows is the `time`, if given.
    """

    attribute: str
    error: float | Decimal = 0.01
    time: str | None = None
    precision: timedelta = timedelta(hours=1)
    retention: timedelta | None = None

    def _check(self) -> None:
        self._require("attribute", "a number")
        is_number = isinstance(self.error, float | int | Decimal) and not isinstance(self.error, bool)
        if not is_number or not LEAST_ERROR <= Decimal(str(self.error)) <= MOST_ERROR:
            raise InvalidArgumentError("error", self.error, f"a number from {LEAST_ERROR} to {MOST_ERROR}")
        checks.require_precision(self.precision)
        if self.time is not None:
            self._require("time", "a time")
            unit = _unit_field(self)
            require(unit not in self.fields, "by", self.by, f"fields other than {unit!r}, which the time is")

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        # A shelf of pages has the bins of a group and unit of time.
        shelf = () if self.time is None else (_unit_field(self),)
        keys = self._keys(*shelf, f"{self.attribute}:{LOG}{format_number(Decimal(str(self.error)))}")
        return (self._part(self.name, **keys, values=Count(), pages=True, _shelved=len(shelf)),)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ranks(Composite):
    """Which rank each score has among any number of members, and which score has a rank: exact, by a few small reads.

    Counts members by the digits of their scores, to the base of 100, in a page for all that follow the same digits: a
    change of a score takes away from some pages and adds to others. Members with the same score share a rank.

    Parameters
    ----------
    score : str
        A number attribute; of an aggregate, a `Count` or `Sum` of its groups, which then are the members.
    least, most : int or Decimal
        The range of scores, both included: less than 10¹² steps. What is outside, or between steps, goes to quarantine.
    places : int, optional
        Decimal places that a score may have, 0 to 9. Default 0.
    by : str or sequence of str, optional
        As in `Aggregate`: the board. Default: one of all.
    name, source, where, on_expiry, retention
        As in `Aggregate`; a name has at most 62 characters.
    """

    by: Fields = ()
    score: str
    least: Number
    most: Number
    places: int = 0
    retention: timedelta | None = None

    def __post_init__(self) -> None:
        require_counting(self, Event, Items, Aggregate)
        object.__setattr__(self, "by", checks.field_names("by", self.by))
        self._require("score", "a number")
        is_path = parts_of(*checks.field_names("score", self.score)) == (self.score.removesuffix("[]"), "", None)
        require(is_path, "score", self.score, "an attribute that is not derived, in no list, and has no default")
        if isinstance(self.source, Aggregate):
            names = [name for name, measure in self.source.measures.items() if isinstance(measure, Count | Sum)]
            require(self.score in names, "score", self.score, f"a Count or Sum of {self.source.name!r}")
            require({*self.source.fields} - {*self.by}, "by", self.by, "less than all fields of a member")
        checks.require_count("places", self.places, 9, least=0)
        scale = self._scale
        allowed = f"more than least, {self.least}, by less than 10^12 steps of the last decimal place"
        require(0 < scale.most - scale.least < MOST_STEPS, "most", self.most, allowed)
        _ = self._parts

    @property
    def _scale(self) -> Scale:
        widest = Scale(self.places, -MOST_BOUND, MOST_BOUND)
        return Scale(self.places, *(widest.given(name, getattr(self, name)) - MOST_BOUND for name in ("least", "most")))

    @property
    def _parts(self) -> tuple[Aggregate, ...]:
        """An aggregate per digit, from the first one, which has none above, to the last one, of the own name."""
        levels, own = reversed(range(self._scale.levels)), (self.name, self.by, self._scale, self.score)
        return tuple([self._part(**level_keys(*own, level), members=Count(), pages=True) for level in levels])


def digit_of(declaration: Aggregate | Window) -> int | None:
    """Return how many digits come after the one that a declaration counts by; None if it counts by none."""
    scaled = next(map(scale_of, declaration._sk_template.fields[-1:]), None)
    return scaled and scaled[1]


def level_keys(name: str, by: Sequence[str], scale: Scale, score: str, level: int) -> dict[str, Any]:
    """Return the name and the keys of the aggregate that counts members by the digit of a level."""
    name, fields = f"{name}-{level}" if level else name, scale.fields(score, level)
    return {"name": name, "pk": named_key(name, by), "sk": named_key(name, fields), "_shelved": len(fields) - 1}


@dataclass(frozen=True, slots=True)
class Threshold:
    """Lines that a measure of a group crosses; each crossing is an event on EventBridge, once.

    Parameters
    ----------
    name : str
        A letter, then up to 63 letters, digits, ``-`` or ``_``; unique in a table.
    aggregate : Aggregate or Distinct
        Whose groups are watched, with one write shard.
    at : sequence of int or Decimal
        1 to 20 ascending levels: a group is above one from that number on.
    measure : str, optional
        A `Count`, `Sum` or `Average`. Default: the only one.
    direction : {"up", "down", "both"}, optional
        Which crossings count. Default ``"up"``.
    burst : {"all", "highest"}, optional
        Which levels count of several that a change crosses; downwards, ``"highest"`` is the lowest. Default ``"all"``.
    once : bool, optional
        Whether a level counts only the first time that a group crosses it in a direction. Default False.
    """

    name: str
    aggregate: Aggregate | Distinct | None
    _: KW_ONLY
    at: Sequence[Number]
    measure: str = ""
    direction: Literal["up", "down", "both"] = "up"
    burst: Literal["all", "highest"] = "all"
    once: bool = False

    def __post_init__(self) -> None:
        checks.require_arguments(self)
        object.__setattr__(self, "at", ascending("at", self.at, MOST_LEVELS, least=1))
        if self.aggregate is not None:
            target = watched(self.aggregate)
            names = [name for name, measure in target.measures.items() if isinstance(measure, Count | Sum | Average)]
            if self.measure == "" and len(names) == 1:
                object.__setattr__(self, "measure", names[0])
            allowed = f"a Count, Sum or Average of {target.name!r}: {', '.join(names) or 'it has none'}"
            require(self.measure in names, "measure", self.measure, allowed)


def watched(aggregate: object) -> Aggregate:
    target = aggregate.total if isinstance(aggregate, Distinct) else aggregate
    if not isinstance(target, Aggregate) or read_by(target) != "get":
        allowed = "an Aggregate or Distinct, whose items show each change; instead of a Window, one by at:month"
        raise InvalidArgumentError("aggregate", aggregate, allowed)
    require(target.write_shards == 1, "aggregate", target.name, "one with write_shards=1: a group is one item")
    return target


_ADVICE: Final[dict[type, tuple[str, str]]] = {
    Window: ("a Window", "use window()"),
    Distinct: ("a Distinct", "use get(), or its `total`"),
    Percentiles: ("Percentiles", "use get() or, with a `time`, window()"),
    ActiveMembers: ("ActiveMembers", "use window()"),
    Extremes: ("Extremes", "use extremes()"),
    Ranks: ("Ranks", "use rank(), at() or between()"),
    Event: ("an Event", "declare an Aggregate over it, or use events()"),
    Items: ("Items", "declare an Aggregate over them"),
    Aggregate: ("an Aggregate", "use get()"),
    Quota: ("a Quota", "use leases()"),
    str: ("a name", "pass the declaration itself"),
}


def read_by(aggregate: Aggregate) -> str:
    """Return the read that understands the groups of an aggregate, by what its sort key ends in."""
    source, derivations = aggregate.source, [parts_of(field)[1] for field in aggregate._sk_template.fields]
    if isinstance(source, Aggregate) and source._longest:
        return "active"
    if digit_of(aggregate) == 0:
        return "ranks"
    if any(name.startswith(LOG) for name in derivations):
        return "distributions" if aggregate._shelved else "distribution"
    return "extremes" if ORDER in derivations else "get"


def group_fields(declaration: Aggregate | Window) -> tuple[str, ...]:
    """Return the fields by which a read names a group: those of its partition where the read is another than `get`."""
    has_own_read = isinstance(declaration, Aggregate) and read_by(declaration) != "get"
    return declaration._pk_template.fields if has_own_read else declaration.fields


def longest_of(declaration: Aggregate | Window) -> timedelta | None:
    """Return the longest span that a read may have of a declaration that counts by time; None if it says none."""
    if isinstance(declaration, Window):
        return declaration.longest
    source = declaration.source
    return timedelta(seconds=source._longest * declaration._unit) if isinstance(source, Aggregate) else None


def require_answerable(argument: str, declaration: Aggregate | Window, span: timedelta) -> None:
    """Refuse a trailing span of which hardly anything may have happened yet."""
    allowed = f"more than the unit that {declaration.name!r} counts by, as the current one is not over: see between()"
    require(span != timedelta(seconds=declaration._unit), argument, span, allowed)


def require_declaration(declaration: object, kind: type[Kinds], argument: str = "") -> Kinds:
    """Refuse all but a kind of declaration; the argument has its name by default."""
    if isinstance(declaration, kind):
        return declaration
    argument, article = argument or kind.__name__.lower(), _ADVICE[kind][0]
    for unfit, (name, advice) in _ADVICE.items():
        if isinstance(declaration, unfit):
            value = declaration if isinstance(declaration, str) else getattr(declaration, "name", "")
            raise InvalidArgumentError(argument, value, f"{article}; for {name}, {advice}")
    raise InvalidArgumentError(argument, declaration, article)
