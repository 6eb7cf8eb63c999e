"""Subjects of pair schedules: families of declarations in variants, each with a plain Python statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import (
    Aggregate,
    Count,
    Declaration,
    Event,
    Histogram,
    Items,
    Packed,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._declarations.measures import Measure
from dynamodb_counters._items.conditions import Attr

Values: TypeAlias = Mapping[str, Any]
Group: TypeAlias = tuple[str, ...]
"""Texts of the fields in the order of the key; of a window the second its hour begins at the end."""

Parts: TypeAlias = dict[str, Decimal]
Counted: TypeAlias = list[tuple[Group, Parts]]

ONE: Final = Decimal(1)
ORDER: Final = Items("order", where=Attr("customer").exists())
VISIT: Final = Event("visit", pk="PAGE#{page}", sk="VISIT#{id}", retention=timedelta(minutes=70))
TAP: Final = Event(
    "tap",
    pk="DEVICE#{device}",
    sk="TAP#{id}#{at}",
    retention=timedelta(hours=2),
    packed=Packed("at", timedelta(minutes=10), chunk_bytes=1024),
)


@dataclass(frozen=True)
class Subject:
    """A declaration, and what one item of its source adds to which groups."""

    declaration: Declaration
    counted: Callable[[Values], Counted]
    together: Callable[[Mapping[Group, Parts]], Counted] | None = None
    """All that groups add which a declaration looks at together."""


Family: TypeAlias = Sequence[Sequence[Subject]]
"""Variants: each one some subjects, those that others look at first."""


def number(value: Any) -> Decimal:
    return Decimal(value)


def _kept(parts: Parts) -> Parts:
    return {name: each for name, each in parts.items() if each}


def _single(
    where: Callable[[Values], bool], group: Callable[[Values], Group], parts: Callable[[Values], Parts], values: Values
) -> Counted:
    try:
        holds = where(values)
    except TypeError:
        # A text is not greater than a number.
        holds = False
    kept = _kept(parts(values)) if holds else {}
    return [(group(values), kept)] if kept else []


def _subject(
    declaration: Declaration,
    group: Callable[[Values], Group],
    parts: Callable[[Values], Parts],
    where: Callable[[Values], bool] = lambda _: True,
) -> Subject:
    return Subject(declaration, partial(_single, where, group, parts))


def _or(values: Values, name: str, default: Any) -> Any:
    """The value of an attribute, or what stands for one that is missing or null."""
    found = values.get(name)
    return default if found is None else found


def _exactly(name: str, bins: Iterable[int], value: Decimal) -> Parts:
    return {f"{name}.{each}": ONE for each in bins if value == each}


def _between(name: str, low: int, high: int, value: Decimal) -> Parts:
    return {f"{name}.{f'<{low}' if value < low else low if value < high else high}": ONE}


def _orders() -> Family:
    def of(**changes: Any) -> Aggregate:
        measures = {"orders": Count(), "total": Sum("price")}
        return Aggregate("orders", ORDER, **{"pk": "ORDERS", "sk": "BY#{customer}", "measures": measures, **changes})

    capped = {"orders": Count(), "total": Sum("price", cap=4)}
    customer: Callable[[Values], Group] = lambda v: (v["customer"],)  # noqa: E731
    both: Callable[[Values], Parts] = lambda v: {"orders": ONE, "total": number(v["price"])}  # noqa: E731
    return (
        [_subject(of(), customer, both)],
        [_subject(of(where=Attr("size").ge(3)), customer, both, lambda v: v["size"] >= 3)],
        [
            _subject(
                of(measures=capped), customer, lambda v: {"orders": ONE, "total": min(number(v["price"]), Decimal(4))}
            )
        ],
        [_subject(of(sk="BY#{size}#{rush?none}"), lambda v: (str(v["size"]), _or(v, "rush", "none")), both)],
    )


def _bins() -> Family:
    def of(histogram: Histogram) -> Aggregate:
        return Aggregate("bins", ORDER, pk="BINS", sk="ALL", measures={"sizes": histogram})

    return (
        [
            _subject(
                of(Histogram("size", bounds=(2, 4))),
                lambda _: (),
                lambda v: _between("sizes", 2, 4, v["size"]),
            )
        ],
        [_subject(of(Histogram("size", exactly=(2, 4))), lambda _: (), lambda v: _exactly("sizes", (2, 4), v["size"]))],
    )


def _busy() -> Family:
    declared = Aggregate("busy", ORDER, pk="BUSY", sk="ALL", measures={"orders": Count()}, write_shards=4)
    one: Callable[[Values], Parts] = lambda _: {"orders": ONE}  # noqa: E731
    return (
        [_subject(declared, lambda _: (), one)],
        [_subject(replace(declared, where=Attr("price").gt(5)), lambda _: (), one, lambda v: v["price"] > 5)],
    )


def _ranked() -> Family:
    def of(attribute: str) -> Subject:
        measures = {"total": Sum(attribute)}
        ranking = Ranking(measure="total", leaderboard="CUSTOMERS")
        declared = Aggregate(
            "ranked", ORDER, pk="CUSTOMER#{customer}", sk="STATISTICS", measures=measures, ranking=ranking
        )
        return _subject(declared, lambda v: (v["customer"],), lambda v: {"total": number(v[attribute])})

    return [of("price")], [of("size")]


def _tags() -> Family:
    declared = Aggregate("tags", ORDER, pk="TAG#{tags[]}", sk="ALL", measures={"orders": Count()})

    def counted(where: Callable[[Values], bool], values: Values) -> Counted:
        return [((tag,), {"orders": ONE}) for tag in sorted(set(values["tags"]))] if where(values) else []

    return (
        [Subject(declared, partial(counted, lambda _: True))],
        [Subject(replace(declared, where=Attr("size").ge(2)), partial(counted, lambda v: v["size"] >= 2))],
    )


def _clients() -> Family:
    """Visits by client, what they come to by page, and over all pages."""

    def of(where: Any, matches: Callable[[Values], bool], bins: tuple[int, ...], cap: int) -> list[Subject]:
        root = Aggregate(
            "per_client", VISIT, pk="PAGE#{page}", sk="CLIENT#{client}", measures={"visits": Count()}, where=where
        )
        sizes = Aggregate(
            "sizes",
            root,
            pk="SIZES",
            sk="PAGE#{page}",
            measures={"clients": Histogram("visits", exactly=bins), "capped": Sum("visits", cap=cap)},
        )
        pages = Aggregate("pages", sizes, pk="PAGES", sk="ALL", measures={"capped": Sum("capped", cap=5)})
        crowded = Aggregate(
            "crowded", root, pk="CROWDED", sk="{client}", measures={"pages": Count()}, where=Attr("visits").ge(2)
        )
        return [
            _subject(root, lambda v: (v["page"], v["client"]), lambda _: {"visits": ONE}, matches),
            _subject(
                sizes,
                lambda v: (v["page"],),
                lambda v: _exactly("clients", bins, v["visits"]) | {"capped": min(v["visits"], Decimal(cap))},
            ),
            _subject(pages, lambda _: (), lambda v: {"capped": min(v["capped"], Decimal(5))}),
            _subject(crowded, lambda v: (v["client"],), lambda _: {"pages": ONE}, lambda v: v["visits"] >= 2),
        ]

    everyone: Callable[[Values], bool] = lambda _: True  # noqa: E731
    return (
        of(None, everyone, (1, 2, 3), 2),
        of(Attr("weight").ge(3), lambda v: v["weight"] >= 3, (1, 2, 3), 2),
        of(None, everyone, (1, 4), 3),
        of(None, everyone, (1, 2, 3), 2)[:1],
    )


def _visits(name: str, on_expiry: Any) -> Family:
    declared = Aggregate(
        name,
        VISIT,
        pk=name.upper(),
        sk="C#{client}#{page}",
        measures={"visits": Count(), "weight": Sum("weight"), "score": Sum("score", default=2)},
        on_expiry=on_expiry,
    )
    capped: dict[str, Measure] = {"visits": Count(), "weight": Sum("weight", cap=2)}

    def client(values: Values) -> Group:
        return values["client"], values["page"]

    def parts(values: Values) -> Parts:
        return {"visits": ONE, "weight": number(values["weight"]), "score": number(_or(values, "score", 2))}

    return (
        [_subject(declared, client, parts)],
        [
            _subject(
                replace(declared, measures=capped),
                client,
                lambda v: {"visits": ONE, "weight": min(number(v["weight"]), Decimal(2))},
            )
        ],
    )


def _taps(name: str, on_expiry: Any) -> Family:
    declared = Aggregate(
        name,
        TAP,
        pk=name.upper(),
        sk="DEVICE#{device}#{mode?none}",
        measures={"taps": Count(), "force": Sum("force")},
        on_expiry=on_expiry,
    )
    device: Callable[[Values], Group] = lambda v: (v["device"], _or(v, "mode", "none"))  # noqa: E731
    both: Callable[[Values], Parts] = lambda v: {"taps": ONE, "force": number(v["force"])}  # noqa: E731
    return (
        [_subject(declared, device, both)],
        [_subject(replace(declared, where=Attr("force").ge(3)), device, both, lambda v: v["force"] >= 3)],
    )


def _pace(name: str, source: Event, field: str, measured: str) -> Family:
    is_classed = source is TAP
    pk = f"{name.upper()}#{{{field}}}" + "#{code:class?none}" * is_classed
    declared = Window(name, source, pk=pk, time="at", longest=timedelta(hours=1), future_tolerance=None)

    def group(values: Values) -> Group:
        kind = f"{int(values['code']) // 100}xx" if "code" in values else "none"
        return values[field], *[kind] * is_classed, str(int(values["at"]) // 3600 * 3600)

    return (
        [_subject(declared, group, lambda _: {"total": ONE})],
        [_subject(replace(declared, measure=Sum(measured)), group, lambda v: {"total": number(v[measured])})],
    )


FAMILIES: Final[Mapping[str, Family]] = {
    "orders": _orders(),
    "bins": _bins(),
    "busy": _busy(),
    "ranked": _ranked(),
    "tags": _tags(),
    "per_client": _clients(),
    "kept": _visits("kept", "keep"),
    "live": _visits("live", "subtract"),
    "taps": _taps("taps", "keep"),
    "held": _taps("held", "subtract"),
    "pace": _pace("pace", VISIT, "page", "weight"),
    "tapped": _pace("tapped", TAP, "device", "force"),
}


def signature(declaration: Declaration) -> tuple[Any, ...]:
    """What a declaration counts: by this, the statement about it is found."""
    source, name = declaration.source, declaration.name
    seen = signature(source) if isinstance(source, Aggregate) else source.name
    if isinstance(declaration, Window):
        return name, seen, declaration.pk, declaration.time, repr(declaration.measure), repr(declaration.where)
    measures = sorted((key, repr(measure)) for key, measure in declaration.measures.items())
    counted = declaration.pk, declaration.sk, repr(measures), repr(declaration.where), declaration.on_expiry
    return name, seen, *counted, declaration.pages
