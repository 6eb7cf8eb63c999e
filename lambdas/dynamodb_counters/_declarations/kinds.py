"""Whether a declaration is of the kind that a read or write takes; if not, what to call instead."""

from __future__ import annotations

from typing import Final

from dynamodb_counters._declarations.aggregates import Aggregate
from dynamodb_counters._declarations.composites import Distinct, Hierarchy
from dynamodb_counters._declarations.quotas import Quota
from dynamodb_counters._declarations.sources import Event, Items
from dynamodb_counters._declarations.windows import Window
from dynamodb_counters.errors import InvalidArgumentError

_ADVICE: Final[dict[type, tuple[str, str]]] = {
    Window: ("a Window", "use window()"),
    Distinct: ("a Distinct", "use get(), or its `total`"),
    Hierarchy: ("a Hierarchy", "use its level(…), or partition()"),
    Event: ("an Event", "declare an Aggregate over it, or use events()"),
    Items: ("Items", "declare an Aggregate over them"),
    Aggregate: ("an Aggregate", "use get()"),
    Quota: ("a Quota", "use leases()"),
    str: ("a name", "pass the declaration itself"),
}


def require_aggregate(declared: object, argument: str = "aggregate") -> None:
    """Refuse all but an Aggregate.

    >>> require_aggregate("views")
    Traceback (most recent call last):
    ...
    dynamodb_counters.errors.InvalidArgumentError: invalid aggregate='views': expected an Aggregate; for a name, pass the declaration itself
    """  # noqa: E501
    _require(declared, Aggregate, argument)


def require_window(declared: object, argument: str = "window") -> None:
    _require(declared, Window, argument)


def require_event(declared: object, argument: str = "event") -> None:
    _require(declared, Event, argument)


def _require(declared: object, wanted: type, argument: str) -> None:
    if isinstance(declared, wanted):
        return
    article = _ADVICE[wanted][0]
    for kind, (name, advice) in _ADVICE.items():
        if isinstance(declared, kind):
            shown = declared if isinstance(declared, str) else getattr(declared, "name", "")
            raise InvalidArgumentError(argument, shown, f"{article}; for {name}, {advice}")
    raise InvalidArgumentError(argument, declared, article)
