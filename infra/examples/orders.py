"""A shop's counts of its orders, without a change to the table they are in."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from dynamodb_counters import Aggregate, Attr, Count, Distinct, Items, Sum, TableKeys, Window

ORDER: Final = Items("order", pk="CUSTOMER#{customer}", sk="ORDER#{order}", keys=TableKeys("PK", "SK", ttl="expiresAt"))
"""An order of a customer. Customer and order number are in the keys alone; other items of the table do not match."""

ORDERS: Final = Aggregate(
    "orders", ORDER, by="customer", orders=Count(), cents=Sum("cents"), where=Attr("status").ne("cancelled")
)
"""Orders of each customer that are not cancelled, and what they come to."""

BY_STATUS: Final = Aggregate("by_status", ORDER, pk="SHOP", sk="STATUS#{status}", orders=Count())
"""Orders by their status; templates put all statuses into one partition, so that one Query reads them."""

CUSTOMERS: Final = Distinct("customers", ORDER, member="customer")
"""Customers who have ordered anything."""

LAST_DAY: Final = Window(
    "last_day", ORDER, time="placedAt", retention=timedelta(days=2), future_tolerance=timedelta(hours=1)
)
