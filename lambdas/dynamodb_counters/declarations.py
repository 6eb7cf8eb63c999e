"""What is counted: events, aggregates and windows, declared once and shared by infrastructure and runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from dynamodb_counters.conditions import Condition
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.keys import KeyTemplate, key_template
from dynamodb_counters.schema import MAX_PK_BYTES, MAX_SK_BYTES, QUARANTINE, is_reserved

OnExpiry: TypeAlias = Literal["keep", "subtract"]
Late: TypeAlias = Literal["drop", "quarantine"]

MAX_SPREAD: Final = 100

BUCKET_FIELD: Final = "_bucket"
"""The field of a window's sort key that the runtime fills in: the start of the bucket."""

SPREAD_FIELD: Final = "_spread"
"""The field of a spread aggregate's partition key that the runtime fills in: which of its items."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens and is to be counted once.

    Parameters
    ----------
    name : str
        Letters, digits, ``-`` and ``_``; unique in a table.
    pk, sk : str
        Key templates. Together their fields are the event key: what makes an event unique.
    retention : timedelta or None, optional
        How long an accepted event is remembered, so that its repetition is recognised. Default: for good.
    version : str or None, optional
        Attribute, a number or a string, by which a source corrects itself: an event whose version is greater replaces
        the one before. Default: the first one stands.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.

    Examples
    --------
    >>> Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7)).name
    'view'
    """

    name: str
    pk: str
    sk: str
    retention: timedelta | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_fields("pk", self.pk)
        _require_fields("sk", self.sk)
        _require_duration("retention", self.retention)
        if self.version is not None and (not isinstance(self.version, str) or is_reserved(self.version)):
            raise InvalidArgumentError("version", self.version, "an attribute that is not reserved, or None")

    @property
    def pk_template(self) -> KeyTemplate:
        """The partition key's template."""
        return key_template(self.pk, MAX_PK_BYTES, "pk")

    @property
    def sk_template(self) -> KeyTemplate:
        """The sort key's template."""
        return key_template(self.sk, MAX_SK_BYTES, "sk")


@dataclass(frozen=True, slots=True)
class Count:
    """Measures how many items there are: each adds 1."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Measures the sum of a number attribute, exactly.

    Parameters
    ----------
    attribute : str
        A number in every item the aggregate looks at; an item without it goes to quarantine.
    """

    attribute: str

    def __post_init__(self) -> None:
        if not isinstance(self.attribute, str) or not self.attribute:
            raise InvalidArgumentError("attribute", self.attribute, "an attribute name")


Measure: TypeAlias = Count | Sum


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Numbers kept current over all items of a source, one item a group.

    Parameters
    ----------
    name : str
        Unique in a table.
    source : Event
        The items it looks at.
    pk, sk : str
        Key templates of its items. Their fields are attributes of the source: the group.
    measures : mapping of str to Count or Sum
        What to keep, by attribute name.
    where : Condition, optional
        Items it looks at. Default: all of the source.
    on_expiry : {"keep", "subtract"}, optional
        Whether an item deleted by TTL stays counted. Default ``"keep"``.
    spread : int, optional
        Over how many items, each fed by some of the stream's shards, a group is spread; a read adds them up. For a
        group that changes in every batch of a table with many shards. Changing it later loses what was counted.
        Default 1.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.

    Examples
    --------
    >>> view = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
    >>> Aggregate("views", view, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()}).fields
    ('url',)
    """

    name: str
    source: Event
    pk: str
    sk: str
    measures: Mapping[str, Measure]
    where: Condition | None = None
    on_expiry: OnExpiry = "keep"
    spread: int = 1

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_source(self.source)
        _require_where(self.where)
        _require_choice("on_expiry", self.on_expiry, ("keep", "subtract"))
        _require_fields("pk", self.pk)
        _require_fields("sk", self.sk)
        if not isinstance(self.spread, int) or isinstance(self.spread, bool) or not 1 <= self.spread <= MAX_SPREAD:
            raise InvalidArgumentError("spread", self.spread, f"an int from 1 to {MAX_SPREAD}")
        if not isinstance(self.measures, Mapping) or not self.measures:
            raise InvalidArgumentError("measures", self.measures, "at least one, such as {'views': Count()}")
        for name, measure in self.measures.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name) or is_reserved(name) or name in self.fields:
                raise InvalidArgumentError("measures", name, "names that are neither reserved nor fields of the key")
            if not isinstance(measure, Count | Sum):
                raise InvalidArgumentError("measures", measure, "Count() or Sum('attribute')")

    @property
    def pk_template(self) -> KeyTemplate:
        """The partition key's template."""
        text = self.pk if self.spread == 1 else f"{self.pk}#~{{{SPREAD_FIELD}}}"
        return key_template(text, MAX_PK_BYTES, "pk")

    @property
    def sk_template(self) -> KeyTemplate:
        """The sort key's template."""
        return key_template(self.sk, MAX_SK_BYTES, "sk")

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that make a group, in the order of the key."""
        return _fields(self.pk_template, self.sk_template)


@dataclass(frozen=True, slots=True)
class Window:
    """How many in the last hours: counts cut into time buckets, one item a group and hour with a slot a minute.

    Parameters
    ----------
    name : str
        Unique in a table.
    source : Event
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
    source: Event
    pk: str
    time: str
    retention: timedelta | None = None
    measure: Measure = field(default_factory=Count)
    where: Condition | None = None
    late: Late = "drop"
    future_tolerance: timedelta | None = timedelta(minutes=15)
    on_expiry: OnExpiry = "keep"

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_source(self.source)
        _require_where(self.where)
        _require_fields("pk", self.pk)
        if not isinstance(self.time, str) or not self.time:
            raise InvalidArgumentError("time", self.time, "the attribute that holds the event's time")
        if not isinstance(self.measure, Count | Sum):
            raise InvalidArgumentError("measure", self.measure, "Count() or Sum('attribute')")
        _require_duration("retention", self.retention)
        _require_duration("future_tolerance", self.future_tolerance, zero=True)
        _require_choice("late", self.late, ("drop", "quarantine"))
        _require_choice("on_expiry", self.on_expiry, ("keep", "subtract"))

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


