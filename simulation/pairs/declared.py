"""Declarations of the table: families of definitions under one name, of which the table keeps the first, and names.

An event may have a text in place of a number: a comparison with it is false, and nothing can add it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Count, Counter, Declaration, Event, Sum, Threshold
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.derived_fields import parts_of
from simulation.pairs import features
from simulation.pairs.features import Forced
from simulation.pairs.measured import MEASURED, is_measured
from simulation.pairs.subjects import FAMILIES as OTHERS
from simulation.pairs.subjects import ONE, Counted, Family, Subject, Values, signature

POISON: Final = "heavy"
_LIGHT: Final = 1000
_LEVELS: Final = (1, 3, 8)
"""Of thresholds."""


def armed(declaration: Declaration) -> Declaration:
    """The declaration with thresholds over its first measure, if it may have some."""
    measure = first_measure(declaration)
    if measure is None or not isinstance(declaration, Aggregate):
        return declaration
    found = (
        Threshold(f"{declaration.name}-up", None, at=_LEVELS, measure=measure),
        Threshold(f"{declaration.name}-all", None, at=_LEVELS, measure=measure, direction="both", burst="highest"),
    )
    return replace(declaration, _thresholds=found)


def first_measure(declaration: Declaration) -> str | None:
    """The measure that thresholds watch; None of what has none, or has several items per group."""
    if not isinstance(declaration, Aggregate) or declaration.write_shards > 1 or is_measured(declaration):
        return None
    [(name, measure), *_] = declaration.measures.items()
    return name if isinstance(measure, Count | Sum) else None


def _with_light(family: Family, attribute: str) -> Family:
    """A family with one more variant, which leaves out what cannot be added."""
    [first] = family[0]
    assert isinstance(first.declaration, Aggregate)
    declared = replace(first.declaration, where=Attr(attribute).lt(_LIGHT))

    def counted(values: Values) -> Counted:
        return first.counted(values) if values[attribute] < _LIGHT else []

    return (*family, [Subject(declared, counted)])


def _paged(variant: Sequence[Subject], **changes: Any) -> Sequence[Subject]:
    """A variant with the groups in pages, where a sort key has a field."""
    made: dict[str, Any] = {}
    for subject in variant:
        one: Any = subject.declaration
        source = made.get(one.source.name, one.source)
        made[one.name] = replace(one, source=source, pages=bool(one._sk_template.fields), **changes)
    return [replace(subject, declaration=made[subject.declaration.name]) for subject in variant]


def _varied(family: Family, **changes: Any) -> Family:
    """The same family, declared a little otherwise."""
    return tuple([replace(part, declaration=replace(part.declaration, **changes)) for part in row] for row in family)


def _with_pages(family: Family, *variants: int) -> Family:
    """A family with more variants: some of the others, in pages."""
    return (*family, *(_paged(family[variant]) for variant in variants))


_KEPT: Final = _with_pages(_with_light(OTHERS["kept"], "weight"), 0, 2)
_TAPS: Final = _with_pages(OTHERS["taps"], 0, 1)
_ORDERS: Final = _with_pages(OTHERS["orders"], 0, 1, 3)

FAMILIES: Final[Mapping[str, Family]] = {
    **{name: OTHERS[name] for name in ("bins", "busy", "ranked", "pace", "tapped")},
    "orders": _ORDERS,
    "tags": (*OTHERS["tags"], _paged(OTHERS["tags"][0], pk="TAGS", sk="TAG#{tags[]}")),
    "per_client": _with_pages(OTHERS["per_client"], 0, 2),
    "kept": _KEPT,
    "visitors": _varied(_KEPT, name="visitors", pk="VISITORS"),
    "soon": _varied(OTHERS["pace"], name="soon", pk="SOON#{page}", future_tolerance=timedelta(minutes=5)),
    "live": _with_pages(_with_light(OTHERS["live"], "weight"), 0, 2),
    "taps": _TAPS,
    "presses": _varied(_TAPS, name="presses", pk="PRESSES"),
    "purchases": _varied(_ORDERS, name="purchases", pk="PURCHASES"),
    "held": _with_pages(OTHERS["held"], 0, 1),
    **{name: family for name, (_, family) in MEASURED.items()},
}

_ALWAYS: Final = {
    "visit": ("page", "id", "client", "weight", "at"),
    "tap": ("device", "id", "at", "force"),
}
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
}
_OTHER_NAME: Final = _NEW_NAMES | {new: old for old, new in _NEW_NAMES.items()}


STOCK: Final = Counter("stock", by=("aisle", "sku"), stock=Count(), sold=Count())
_SHELVES: Final = Aggregate("shelves", STOCK, by="aisle", skus=Count(), in_stock=Sum("stock"))
_DIRECT: Final = (
    Subject(STOCK, lambda _: []),
    Subject(_SHELVES, lambda group: [((group["aisle"],), {"skus": ONE, "in_stock": group["stock"]})]),
)
"""A counter, and an aggregate of its groups, which every deployment declares."""

_SUBJECTS: Final = {
    signature(subject.declaration): subject
    for subject in (*_DIRECT, *(subject for family in FAMILIES.values() for row in family for subject in row))
}


_THRESHOLDS: Final[Mapping[str, Sequence[Threshold]]] = {
    subject.declaration.name: found
    for subject in _SUBJECTS.values()
    if (found := getattr(armed(subject.declaration), "_thresholds", ()))
}


NAMES: Final = frozenset(subject.declaration.name for subject in _SUBJECTS.values())


def subject_of(declaration: Declaration) -> Subject:
    return _SUBJECTS[signature(declaration)]


def thresholds_of(name: str) -> Sequence[Threshold]:
    """The thresholds of a name, which are those of all its definitions."""
    return _THRESHOLDS.get(name, ())


def with_below(declaration: Declaration) -> Iterator[Declaration]:
    """A declaration, and those of the groups that it looks at."""
    yield declaration
    if isinstance(declaration.source, Aggregate):
        yield from with_below(declaration.source)


def root_source(declaration: Declaration) -> str:
    """The name of the event that a declaration counts, or whose counts it counts."""
    source: Any = declaration.source
    return root_source(source) if isinstance(source, Aggregate) else str(source.name)


def is_deriving(declaration: Declaration) -> bool:
    """Whether a declaration groups by derived fields or defaults."""
    return any(parts_of(name)[1:] != ("", None) for name in declaration.fields)


class Deployments:
    """Which families are deployed, each as which variant."""

    def __init__(self, rng: random.Random, forced: Forced, without: Collection[str] = ()) -> None:
        self._random = rng
        self._forced = forced
        self.first = forced.changes()
        """Which changes come first."""
        named_at_first = FAMILIES.keys() - {*_NEW_NAMES.values(), *without}
        draw = rng.sample(sorted(named_at_first - MEASURED.keys()), rng.randint(3, 5))
        draw += rng.sample(sorted(named_at_first & MEASURED.keys()), rng.randint(1, 2))
        # Features concern these most.
        self._among = sorted({*draw, rng.choice(("kept", "live", "per_client")), rng.choice(("taps", "held"))})
        now = {
            name: rng.randrange(len(FAMILIES[name]))
            for name in rng.sample(self._among, min(len(self._among), rng.randint(2, 4)))
        }
        if (star := forced.names[:1]) and star[0] not in without:
            self._among = sorted({*self._among, *star})
            now = {name: variant for name, variant in now.items() if name not in star}
            if features.ADDED not in self.first[:1]:
                now |= dict.fromkeys(star, 0)
        self.made: list[dict[str, int]] = [now]
        self._attributes = 0

    @property
    def subjects(self) -> list[Subject]:
        drawn = [subject for name, variant in self.made[-1].items() for subject in FAMILIES[name][variant]]
        return [*_DIRECT, *drawn]

    @property
    def deployed(self) -> list[Subject]:
        """The same, over events with the attributes that are declared now."""
        return [replace(subject, declaration=armed(self._attributed(subject.declaration))) for subject in self.subjects]

    def change_attributes(self) -> frozenset[str]:
        """Declare others, or none, for the next deployment; return the names that it concerns."""
        before, self._attributes = self._attributes, self._random.choice((0, 1, 2))
        is_changed = before != self._attributes
        return frozenset(each.name for each in self.declared if is_changed and root_source(each) in _ALWAYS)

    def _attributed(self, declaration: Declaration) -> Declaration:
        source: Any = declaration.source
        if isinstance(source, Aggregate):
            below: Any = self._attributed(source)
            return replace(declaration, source=below)
        if not isinstance(source, Event) or not self._attributes:
            return declaration
        known: dict[str, Attribute | type] = {
            **{name: Attribute(object) for name in _ALWAYS[source.name]},
            **{name: Attribute(object, required=False) for name in _AT_TIMES[source.name]},
            f"extra{self._attributes}": Attribute(str, required=False),
        }
        return replace(declaration, source=replace(source, attributes=known))

    @property
    def declared(self) -> list[Declaration]:
        return [subject.declaration for subject in self.subjects]

    def change(self, *, renames: bool = True) -> tuple[str, frozenset[str]]:
        """Deploy something else; return what is meant by it, and the names that it concerns."""
        draw, now = self._random, dict(self.made[-1])
        missing = [name for name in self._among if name not in now]
        kinds = [features.REDEFINED] * 3 + [features.ADDED] * 2 + [features.REMOVED, features.RENAMED, features.RENAMED]
        kind = self.first.pop(0) if self.first else draw.choice([*kinds, _RETURNED])
        among = self._forced.among
        renamable = sorted(name for name in now if _OTHER_NAME.get(name, name) not in now and renames)
        if kind == _RETURNED and (others := [each for each in self.made[:-1] if each != now]):
            before, now = now, dict(draw.choice(others))
            names = {name for name in {**before, **now} if before.get(name) != now.get(name)}
        elif kind == features.ADDED and missing:
            names = {draw.choice(among(missing))}
            now |= {name: 0 if self._forced.concerns(names) else draw.randrange(len(FAMILIES[name])) for name in names}
        elif kind == features.REMOVED and len(now) > 1:
            names = {draw.choice(among(sorted(now)))}
            now = {name: variant for name, variant in now.items() if name not in names}
        elif kind == features.RENAMED and renamable:
            old = draw.choice(among(renamable))
            names = {old, _OTHER_NAME[old]}
            now[_OTHER_NAME[old]] = now.pop(old)
        else:
            kind, names = features.REDEFINED, {draw.choice(among(sorted(now)))}
            now |= {n: (now[n] + draw.randrange(1, len(FAMILIES[n]))) % len(FAMILIES[n]) for n in names}
        before, self.made = self.made[-1], [*self.made, now]
        concerned = [(name, deployment[name]) for name in names for deployment in (before, now) if name in deployment]
        return kind, frozenset(
            subject.declaration.name for name, variant in concerned for subject in FAMILIES[name][variant]
        )
