"""Declarations of the table, as data: families of definitions under one name, of which the table keeps the first.

An event may have a text in place of a number: a comparison with it is false, and nothing can add it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import (
    ActiveMembers,
    Aggregate,
    Count,
    Counter,
    Declaration,
    Distinct,
    Event,
    Extremes,
    Histogram,
    Items,
    Packed,
    Percentiles,
    Ranking,
    Ranks,
    Sum,
    Threshold,
    TimeWeighted,
    Window,
)
from dynamodb_counters._declarations.composites import MEMBERS
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.keys import parts_of
from simulation.pairs import features

Group: TypeAlias = tuple[str, ...]

POISON: Final = "heavy"
_LIGHT: Final = 1000
_LEVELS: Final = (1, 3, 8)
"""Of thresholds."""

HOUR: Final = timedelta(hours=1)
MOST_GROUPS: Final = 6
ORDER: Final = Items("order", where=Attr("customer").exists())
VISIT: Final = Event("visit", pk="PAGE#{page}", sk="VISIT#{id}", retention=timedelta(minutes=70))
_LAYOUT: Final = Packed("at", timedelta(minutes=10), chunk_bytes=1024)
TAP: Final = Event("tap", pk="DEVICE#{device}", sk="TAP#{id}#{at}", retention=timedelta(hours=2), packed=_LAYOUT)

SOURCES: Final[Mapping[str, Event | Items]] = {source.name: source for source in (ORDER, VISIT, TAP)}

Variant: TypeAlias = Sequence[Any]
"""Declarations, those that others look at first."""

Family: TypeAlias = Sequence[Variant]


def _variants(first: Any, *changes: Mapping[str, Any], pages: Sequence[int] = ()) -> Family:
    """Return a declaration, the same with changes, and some of these with the groups in pages."""
    variants: list[Variant] = [_parts(top) for top in (first, *(replace(first, **change) for change in changes))]
    return [*variants, *(_paged(variants[number]) for number in pages)]


def _parts(declared: Any) -> Variant:
    """Return the declarations that count in place of a composite."""
    parts: Variant = getattr(declared, "_parts", (declared,))
    above = [declared.source] if isinstance(declared.source, Aggregate) else []
    return [*above, *parts] if isinstance(declared, ActiveMembers | Distinct | Ranks) else parts[-1:]


def _paged(variant: Variant) -> Variant:
    """Return a variant with the groups in pages, where a sort key has a field."""
    levels: dict[str, Any] = {}
    for level in variant:
        source = levels.get(level.source.name, level.source)
        levels[level.name] = replace(level, source=source, pages=bool(level._sk_template.fields))
    return [*levels.values()]


def _named(family: Family, name: str, **changes: Any) -> Family:
    """Return the same family under another name, perhaps declared a little otherwise."""
    key = {"pk": name.upper()} | changes if isinstance(family[0][0], Aggregate) else changes
    return [[replace(level, name=name, **key) for level in variant] for variant in family]


def _where(attribute: str) -> dict[str, Any]:
    """Leave out what cannot be added."""
    return {"where": Attr(attribute).lt(_LIGHT)}


def _clients(where: Any, bins: tuple[int, ...], cap: int) -> Variant:
    """Visits by client, what they come to by page, and over all pages."""
    root = Aggregate("per_client", VISIT, pk="PAGE#{page}", sk="CLIENT#{client}", visits=Count(), where=where)
    sizes = Aggregate(
        "sizes",
        root,
        pk="SIZES",
        sk="PAGE#{page}",
        clients=Histogram("visits", exactly=bins),
        capped=Sum("visits", cap=cap),
    )
    pages = Aggregate("pages", sizes, pk="PAGES", sk="ALL", capped=Sum("capped", cap=5))
    some: Any = {"measures": {"pages": Count()}, "where": Attr("visits").ge(2)}
    return root, sizes, pages, Aggregate("crowded", root, pk="CROWDED", sk="{client}", **some)


def _percentiles(name: str, source: Any, by: str, attribute: str, time: str | None) -> Family:
    first = Percentiles(name, source, by=by, attribute=attribute, error=0.2, time=time, on_expiry="subtract")
    light = _where(attribute)
    return _variants(first, {"time": None}, light, {"time": None, **light})


def _active(name: str, source: Any, by: str, member: str, attribute: str) -> Family:
    first = ActiveMembers(name, source, by=by, member=member, time="at", precision=HOUR, longest=120 * HOUR)
    by_weight = [{"member": "weight:log0.5"}] if source is VISIT else []
    return _variants(first, {"where": Attr(attribute).ge(3)}, *by_weight)


def _extremes(name: str, source: Any, by: str, attribute: str, show: str) -> Family:
    return _variants(Extremes(name, source, by=by, attribute=attribute, show=show), _where(attribute))


def _ranks(name: str, source: Any, by: str, score: str) -> Family:
    # Scores on either side of a border of two digits; and a range that not all are in.
    first = Ranks(name, source, by=by, score=score, places=1, least=Decimal("-5.7"), most=2000, on_expiry="subtract")
    return _variants(first, {"most": 4}, _where(score), {"places": 2, "by": ()})


def _window(name: str, source: Any, pk: str, **more: Any) -> Window:
    return Window(name, source, pk=pk, time="at", **{"longest": HOUR, "future_tolerance": None, **more})


def _level(name: str, source: Any, pk: str, attribute: str) -> Family:
    return _variants(_window(name, source, pk, measure=TimeWeighted(attribute)), _where(attribute))


_KEPT: Final = Aggregate(
    "kept",
    VISIT,
    pk="KEPT",
    sk="C#{client}#{page}",
    visits=Count(),
    weight=Sum("weight"),
    score=Sum("score", default=2),
    on_expiry="keep",
)
_CAPPED: Final = {"measures": {"visits": Count(), "weight": Sum("weight", cap=2)}}
_TAPS: Final = Aggregate(
    "taps", TAP, pk="TAPS", sk="DEVICE#{device}#{mode?none}", taps=Count(), force=Sum("force"), on_expiry="keep"
)
_ORDERS: Final = Aggregate("orders", ORDER, pk="ORDERS", sk="BY#{customer}", orders=Count(), total=Sum("price"))
_TAGS: Final = Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", orders=Count())
_RANKED: Final = Aggregate(
    "ranked",
    ORDER,
    pk="CUSTOMER#{customer}",
    sk="STATISTICS",
    total=Sum("price"),
    ranking=Ranking("total", "CUSTOMERS"),
)
_PACE: Final = _window("pace", VISIT, "PACE#{page}")
_OF_KEPT: Final = _variants(_KEPT, _CAPPED, _where("weight"), pages=(0, 2))
_OF_TAPS: Final = _variants(_TAPS, {"where": Attr("force").ge(3)}, pages=(0, 1))
_OF_ORDERS: Final = _variants(
    _ORDERS,
    {"where": Attr("size").ge(3)},
    {"measures": {"orders": Count(), "total": Sum("price", cap=4)}},
    {"sk": "BY#{size}#{rush?none}"},
    pages=(0, 1, 3),
)
_EARNED: Final = Aggregate("earned", VISIT, pk="EARNED", sk="C#{client}#{page}", visits=Count(), weight=Sum("weight"))
_HEAVY: Final = Attr("weight").ge(3)
_OF_VISITS: Final = [_clients(None, (1, 2, 3), 2), _clients(_HEAVY, (1, 2, 3), 2), _clients(None, (1, 4), 3)]
_OF_PACE: Final = _variants(_PACE, {"measure": Sum("weight")})
_OF_TAPPED: Final = _window("tapped", TAP, "TAPPED#{device}#{code:class?none}")

MEASURED: Final[Mapping[str, tuple[str, Family]]] = {
    "spread": (features.PERCENTILES, _percentiles("spread", VISIT, "client", "weight", "at")),
    "weights": (features.PERCENTILES, _percentiles("weights", VISIT, "client", "weight", "at")),
    "forces": (features.PERCENTILES, _percentiles("forces", TAP, "device", "force", "at")),
    "prices": (features.PERCENTILES, _percentiles("prices", ORDER, "customer", "size", None)),
    "users": (features.ACTIVE, _active("users", VISIT, "page", "client", "weight")),
    "people": (features.ACTIVE, _active("people", VISIT, "page", "client", "weight")),
    "devices": (features.ACTIVE, _active("devices", TAP, "device", "mode?none", "force")),
    "level": (features.LEVEL, _level("level", VISIT, "PAGE#{page}", "weight")),
    "pull": (features.LEVEL, _level("pull", TAP, "pull#{device}#{mode?none}", "force")),
    "edge": (features.EXTREMES, _extremes("edge", TAP, "device", "force", "mode?none")),
    "heaviest": (features.EXTREMES, _extremes("heaviest", VISIT, "page", "weight", "client")),
    "top": (features.EXTREMES, _extremes("top", VISIT, "page", "weight", "client")),
    "standing": (features.RANKS, _ranks("standing", VISIT, "page", "weight")),
    "placing": (features.RANKS, _ranks("placing", VISIT, "page", "weight")),
    "strength": (features.RANKS, _ranks("strength", TAP, "device", "force")),
    "bulk": (features.RANKS, _ranks("bulk", ORDER, "customer", "size")),
    "board": (features.RANKS, _ranks("board", _EARNED, "page", "weight")),
    "largest": (features.EXTREMES, _extremes("largest", ORDER, "customer", "size", "rush?none")),
}
"""Families of measures that are more than sums, each with the feature that it is of."""

_NET: Final = Aggregate("net", VISIT, pk="NET" + 750 * "T", sk="ALL", amount=Sum("amount"))
"""Its item has almost 1 KB: some watermarks more, and it takes two write units."""

_CELLS: Final = Aggregate("cells", VISIT, pk="CELL#{client}#{page}", sk="ALL", visits=Count())
_LABELS: Final = Aggregate(
    "labels", VISIT, pk="TAG#{tags[]}", sk="CAT#{cats[]}", visits=Count(), max_groups=MOST_GROUPS
)
_MONTH: Final = _window("month", VISIT, "MONTH", longest=timedelta(days=30))
_FRESH: Final = _window("fresh", VISIT, "FRESH#{page}", retention=3 * HOUR, future_tolerance=timedelta(minutes=10))
_SUBTRACT: Final = {"on_expiry": "subtract"}

_OF_SWARMS: Final[Mapping[str, Family]] = {
    "net": _variants(_NET, {"where": Attr("client").ne("c")}),
    "cells": _variants(_CELLS, _SUBTRACT),
    "labels": _variants(_LABELS, _SUBTRACT),
    "month": _variants(_MONTH, {"measure": Sum("amount"), **_SUBTRACT}),
    "fresh": _variants(_FRESH, {"measure": Sum("weight")}),
    "guests": _variants(Distinct("guests", VISIT, pk="PAGE#{page}", sk="GUESTS", member="client"), _SUBTRACT),
    "strokes": _variants(
        Aggregate("strokes", TAP, pk="STROKES#{device}", sk="ALL", taps=Count(), force=Sum("force")), _SUBTRACT
    ),
}

FAMILIES: Final[Mapping[str, Family]] = {
    **_OF_SWARMS,
    "bins": _variants(
        Aggregate("bins", ORDER, pk="BINS", sk="ALL", sizes=Histogram("size", bounds=(2, 4))),
        {"measures": {"sizes": Histogram("size", exactly=(2, 4))}},
    ),
    "busy": _variants(
        Aggregate("busy", ORDER, pk="BUSY", sk="ALL", orders=Count(), write_shards=4), {"where": Attr("price").gt(5)}
    ),
    "ranked": _variants(_RANKED, {"measures": {"total": Sum("size")}}),
    "pace": _OF_PACE,
    "soon": _named(_OF_PACE, "soon", pk="SOON#{page}", future_tolerance=timedelta(minutes=5)),
    "tapped": _variants(_OF_TAPPED, {"measure": Sum("force")}),
    "orders": _OF_ORDERS,
    "purchases": _named(_OF_ORDERS, "purchases"),
    "tags": [*_variants(_TAGS, {"where": Attr("size").ge(2)}), _paged([replace(_TAGS, pk="TAGS", sk="TAG#{tags[]}")])],
    "per_client": [*_OF_VISITS, _OF_VISITS[0][:1], _paged(_OF_VISITS[0]), _paged(_OF_VISITS[2])],
    "kept": _OF_KEPT,
    "visitors": _named(_OF_KEPT, "visitors"),
    "live": _named(_OF_KEPT, "live", on_expiry="subtract"),
    "taps": _OF_TAPS,
    "presses": _named(_OF_TAPS, "presses"),
    "held": _named(_OF_TAPS, "held", on_expiry="subtract"),
    **{name: family for name, (_, family) in MEASURED.items()},
}

_ALWAYS: Final = {"visit": ("page", "id", "client", "weight", "at"), "tap": ("device", "id", "at", "force")}
_AT_TIMES: Final = {"visit": ("score",), "tap": ("code", "mode")}
"""Attributes that declarations have a default for, by event."""

_RETURNED: Final = "a deployment before, once more"
_NEW_NAMES: Final = {
    "kept": "visitors",
    "taps": "presses",
    "orders": "purchases",
    "spread": "weights",
    "users": "people",
    "heaviest": "top",
    "standing": "placing",
}
_OTHER_NAME: Final = _NEW_NAMES | {new: old for old, new in _NEW_NAMES.items()}


STOCK: Final = Counter("stock", by=("aisle", "sku"), stock=Count(), sold=Count())
_SHELVES: Final = Aggregate("shelves", STOCK, by="aisle", skus=Count(), in_stock=Sum("stock"))
_DIRECT: Final = (STOCK, _SHELVES)
"""A counter, and an aggregate of its groups, which every deployment declares."""


def signature(declaration: Declaration) -> tuple[Any, ...]:
    """Return what tells apart declarations that count differently."""
    source, name = declaration.source, declaration.name
    below = signature(source) if isinstance(source, Aggregate) else source.name
    if isinstance(declaration, Window):
        return name, below, declaration.pk, declaration.time, repr(declaration.measure), repr(declaration.where)
    measures = sorted((key, repr(measure)) for key, measure in declaration.measures.items())
    counted = declaration.pk, declaration.sk, repr(measures), repr(declaration.where), declaration.on_expiry
    return name, below, *counted, declaration.pages


_DECLARED: Final = {
    signature(level): level
    for level in (*_DIRECT, *(level for family in FAMILIES.values() for variant in family for level in variant))
}
NAMES: Final = frozenset(level.name for level in _DECLARED.values())
DECLARED: Final = {name: [level for level in _DECLARED.values() if level.name == name] for name in NAMES}


@lru_cache(maxsize=1024)
def own(declaration: Declaration) -> Any:
    """Return the declaration here that a registered one must be."""
    return _DECLARED[signature(declaration)]


def armed(declaration: Declaration) -> Declaration:
    """Return the declaration with thresholds over its first measure, if it may have some."""
    measure = first_measure(declaration)
    if measure is None or not isinstance(declaration, Aggregate):
        return declaration
    thresholds = (
        Threshold(f"{declaration.name}-up", None, at=_LEVELS, measure=measure),
        Threshold(f"{declaration.name}-all", None, at=_LEVELS, measure=measure, direction="both", burst="highest"),
    )
    return replace(declaration, _thresholds=thresholds)


def first_measure(declaration: Declaration) -> str | None:
    """Return the measure that thresholds watch; None of what has none, or has several items per group."""
    if not isinstance(declaration, Aggregate) or declaration.write_shards > 1 or measured(declaration.name):
        return None
    [(name, measure), *_] = declaration.measures.items()
    return name if isinstance(measure, Count | Sum) else None


def measured(name: str) -> str:
    """Return the feature that a part of a measure is of; "" for others."""
    return MEASURED.get(re.sub(rf"({MEMBERS}|-\d)$", "", name), ("", ()))[0]


_THRESHOLDS: Final[Mapping[str, Sequence[Threshold]]] = {
    level.name: thresholds for level in _DECLARED.values() if (thresholds := getattr(armed(level), "_thresholds", ()))
}


def thresholds_of(name: str) -> Sequence[Threshold]:
    """Return the thresholds of a name, which are those of all its definitions."""
    return _THRESHOLDS.get(name, ())


def with_below(declaration: Declaration) -> Iterator[Declaration]:
    """Yield a declaration, and those of the groups that it looks at."""
    yield declaration
    if isinstance(declaration.source, Aggregate):
        yield from with_below(declaration.source)


def root_source(declaration: Declaration) -> str:
    """Return the name of the event that a declaration counts, or whose counts it counts."""
    source: Any = declaration.source
    return root_source(source) if isinstance(source, Aggregate) else str(source.name)


def is_deriving(declaration: Declaration) -> bool:
    """Return whether a declaration groups by derived fields or defaults."""
    return any(parts_of(name)[1:] != ("", None) for name in declaration.fields)


def _is_paged(declaration: Declaration) -> bool:
    return isinstance(declaration, Aggregate) and declaration.pages


class Deployments:
    """Which families are deployed, each as which variant."""

    def __init__(
        self, rng: random.Random, without: Collection[str] = (), over: Mapping[str, Any] | None = None
    ) -> None:
        self._random = rng
        self._attributes, self._over, self._families = 0, over, FAMILIES
        self._always = () if "increment" in without else _DIRECT
        self._arms = "arm" not in without
        if "pages" in without:
            rows = {name: [row for row in family if not any(map(_is_paged, row))] for name, family in FAMILIES.items()}
            self._families = {name: family for name, family in rows.items() if family}
        if over is not None:
            self._draw_over(over)
            return
        named_at_first = FAMILIES.keys() - {*_NEW_NAMES.values(), *_OF_SWARMS, *without}
        # Among few names, more happens to each.
        few = rng.random() < 0.4
        draw = rng.sample(sorted(named_at_first - MEASURED.keys()), 1 if few else rng.randint(3, 5))
        draw += rng.sample(sorted(named_at_first & MEASURED.keys()), 1 if few else rng.randint(1, 2))
        # Features concern these most.
        self._among = sorted({*draw, rng.choice(("kept", "live", "per_client")), rng.choice(("taps", "held"))})
        first = rng.sample(self._among, min(len(self._among) - 1, rng.randint(2, 4)))
        self.history: list[dict[str, int]] = [{name: rng.randrange(len(FAMILIES[name])) for name in first}]

    def _draw_over(self, sources: Collection[str]) -> None:
        """Draw families over some sources."""
        names = [name for name, family in self._families.items() if root_source(family[0][0]) in sources]
        draw = self._random
        own = sorted({*names} & _OF_SWARMS.keys())
        self._among = own + draw.sample(sorted({*names} - {*own}), max(3, 7 - len(own)))
        first = draw.sample(self._among, draw.randint(2, 4))
        self.history = [{name: draw.randrange(len(self._families[name])) for name in first}]

    @property
    def declared(self) -> list[Declaration]:
        drawn = [level for name, variant in self.history[-1].items() for level in self._families[name][variant]]
        return [*self._always, *(drawn if self._over is None else map(self._attributed, drawn))]

    @property
    def deployed(self) -> tuple[Declaration, ...]:
        """The same, over events with the attributes that are declared now."""
        attributed = map(self._attributed, self.declared)
        return tuple(map(armed, attributed) if self._arms else attributed)

    def change_attributes(self) -> frozenset[str]:
        """Declare others, or none, for the next deployment; return the names that it concerns."""
        before = self._attributes
        self._attributes = self._random.choice((0, 1, 2)) if self._over is None else 0
        is_changed = before != self._attributes
        return frozenset(level.name for level in self.declared if is_changed and root_source(level) in _ALWAYS)

    def _attributed(self, declaration: Declaration) -> Declaration:
        source: Any = declaration.source
        if isinstance(source, Aggregate):
            below: Any = self._attributed(source)
            return replace(declaration, source=below)
        if self._over is not None:
            own: Any = self._over.get(source.name)
            return declaration if own is None else replace(declaration, source=own)
        if not isinstance(source, Event) or not self._attributes:
            return declaration
        attributes: dict[str, Attribute | type] = {
            **{name: Attribute(object) for name in _ALWAYS[source.name]},
            **{name: Attribute(object, required=False) for name in _AT_TIMES[source.name]},
            f"extra{self._attributes}": Attribute(str, required=False),
        }
        return replace(declaration, source=replace(source, attributes=attributes))

    def change(self, *, renames: bool = True) -> tuple[str, frozenset[str]]:
        """Deploy something else; return what is meant by it, and the names that it concerns."""
        draw, now = self._random, dict(self.history[-1])
        missing = [name for name in self._among if name not in now]
        kinds = [features.REDEFINED] * 3 + [features.ADDED] * 4 + [features.REMOVED, features.RENAMED, features.RENAMED]
        kind = draw.choice([*kinds, _RETURNED])
        renamable = sorted(name for name in now if _OTHER_NAME.get(name, name) not in now and renames)
        if kind == _RETURNED and (others := [deployment for deployment in self.history[:-1] if deployment != now]):
            before, now = now, dict(draw.choice(others))
            names = {name for name in {**before, **now} if before.get(name) != now.get(name)}
        elif kind == features.ADDED and missing:
            names = {draw.choice(missing)}
            now |= {name: draw.randrange(len(self._families[name])) for name in names}
        elif kind == features.REMOVED and len(now) > 1:
            names = {draw.choice(sorted(now))}
            now = {name: variant for name, variant in now.items() if name not in names}
        elif kind == features.RENAMED and renamable:
            old = draw.choice(renamable)
            names = {old, _OTHER_NAME[old]}
            now[_OTHER_NAME[old]] = now.pop(old)
        else:
            kind, names = features.REDEFINED, {draw.choice(sorted(now))}
            now |= {n: (now[n] + draw.randrange(1, len(self._families[n]))) % len(self._families[n]) for n in names}
        before, self.history = self.history[-1], [*self.history, now]
        concerned = [(name, deployment[name]) for name in names for deployment in (before, now) if name in deployment]
        return kind, frozenset(level.name for name, variant in concerned for level in self._families[name][variant])
