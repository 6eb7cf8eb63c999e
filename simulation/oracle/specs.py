"""Specs of the schedules: declarations, each with a plain Python statement of what it must come to.

The statements use nothing of the runtime: keys are spelled out, filters are Python, sums are Decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dynamodb_counters._declarations import (
    Aggregate,
    Count,
    Declaration,
    Distinct,
    Event,
    Histogram,
    Items,
    Packed,
    Ranking,
    Sum,
    Window,
)
from dynamodb_counters._items.conditions import Attr

Values: TypeAlias = Mapping[str, Any]
"""Attributes of an event, as plain Python values."""

Key: TypeAlias = tuple[str, str]

Parts: TypeAlias = dict[str, Decimal]
"""Contribution of an event, by attribute of the aggregate's item."""

ONE: Final = Decimal(1)
TRADE: Final = Event("trade", pk="BOOK#{book}", sk="TRADE#{id}", retention=timedelta(minutes=40))
RETENTION: Final = timedelta(hours=3)
EXACTLY: Final = (1, 2, 3)
NET: Final = "NET" + 750 * "T"


UNCOUNTABLE: Final = (ArithmeticError, LookupError, ValueError)
"""Errors of a spec for an event that it cannot count."""

LONGEST_TEXT: Final = 8192
MOST_GROUPS: Final = 6
BEYOND_ALL_TEXTS: Final = "~"
"""Texts that are too long begin with it, the others come before it."""


@dataclass(frozen=True)
class Spec:
    """A declaration and what it means.

    `key` is that of the item an event is counted in (`keys` if there are several), `parts` what the event adds
    (nothing if filtered out); `coarser` is the key and the slot in a window's second tier.
    """

    declaration: Declaration
    key: Callable[[Values], Key]
    parts: Callable[[Values], Parts]
    coarser: Callable[[Values], tuple[Key, str]] | None = None
    keys: Callable[[Values], list[Key]] | None = None

    @property
    def name(self) -> str:
        return self.declaration.name

    def places(self, values: Values) -> list[tuple[Key, Parts]]:
        """Every item an event is counted in, and what it adds there; one of `UNCOUNTABLE` if it cannot be counted."""
        parts = {name: number for name, number in self.parts(values).items() if number}
        if not parts:
            return []
        places = [(key, parts) for key in (self.keys(values) if self.keys else [self.key(values)])]
        if self.coarser is not None:
            key, slot = self.coarser(values)
            places.append((key, {"total": parts["total"], slot: parts["total"]}))
        return places


def escaped(value: str) -> str:
    """A value as the key layout escapes it."""
    if len(value.encode()) > LONGEST_TEXT:
        raise ValueError("too long for a group")
    text = value.replace("%", "%25").replace("#", "%23").replace("\n", "%0A")
    return text or "%"


def bucket(at: int) -> str:
    """The sort key of an hour's bucket, from seconds since 1970."""
    return f"H#{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H}"


def slots(values: Values, number: Decimal) -> Parts:
    """Contribution to an hour's bucket of an event that adds `number` to its minute."""
    return {"total": number, f"m{values['at'] // 60 % 60:02d}": number}


def amount(values: Values) -> Decimal:
    return Decimal(values["amount"])


def tag_keys(values: Values, most: int) -> list[Key]:
    keys = [(f"TAG#{escaped(tag)}", f"CAT#{escaped(cat)}") for tag in values["tags"] for cat in values["cats"]]
    if len(keys) > most:
        raise ValueError("too many groups")
    return keys


BOOKS: Final = Distinct("books", TRADE, pk="REGION#{region}", sk="BOOKS", member="book")

