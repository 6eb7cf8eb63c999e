"""Families of measures that are more than sums: bins of values, active members, levels and values in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

from dynamodb_counters._declarations import ActiveMembers, Declaration, Extremes, Percentiles, TimeWeighted, Window
from dynamodb_counters._declarations.composites import MEMBERS
from dynamodb_counters._items.conditions import Attr
from simulation.pairs import features
from simulation.pairs.subjects import ONE, ORDER, TAP, VISIT, Counted, Family, Group, Parts, Subject, Values, number

_ERROR: Final = Decimal("0.2")
_LIGHT: Final = 1000
_BY_WEIGHT: Final = "weight:log0.5"
"""A member that some events lack."""

_HOUR: Final = 3600
_STRETCH: Final = 252
_LONGEST: Final = 120
"""Hours that a member's page has and looks back: nearly half of all visits are in two pages."""


def _hour(seconds: Any) -> int:
    return int(seconds) // _HOUR


def _hour_text(hour: int) -> str:
    return datetime.fromtimestamp(hour * _HOUR, UTC).isoformat()[:13]


def _bin(value: Decimal) -> str:
    """The bin of a whole number, found bound by bound."""
    taken = _ERROR * Decimal("0.999")
    growth, bound, index = (1 + taken) / (1 - taken), ONE, 0
    while value > bound:
        bound, index = bound * growth, index + 1
    return str(index)


def _percentiles(name: str, source: Any, by: str, attribute: str, time: str | None) -> Family:
    def counted(shelved: str | None, values: Values) -> Counted:
        shelf = () if shelved is None else (_hour_text(_hour(values[shelved])),)
        return [((values[by], *shelf, _bin(number(values[attribute]))), {"values": ONE})]

    def of(shelved: str | None, where: Any = None) -> Subject:
        declared = Percentiles(
            name, source, by=by, attribute=attribute, error=_ERROR, time=shelved, where=where, on_expiry="subtract"
        )

        def of_light(values: Values) -> Counted:
            return counted(shelved, values) if values[attribute] < _LIGHT else []

        return Subject(declared._parts[-1], of_light if where is not None else partial(counted, shelved))

    light = Attr(attribute).lt(_LIGHT)
    return ([of(time)], [of(None)], [of(time, light)], [of(None, light)])


def _of(values: Values, field: str) -> Any:
    """The text of a field that may have a default."""
    if field == _BY_WEIGHT:
        # One of whole numbers.
        return str(min(int(number(values["weight"])) - 1, 2))
    name, _, default = field.partition("?")
    return values.get(name) or default if default else values[name]


def _members(values: Values, group: str, member: str) -> Counted:
    hour = _hour(values["at"])
    stretch = hour // _STRETCH * _STRETCH
    stretches = [stretch] if hour <= stretch + _STRETCH - _LONGEST else [stretch, stretch + _STRETCH]
    who = values[group], _of(values, member)
    return [((*who, _hour_text(each), _hour_text(hour)), {"items": ONE}) for each in stretches]


def _gaps(groups: Mapping[Group, Parts]) -> Counted:
    """Members of each hour by the gap to their hour before, of all pages of all members."""
    hours = defaultdict[tuple[str, ...], list[str]](list)
    for (group, member, stretch, hour), parts in groups.items():
        if parts.get("items", 0) > 0:
            hours[group, member, stretch].append(hour)
    found: Counted = []
    for (group, _, stretch), active in hours.items():
        for hour in (each for each in active if each >= stretch):
            moments = [datetime.fromisoformat(f"{each}:00") for each in active if each <= hour]
            *_, before, now = [None, *sorted(moments)]
            assert now is not None
            gap = _LONGEST if before is None else min((now - before) // timedelta(hours=1), _LONGEST)
            found.append(((group, hour, str(gap)), {"active": ONE}))
    return found


def _active(name: str, source: Any, group: str, member: str, attribute: str) -> Family:
    def of(where: Any = None, who: str = member) -> list[Subject]:
        declared = ActiveMembers(
            name,
            source,
            by=group,
            member=who,
            time="at",
            precision=timedelta(hours=1),
            longest=timedelta(hours=_LONGEST),
            where=where,
        )

        def counted(values: Values) -> Counted:
            return _members(values, group, who) if where is None or values[attribute] >= 3 else []

        return [Subject(declared._parts[0], counted), Subject(declared._parts[-1], lambda _: [], _gaps)]

    by_weight = [of(who=_BY_WEIGHT)] if source is VISIT else []
    return of(), of(Attr(attribute).ge(3)), *by_weight


def _extremes(name: str, source: Any, by: str, attribute: str, show: str) -> Family:
    def of(where: Any = None) -> Subject:
        declared = Extremes(name, source, by=by, attribute=attribute, show=show, where=where)

        def counted(values: Values) -> Counted:
            if where is not None and values[attribute] >= _LIGHT:
                return []
            value = number(values[attribute])
            return [((values[by], f"p130{value}", _of(values, show)), {"items": ONE})]

        return Subject(declared._parts[-1], counted)

    return [of()], [of(Attr(attribute).lt(_LIGHT))]


def _level(name: str, source: Any, fields: tuple[str, ...], attribute: str) -> Family:
    def of(where: Any = None) -> Subject:
        declared = Window(
            name,
            source,
            by=fields,
            time="at",
            measure=TimeWeighted(attribute),
            longest=timedelta(hours=1),
            future_tolerance=None,
            where=where,
        )

        def counted(values: Values) -> Counted:
            if where is not None and values[attribute] >= _LIGHT:
                return []
            change, start = number(values[attribute]), _hour(values["at"]) * _HOUR
            group = (*(_of(values, field) for field in fields), str(start))
            return [(group, {"total": change, "total.t": change * (int(values["at"]) - start)})]

        return Subject(declared, counted)

    return [of()], [of(Attr(attribute).lt(_LIGHT))]


MEASURED: Final[Mapping[str, tuple[str, Family]]] = {
    "spread": (features.PERCENTILES, _percentiles("spread", VISIT, "client", "weight", "at")),
    "weights": (features.PERCENTILES, _percentiles("weights", VISIT, "client", "weight", "at")),
    "forces": (features.PERCENTILES, _percentiles("forces", TAP, "device", "force", "at")),
    "prices": (features.PERCENTILES, _percentiles("prices", ORDER, "customer", "size", None)),
    "users": (features.ACTIVE, _active("users", VISIT, "page", "client", "weight")),
    "people": (features.ACTIVE, _active("people", VISIT, "page", "client", "weight")),
    "devices": (features.ACTIVE, _active("devices", TAP, "device", "mode?none", "force")),
    "level": (features.LEVEL, _level("level", VISIT, ("page",), "weight")),
    "pull": (features.LEVEL, _level("pull", TAP, ("device", "mode?none"), "force")),
    "edge": (features.EXTREMES, _extremes("edge", TAP, "device", "force", "mode?none")),
    "heaviest": (features.EXTREMES, _extremes("heaviest", VISIT, "page", "weight", "client")),
    "top": (features.EXTREMES, _extremes("top", VISIT, "page", "weight", "client")),
    "largest": (features.EXTREMES, _extremes("largest", ORDER, "customer", "size", "rush?none")),
}
"""Families, each with the feature that it is of."""


def is_measured(declaration: Declaration) -> bool:
    return declaration.name.removesuffix(MEMBERS) in MEASURED
