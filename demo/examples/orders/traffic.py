"""Generated changes of a shop's orders, in the order in which other code makes them."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any, Final, NamedTuple

STATUSES: Final = ("placed", "paid", "shipped", "cancelled")
_CUSTOMERS: Final = ("ann", "50%", "b b")
_CHANGES: Final = 240
_HOUR: Final = 3600
_PLACED, _MOVED_ON = 0.5, 0.4
"""Shares of the changes; the others delete an order."""


class Change(NamedTuple):
    """An order as it is from now on; without a status, it is deleted."""

    customer: str
    order: int
    status: str
    cents: int = 0
    placed_at: int = 0

    @property
    def key(self) -> dict[str, Any]:
        return {"PK": {"S": f"CUSTOMER#{self.customer}"}, "SK": {"S": f"ORDER#{self.order}"}}

    @property
    def item(self) -> dict[str, Any]:
        rest = {"cents": {"N": str(self.cents)}, "status": {"S": self.status}, "placedAt": {"N": str(self.placed_at)}}
        return {**self.key, **rest}


def changes(rng: random.Random, now: datetime) -> list[Change]:
    """Generate orders of the last hour: half of the changes place one, most others move one on, some delete one."""
    orders: dict[int, Change] = {}
    made = []
    for number in range(_CHANGES):
        kind = rng.random()
        if not orders or kind < _PLACED:
            change = Change(rng.choice(_CUSTOMERS), number, "placed", rng.randint(1, 99_999), _placed(rng, now))
        else:
            order = orders[rng.choice(list(orders))]
            change = order._replace(status=rng.choice(STATUSES) if kind < _PLACED + _MOVED_ON else "")
        made.append(change)
        if change.status:
            orders[change.order] = change
        else:
            del orders[change.order]
    return made


def _placed(rng: random.Random, now: datetime) -> int:
    return int(now.timestamp()) - rng.randrange(_HOUR)
