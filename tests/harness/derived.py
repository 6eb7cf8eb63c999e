"""Aggregates over the groups of another one."""

from __future__ import annotations

from typing import Final

from dynamodb_counters._declarations import Aggregate, Count, Histogram, Measure, Sum
from dynamodb_counters._items.conditions import Attr

EXACTLY: Final = (1, 2, 3)
AT_LEAST: Final = (1, 3)


def crowded(by_desk: Aggregate) -> Aggregate:
    """Declare an aggregate over the groups of another: desks with two trades or more.

    Parameters
    ----------
    by_desk : Aggregate
        Trades by desk.

    Returns
    -------
    Aggregate
        How many such desks a region has, and how many trades they have.
    """
    measures: dict[str, Measure] = {"desks": Count(), "trades": Sum("trades")}
    where = Attr("trades").ge(2)
    return Aggregate("crowded", by_desk, pk="CROWDED", sk="REGION#{region}", measures=measures, where=where)


def sizes(by_desk: Aggregate) -> Aggregate:
    """Declare histograms over the groups of another aggregate: how many desks have so many trades.

    Parameters
    ----------
    by_desk : Aggregate
        Trades by desk.

    Returns
    -------
    Aggregate
        Desks with exactly, and with at least, some numbers of trades, and a sum capped at three a desk.
    """
    measures: dict[str, Measure] = {
        "exactly": Histogram("trades", exactly=EXACTLY),
        "at_least": Histogram("trades", at_least=AT_LEAST),
        "capped": Sum("trades", cap=3),
    }
    return Aggregate("sizes", by_desk, pk="SIZES", sk="REGION#{region}", measures=measures)
