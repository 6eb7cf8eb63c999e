"""The shop's counts, computed from the changes alone; shares no code with the runtime, and must not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from demo.examples.orders.traffic import Change


class OrdersTruth:
    """The orders that are left, and what they come to by customer and status."""

    def __init__(self, changes: Iterable[Change]) -> None:
        last = {change.order: change for change in changes}
        orders = [change for change in last.values() if change.status]
        standing = [order for order in orders if order.status != "cancelled"]
        self.customers = sorted({change.customer for change in last.values()})
        self.active = len({order.customer for order in orders})
        self.statuses = Counter(order.status for order in orders)
        self.orders = Counter(order.customer for order in standing)
        self.cents: Counter[str] = Counter()
        for order in standing:
            self.cents[order.customer] += order.cents
        self.total = len(orders)
