"""Aggregates over the groups of another one."""

from __future__ import annotations

from typing import Final

from dynamodb_counters._declarations import Aggregate, Count, Histogram, Measure, Sum
from dynamodb_counters._items.conditions import Attr

EXACTLY: Final = (1, 2, 3)
AT_LEAST: Final = (1, 3)


def crowded(by_desk: Aggregate) -> Aggregate:
    """Desks with two trades or more, and their trades, by region."""
    measures: dict[str, Measure] = {"desks": Count(), "trades": Sum("trades")}
    where = Attr("trades").ge(2)
    return Aggregate("crowded", by_desk, pk="CROWDED", sk="REGION#{region}", measures=measures, where=where)


def sizes(by_desk: Aggregate) -> Aggregate:
    """Histograms of trades per desk, and a sum capped at three per desk, by region."""
    measures: dict[str, Measure] = {
        "exactly": Histogram("trades", exactly=EXACTLY),
        "at_least": Histogram("trades", at_least=AT_LEAST),
        "capped": Sum("trades", cap=3),
    }
    return Aggregate("sizes", by_desk, pk="SIZES", sk="REGION#{region}", measures=measures)
