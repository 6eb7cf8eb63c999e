"""Dollars that a run costs, by the project's own cost model."""

from __future__ import annotations

from typing import Final

from dynamodb_counters._cost.counted_items import Counted
from dynamodb_counters._cost.dollars import MONTH
from dynamodb_counters._cost.month_bill import bills
from dynamodb_counters._cost.workload_settings import Workload
from dynamodb_counters._price_file import PRICES

MOST_DOLLARS: Final = 1.0
_HOUR: Final = 3600.0
_PARTS: Final = 2.0
"""The copy has two ingests and an API, of which a bill has one and none; the probe's requests are some hundreds."""


def dollars_of(events: int) -> float:
    """Twice an hour of the copy, in which all events come: a run is shorter, but metrics are billed by the hour."""
    counted = (Counted(40), Counted(1))
    load = Workload(events / _HOUR, counted, door="validated", monitoring=True, dashboard=True)
    return _PARTS * bills(load, PRICES.of)[0].total * _HOUR / MONTH
