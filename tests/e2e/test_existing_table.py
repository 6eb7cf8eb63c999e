"""An existing table, deployed as it is, and its exact counts."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from demo.platform.deployment import Deployment
from dynamodb_counters import Counters
from examples.orders.declarations import BY_STATUS, CUSTOMERS, LAST_DAY, ORDERS
from tests.e2e.conftest import eventually

pytestmark = pytest.mark.e2e

_STATUSES = ("placed", "paid", "shipped", "cancelled")


class Shop:
    """Other code: writes orders into its table, and knows which there are."""

    def __init__(self, client: Any, table: str, seed: int) -> None:
        self._client, self._table, self._random = client, table, random.Random(seed)
        self.orders: dict[tuple[str, int], tuple[str, int]] = {}

    def trade(self) -> None:
        kind = self._random.random()
        if not self.orders or kind < 0.5:
            self._put((self._random.choice(("ann", "50%", "b b")), len(self.orders)), "placed")
        elif kind < 0.9:
            self._put(self._random.choice(list(self.orders)), self._random.choice(_STATUSES))
        else:
            gone = self._random.choice(list(self.orders))
            self._client.delete_item(TableName=self._table, Key=_key(*gone))
            del self.orders[gone]

    def rest(self) -> None:
        """Write what is no order."""
        for sort_key in ("PROFILE", "ORDER#1#ITEM#2"):
            item = {"PK": {"S": "CUSTOMER#ann"}, "SK": {"S": sort_key}, "_type": {"S": "orders"}}
            self._client.put_item(TableName=self._table, Item=item)

    def _put(self, order: tuple[str, int], status: str) -> None:
        cents = self._random.randint(1, 99_999)
        placed_at = self._random.randint(0, 3600)
        item = {"cents": {"N": str(cents)}, "status": {"S": status}, "placedAt": {"N": str(time.time() - placed_at)}}
        self._client.put_item(TableName=self._table, Item={**_key(*order), **item})
        self.orders[order] = status, cents


def _key(customer: str, order: int) -> dict[str, Any]:
    return {"PK": {"S": f"CUSTOMER#{customer}"}, "SK": {"S": f"ORDER#{order}"}}


def test_counts_of_an_existing_table_are_exact(deployment: Deployment) -> None:
    client, outputs = deployment.emulator.client("dynamodb"), deployment.outputs["CountersOrders"]
    shop = Shop(client, outputs["SourceTableName"], seed=16)
    shop.rest()
    for _ in range(120):
        shop.trade()
    counters = Counters(outputs["TableName"], client=client)
    statuses = Counter(status for status, _ in shop.orders.values())

    def found() -> Mapping[str, Any]:
        by_customer = {customer: counters.get(ORDERS, {"customer": customer}).measures for customer in _customers()}
        by_status = {status: counters.get(BY_STATUS, {"status": status}).measures["orders"] for status in _STATUSES}
        return {
            **by_customer,
            **by_status,
            "customers": counters.get(CUSTOMERS, {})["distinct"],
            "last day": counters.window(LAST_DAY).last(days=1).count,
        }

    def _customers() -> set[str]:
        return {customer for customer, _ in shop.orders}

    def sums(customer: str) -> Mapping[str, int]:
        own = [cents for (who, _), (status, cents) in shop.orders.items() if who == customer and status != "cancelled"]
        return {"orders": len(own), "cents": sum(own)}

    expected = {
        **{customer: sums(customer) for customer in _customers()},
        **{status: statuses[status] for status in _STATUSES},
        "customers": len(_customers()),
        "last day": len(shop.orders),
    }
    eventually(lambda: found() == expected)
    assert found() == expected
    assert list(counters.quarantined()) == []
