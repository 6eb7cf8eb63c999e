"""Whether a declaration is of the kind that a read or write takes; if not, what to call instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal, TypeAlias

from dynamodb_counters._declarations.active_members import ActiveMembers
from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.composites import Distinct
from dynamodb_counters._declarations.extremes import Extremes
from dynamodb_counters._declarations.percentiles import Percentiles
from dynamodb_counters._declarations.quotas import Quota
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters._items.derived_fields import LOG, ORDER, parts_of
from dynamodb_counters.errors import InvalidArgumentError

_ADVICE: Final[dict[type, tuple[str, str]]] = {
    Window: ("a Window", "use window()"),
    Distinct: ("a Distinct", "use get(), or its `total`"),
    Percentiles: ("Percentiles", "use distribution() or, with a `time`, distributions()"),
    ActiveMembers: ("ActiveMembers", "use active()"),
    Extremes: ("Extremes", "use largest() or smallest()"),
    Event: ("an Event", "declare an Aggregate over it, or use events()"),
    Items: ("Items", "declare an Aggregate over them"),
    Aggregate: ("an Aggregate", "use get()"),
    Quota: ("a Quota", "use leases()"),
    str: ("a name", "pass the declaration itself"),
}

Read: TypeAlias = Literal["get", "active", "distribution", "distributions", "extremes"]

TIMED: Final = ("active", "distributions")
"""Reads over spans of time."""


def read_by(aggregate: Aggregate) -> Read:
    """The read that understands the groups of an aggregate, by what its sort key ends in."""
    source, derived = aggregate.source, [parts_of(field)[1] for field in aggregate._sk_template.fields]
    if isinstance(source, Aggregate) and source._longest:
        return "active"
    if any(name.startswith(LOG) for name in derived):
        return "distributions" if aggregate._shelved else "distribution"
    return "extremes" if ORDER in derived else "get"


def group_fields(declared: Aggregate | Window) -> tuple[str, ...]:
    """The fields by which a read names a group: of what only a read of its own understands, those of its partition."""
    own = isinstance(declared, Aggregate) and read_by(declared) != "get"
    return declared._pk_template.fields if own else declared.fields


def longest_of(declared: Aggregate | Window) -> timedelta | None:
    """The longest span that can be asked for of a declaration that counts by time; None if it says none."""
    if isinstance(declared, Window):
        return declared.longest
    source = declared.source
    return timedelta(seconds=source._longest * declared._unit) if isinstance(source, Aggregate) else None


def require_answerable(argument: str, declared: Aggregate | Window, span: timedelta, given: object = None) -> None:
    """Refuse a trailing span of which hardly anything may have happened yet; or all, for what was given instead."""
    unit = timedelta(seconds=declared._unit)
    longest = declared.retention if isinstance(declared, Window) else longest_of(declared)
    if given is None and span != unit:
        return
    name = {1: "second", 60: "minute", 3600: "hour"}.get(declared._unit, "day")
    spans = f"2 {name}s or more" if longest is None else f"2 to {longest // unit} {name}s"
    allowed = f"{spans}, since {declared.name!r} counts by the {name} and the current one is not over: see between()"
    raise InvalidArgumentError(argument, span if given is None else given, allowed)


def require_declaration(declared: object, wanted: type, argument: str = "") -> None:
    """Refuse all but a kind of declaration; the argument is named after it unless another name is given."""
    if isinstance(declared, wanted):
        return
    argument, article = argument or wanted.__name__.lower(), _ADVICE[wanted][0]
    for kind, (name, advice) in _ADVICE.items():
        if isinstance(declared, kind):
            shown = declared if isinstance(declared, str) else getattr(declared, "name", "")
            raise InvalidArgumentError(argument, shown, f"{article}; for {name}, {advice}")
    raise InvalidArgumentError(argument, declared, article)
