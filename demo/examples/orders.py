"""240 changes of orders of the last hour, in a table of other code: half place one, some delete one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from demo.example import Example
from demo.options import Setup

_CUSTOMERS = ("ann", "50%", "b b")
_OTHERS, _NO_ORDER = ("PROFILE", "ORDER#1#ITEM#2"), {"_type": {"S": "orders"}}
"""What else lies in the partition of a customer: nothing counts it, and nothing takes it for an order gone wrong."""
_STATUSES = ("placed", "paid", "shipped", "cancelled")
_PLACED, _DELETED = 0.5, 0.1
"""Shares of the changes; the others move an order on."""


def play(setup: Setup) -> Example:
    rng, orders = setup.rng("orders"), dict[int, tuple[str, str, int, int]]()
    changes: list[Any] = [({"PK": {"S": "CUSTOMER#ann"}, "SK": {"S": name}}, _NO_ORDER) for name in _OTHERS]
    for number in range(240):
        kind, order = rng.random(), rng.choice([*orders, number])
        if kind < _PLACED or order == number:
            placed = int(setup.now.timestamp()) - rng.randrange(3600)
            order, orders[number] = number, (rng.choice(_CUSTOMERS), "placed", rng.randint(1, 99_999), placed)
        else:
            orders[order] = (orders[order][0], rng.choice(_STATUSES), *orders[order][2:])
        customer, status, cents, placed = orders[order]
        key = {"PK": {"S": f"CUSTOMER#{customer}"}, "SK": {"S": f"ORDER#{order}"}}
        item = {"status": {"S": status}, "cents": {"N": str(cents)}, "placedAt": {"N": str(placed)}}
        is_deleted = kind > 1 - _DELETED
        changes.append((key, None if is_deleted else item))
        if is_deleted:
            del orders[order]
    rows, counted = orders.values(), [order for order in orders.values() if order[1] != "cancelled"]
    truth: dict[str, Any] = {
        "orders.orders": {customer: sum(order[0] == customer for order in counted) for customer in _CUSTOMERS},
        "orders.cents": {name: sum(order[2] for order in counted if order[0] == name) for name in _CUSTOMERS},
        "customers": {"": len({order[0] for order in rows})},
        "last_day": {"": len(rows)},
        "by_status": dict.fromkeys(_STATUSES, 0) | Counter(order[1] for order in rows),
    }
    return Example(name="orders", now=setup.now, events={}, truth=truth, changes=changes)