SPECS: Final = (
    Spec(
        Aggregate(
            "by_desk",
            TRADE,
            pk="REGION#{region}",
            sk="DESK#{desk}",
            measures={"trades": Count(), "amount": Sum("amount")},
            ranking=Ranking(measure="trades", leaderboard="DESKS"),
        ),
        lambda v: (f"REGION#{escaped(v['region'])}", f"DESK#{escaped(v['desk'])}"),
        lambda v: {"trades": ONE, "amount": amount(v), "_score": ONE},
    ),
    Spec(
        BOOKS._parts[0],
        lambda v: (f"REGION#{escaped(v['region'])}", f"BOOKS#MEMBER#{escaped(v['book'])}"),
        lambda _: {"items": ONE},
    ),
    Spec(
        # Its fields follow each other in one key, so an unescaped value could pass for two.
        Aggregate("by_cell", TRADE, pk="CELL#{region}#{desk}", sk="ALL", measures={"trades": Count()}),
        lambda v: (f"CELL#{escaped(v['region'])}#{escaped(v['desk'])}", "ALL"),
        lambda _: {"trades": ONE},
    ),
    Spec(
        # The item has almost 1 KB: some watermarks more, and it takes two write units.
        Aggregate("net", TRADE, pk=NET, sk="ALL", measures={"amount": Sum("amount")}),
        lambda _: (NET, "ALL"),
        lambda v: {"amount": amount(v)},
    ),
    Spec(
        Aggregate(
            "settled",
            TRADE,
            pk="SETTLED#{desk}",
            sk="ALL",
            measures={"trades": Count(), "amount": Sum("amount")},
            where=Attr("status").eq("settled") & ~Attr("amount").lt(0),
        ),
        lambda v: (f"SETTLED#{escaped(v['desk'])}", "ALL"),
        lambda v: {"trades": ONE, "amount": amount(v)} if v["status"] == "settled" and amount(v) >= 0 else {},
    ),
    Spec(
        Aggregate("live", TRADE, pk="LIVE", sk="STATUS#{status}", measures={"trades": Count()}, on_expiry="subtract"),
        lambda v: ("LIVE", f"STATUS#{escaped(v['status'])}"),
        lambda _: {"trades": ONE},
    ),
    Spec(
        Aggregate("busy", TRADE, pk="BUSY", sk="ALL", measures={"trades": Count()}, write_shards=4),
        lambda _: ("BUSY", "ALL"),
        lambda _: {"trades": ONE},
    ),
    Spec(
        Window("pace", TRADE, pk="REGION#{region}", time="at", retention=RETENTION),
        lambda v: (f"REGION#{escaped(v['region'])}", f"WINDOW#pace#{bucket(v['at'])}"),
        lambda v: slots(v, ONE),
    ),
    Spec(
        Window("month", TRADE, pk="MONTH", time="at", longest=timedelta(days=30), future_tolerance=None),
        lambda v: ("MONTH", f"WINDOW#month#{bucket(v['at'])}"),
        lambda v: slots(v, ONE),
        lambda v: (("MONTH", f"WINDOW#month#D#{bucket(v['at'])[2:12]}"), f"h{v['at'] // 3600 % 24:02d}"),
    ),
    Spec(
        Window(
            "volume",
            TRADE,
            pk="VOLUME",
            time="at",
            measure=Sum("amount"),
            where=Attr("status").ne("void"),
            future_tolerance=None,
            on_expiry="subtract",
        ),
        lambda v: ("VOLUME", f"WINDOW#volume#{bucket(v['at'])}"),
        lambda v: slots(v, amount(v)) if v["status"] != "void" else {},
    ),
    Spec(
        Aggregate(
            "by_tag",
            TRADE,
            pk="TAG#{tags[]}",
            sk="CAT#{cats[]}",
            measures={"trades": Count()},
            max_groups=MOST_GROUPS,
        ),
        lambda _: ("", ""),
        lambda _: {"trades": ONE},
        keys=lambda v: tag_keys(v, MOST_GROUPS),
    ),
)


def packed(specs: Sequence[Spec], layout: Packed) -> list[Spec]:
    """The same counts of trades that are packed."""
    trade = replace(TRADE, sk="TRADE#{id}#{at}", packed=layout)
    return [replace(spec, declaration=replace(spec.declaration, source=trade)) for spec in specs]


def sourced(specs: Sequence[Spec], source: Items) -> list[Spec]:
    """The same counts of trades that other code writes."""
    return [replace(spec, declaration=replace(spec.declaration, source=source)) for spec in specs]


def declarations(specs: Sequence[Spec]) -> tuple[Declaration, ...]:
    """Declarations of specs, and of what looks at their groups."""
    declared: list[Declaration] = [spec.declaration for spec in specs]
    for source in (part for part in tuple(declared) if isinstance(part, Aggregate)):
        if source.name == "by_desk":
            declared += _of_desks(source)
        elif source.name == BOOKS._parts[0].name:
            declared.append(replace(BOOKS.total, source=source))
    return tuple(declared)


def _of_desks(by_desk: Aggregate) -> tuple[Aggregate, Aggregate]:
    """By region: desks with two trades or more, and their trades; desks by their trades, and trades up to three."""
    region = "REGION#{region}"
    totals: dict[str, Count | Sum] = {"desks": Count(), "trades": Sum("trades")}
    by_trades: dict[str, Histogram | Sum] = {
        "exactly": Histogram("trades", exactly=EXACTLY),
        "capped": Sum("trades", cap=3),
    }
    return (
        Aggregate("crowded", by_desk, pk="CROWDED", sk=region, measures=totals, where=Attr("trades").ge(2)),
        Aggregate("sizes", by_desk, pk="SIZES", sk=region, measures=by_trades),
    )
