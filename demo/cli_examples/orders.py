"""A shop's table of twenty orders, with an aggregate that came later: what backfill, verify and repair look at."""

from __future__ import annotations

from typing import Any, Final

from demo.cli_examples.blog import NOW
from dynamodb_counters import Aggregate, Attr, Count, Items, Sum
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._table import Table
from simulation.metered_table import MeteredTable

ORDER = Items("order", where=Attr("customer").exists())
REVENUE = Aggregate("revenue", ORDER, pk="CUSTOMER#{customer}", sk="REVENUE", total=Sum("price"))
TOTALS = Aggregate("totals", ORDER, pk="SHOP", sk="TOTALS", orders=Count(), taken=Sum("price"))

_DAY: Final = 86_400.0
_CUSTOMERS: Final = ("ann", "bob", "eve")


class Orders:
    """The table `orders` in memory, its clients, and its time; what changes is counted as time passes."""

    def __init__(self, orders: int = 20) -> None:
        self.name = "orders"
        self.now = NOW - _DAY
        self._memory = MeteredTable(self.clock, shards=2, name=self.name)
        self.clients: dict[str, Any] = {"dynamodb": self._memory, "dynamodbstreams": self._memory.stream}
        self._delivered: dict[str, int] = {}
        self._deploy(REVENUE)
        for number in range(orders):
            customer, price = _CUSTOMERS[number % len(_CUSTOMERS)], 10 + number % 7
            item = {"customer": {"S": customer}, "price": {"N": str(price)}, "note": {"S": "as ever " * 20}}
            self._memory.put_item(TableName=self.name, Item={**_key(f"ORDER#{number + 1}", "ORDER"), **item})
        self.live(_DAY / 2)
        self._deploy(REVENUE, TOTALS)
        self.live(_DAY / 2)
        for number in range(5):
            self._memory.delete_item(TableName=self.name, Key=_key(f"ORDER#{number + 1}", "ORDER"))
        # A count was corrected by hand, and is wrong.
        self._memory.update_item(
            TableName=self.name,
            Key=_key("CUSTOMER#bob", "REVENUE"),
            UpdateExpression="ADD #total :more",
            ExpressionAttributeNames={"#total": "total"},
            ExpressionAttributeValues={":more": {"N": "12"}},
        )
        self.live(60)

    def clock(self) -> float:
        return self.now

    def live(self, seconds: float) -> None:
        """Let time pass, and count what is new."""
        self.now += seconds
        for shard in self._memory.stream.shards():
            records = self._memory.stream.read(shard.id, None, 1_000_000).records[self._delivered.get(shard.id, 0) :]
            self._delivered[shard.id] = self._delivered.get(shard.id, 0) + len(records)
            for start in range(0, len(records), 1000):
                self._aggregator.handle({"shardId": shard.id, "Records": records[start : start + 1000]})

    def _deploy(self, *declared: Declaration) -> None:
        client: Any = self._memory
        table = Table(self.name, client, clock=self.clock, sleep=self.live, jitter=lambda: 0.5)
        self._aggregator = Aggregator(table, declared, quarantine_retention_seconds=90 * _DAY)
        self._aggregator.handle({})


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}
