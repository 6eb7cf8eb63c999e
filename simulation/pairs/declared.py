"""Declarations of the table: the families of backfill schedules, with what makes every event countable, and names.

An event may have a text in place of a number: a comparison with it is false, and nothing can add it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Count, Counter, Declaration, Event, Sum
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.conditions import Attr
from dynamodb_counters._items.derived_fields import parts_of
from simulation.pairs import features
from simulation.pairs.measured import MEASURED
from simulation.pairs.measured import MENDED as MEASURED_MENDED
from simulation.pairs.seldom import Forced
from simulation.pairs.subjects import FAMILIES as OTHERS
from simulation.pairs.subjects import ONE, Counted, Family, Subject, Values, signature
from simulation.pairs.watched import armed

POISON: Final = "heavy"
_LIGHT: Final = 1000


def _with_mended(family: Family, attribute: str) -> Family:
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


_KEPT: Final = _with_pages(_with_mended(OTHERS["kept"], "weight"), 0, 2)
_TAPS: Final = _with_pages(OTHERS["taps"], 0, 1)
_ORDERS: Final = _with_pages(OTHERS["orders"], 0, 1, 3)

FAMILIES: Final[Mapping[str, Family]] = {
    **{name: OTHERS[name] for name in ("bins", "busy", "ranked", "pace", "tapped")},
    "orders": _ORDERS,
    "tags": (*OTHERS["tags"], _paged(OTHERS["tags"][0], pk="TAGS", sk="TAG#{tags[]}")),
    "per_client": _with_pages(OTHERS["per_client"], 0, 2),
    "kept": _KEPT,
    "visitors": _varied(_KEPT, name="visitors"),
    "soon": _varied(OTHERS["pace"], name="soon", pk="SOON#{page}", future_tolerance=timedelta(minutes=5)),
    "live": _with_pages(_with_mended(OTHERS["live"], "weight"), 0, 2),
    "taps": _TAPS,
    "presses": _varied(_TAPS, name="presses"),
    "purchases": _varied(_ORDERS, name="purchases"),
    "held": _with_pages(OTHERS["held"], 0, 1),
    **{name: family for name, (_, family) in MEASURED.items()},
}

MENDED: Final[Mapping[str, Sequence[int]]] = {
    "kept": (2, 4),
    "visitors": (2, 4),
    "live": (2, 4),
    "soon": (0,),
    "taps": (1, 3),
    "presses": (1, 3),
    "held": (1, 3),
    "pace": (0,),
    "tapped": (0,),
    **MEASURED_MENDED,
}
"""Variants that can count every event; of families that are not here, all can."""

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


def subject_of(declaration: Declaration) -> Subject:
    return _SUBJECTS[signature(declaration)]


def root_source(declaration: Declaration) -> str:
    """The name of the event that a declaration counts, or whose counts it counts."""
    source: Any = declaration.source
    return root_source(source) if isinstance(source, Aggregate) else str(source.name)


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
        return self.over("visit") | self.over("tap") if before != self._attributes else frozenset()

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

    def over(self, source: str) -> frozenset[str]:
        """The names of what counts a source, directly or not."""
        return frozenset(each.name for each in self.declared if root_source(each) == source)

    def deriving(self) -> frozenset[str]:
        """The names of what groups by derived fields or defaults."""
        return frozenset(
            each.name for each in self.declared if any(parts_of(name)[1:] != ("", None) for name in each.fields)
        )

    def change(self, *, renames: bool = True) -> tuple[str, frozenset[str]]:
        """Deploy something else; return the feature, and the names that it concerns."""
        draw, now = self._random, dict(self.made[-1])
        missing = [name for name in self._among if name not in now and _OTHER_NAME.get(name) not in now]
        kinds = [features.REDEFINED] * 3 + [features.ADDED] * 2 + [features.REMOVED, features.RENAMED, features.RENAMED]
        kind = self.first.pop(0) if self.first else draw.choice([*kinds, _RETURNED])
        among = self._forced.among
        renamable = sorted(name for name in now if name in _OTHER_NAME and renames)
        if kind == _RETURNED and (others := [each for each in self.made[:-1] if self._is_like(each)]):
            kind, before, now = features.REDEFINED, now, dict(draw.choice(others))
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

    def others(self, draw: random.Random) -> list[Declaration]:
        """Other declarations, of variants that can count every event; perhaps one more, or one less."""
        now = self.made[-1]
        wanted = [name for name in now if draw.random() < 0.9]
        missing = [name for name in self._among if name not in now and _OTHER_NAME.get(name) not in now]
        wanted += draw.sample(missing, 1) if missing and draw.random() < 0.3 else []
        drawn = {name: draw.choice(MENDED.get(name, range(len(FAMILIES[name])))) for name in wanted}
        return [subject.declaration for name, variant in drawn.items() for subject in FAMILIES[name][variant]]

    def _is_like(self, deployed: Mapping[str, int]) -> bool:
        """Whether a deployment before differs from the last one, but has no other name for what counts the same."""
        now = self.made[-1]
        return deployed != now and not any(_OTHER_NAME.get(name) in deployed for name in now)

    def mend(self) -> None:
        """Deploy what can count every event."""
        now = self.made[-1]
        mended = {n: v if v in MENDED.get(n, (v,)) else self._random.choice(MENDED[n]) for n, v in now.items()}
        self.made.append(mended)