Declaration: TypeAlias = Aggregate | Window


def require_consistent(declarations: tuple[Declaration, ...]) -> None:
    """Check declarations that are to share a table.

    Parameters
    ----------
    declarations : tuple of Aggregate and Window
        All aggregates and windows of one table.

    Raises
    ------
    InvalidArgumentError
        Two share a name without being the same, or two could write the same item.

    Examples
    --------
    >>> require_consistent(())
    """
    named: dict[str, Declaration | Event] = {}
    for declaration in declarations:
        for part in (declaration.source, declaration):
            if named.setdefault(part.name, part) != part:
                raise InvalidArgumentError("name", part.name, "one declaration a name; rename one of the two")
    if len({declaration.name for declaration in declarations}) < len(declarations):
        raise InvalidArgumentError("declarations", [d.name for d in declarations], "each declaration once")
    parts = list(named.values())
    for index, one in enumerate(parts):
        for two in parts[index + 1 :]:
            if one.pk_template.overlaps(two.pk_template) and one.sk_template.overlaps(two.sk_template):
                raise (
                    InvalidArgumentError(
                        "sk", two.sk, f"a key that no item of {one.name!r} can have; change pk or sk of {two.name!r}"
                    )
                    if not isinstance(two, Window)
                    else InvalidArgumentError(
                        "name", two.name, f"a name whose bucket keys no item of {one.name!r} can have"
                    )
                )


def _fields(*templates: KeyTemplate) -> tuple[str, ...]:
    names = dict.fromkeys(name for template in templates for name in template.fields)
    return tuple(name for name in names if not is_reserved(name))


def _require_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == QUARANTINE:
        raise InvalidArgumentError("name", name, "a letter, then up to 63 letters, digits, '-' or '_'")


def _require_source(source: object) -> None:
    if not isinstance(source, Event):
        raise InvalidArgumentError("source", source, "an Event")


def _require_where(where: object) -> None:
    if where is not None and not isinstance(where, Condition):
        raise InvalidArgumentError("where", where, "a Condition such as Attr('status').eq('paid')")


def _require_choice(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(argument, value, "one of " + ", ".join(map(repr, allowed)))


def _require_duration(argument: str, value: object, *, zero: bool = False) -> None:
    if value is None:
        return
    if not isinstance(value, timedelta) or value < timedelta(0) or (not zero and value < timedelta(seconds=1)):
        raise InvalidArgumentError(argument, value, f"a timedelta of {'0' if zero else '1 second'} or more, or None")


def _require_fields(argument: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidArgumentError(argument, text, "a template such as 'URL#{url}'")
    for name in key_template(text, MAX_PK_BYTES if argument == "pk" else MAX_SK_BYTES, argument).fields:
        if is_reserved(name):
            raise InvalidArgumentError(argument, text, f"fields that are not reserved ({name!r} is)")
