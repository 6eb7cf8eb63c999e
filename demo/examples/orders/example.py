"""The orders example: other code writes a table, whose stream feeds counts in another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from demo.check.readback import read_groups
from demo.example import Example, Finding, Numbers, Reading
from demo.examples.orders.traffic import STATUSES, Change, changes
from demo.examples.orders.truth import OrdersTruth
from demo.options import Setup
from demo.platform.deployment import Deployment
from demo.sending.send import Account, Feed
from demo.terminal import Progress
from dynamodb_counters import Counters
from examples.orders.declarations import BY_STATUS, CUSTOMERS, LAST_DAY, ORDERS


@dataclass(frozen=True)
class Orders(Example):
    noun: ClassVar[str] = "orders"

    changes: Sequence[Change]

    @classmethod
    def prepare(cls, setup: Setup) -> Orders:
        return cls(changes(setup.rng("orders"), setup.now))

    @cached_property
    def truth(self) -> OrdersTruth:
        return OrdersTruth(self.changes)

    def feeds(self) -> Sequence[Feed]:
        return []

    @property
    def size(self) -> int:
        return len(self.changes)

    def send(self, counters: Counters, deployment: Deployment, account: Account, progress: Progress) -> None:  # noqa: ARG002
        client = deployment.emulator.client("dynamodb")
        table = deployment.outputs[self.stack]["SourceTableName"]
        for change in self.changes:
            if change.status:
                client.put_item(TableName=table, Item=change.item)
            else:
                client.delete_item(TableName=table, Key=change.key)

    def total(self, counters: Counters) -> int:
        return sum(read_groups(counters, BY_STATUS, "status", STATUSES).values())

    def expected_total(self) -> int:
        return self.truth.total

    def read(self, counters: Counters, progress: Progress) -> Reading:  # noqa: ARG002
        groups = counters.get_many([(ORDERS, {"customer": customer}) for customer in self.truth.customers])
        measures = {str(group.values["customer"]): group.measures for group in groups}
        return Reading(
            {
                "orders": {customer: int(found["orders"]) for customer, found in measures.items()},
                "cents": {customer: int(found["cents"]) for customer, found in measures.items()},
                "by status": read_groups(counters, BY_STATUS, "status", STATUSES),
                "totals": {
                    "customers": counters.get(CUSTOMERS)["distinct"],
                    "last day": int(counters.window(LAST_DAY).last(days=1).count),
                },
            }
        )

    def expected(self, reading: Reading) -> Numbers:  # noqa: ARG002
        truth = self.truth
        return {
            "orders": {customer: truth.orders[customer] for customer in truth.customers},
            "cents": {customer: truth.cents[customer] for customer in truth.customers},
            "by status": {status: truth.statuses[status] for status in STATUSES},
            "totals": {"customers": truth.active, "last day": truth.total},
        }

    def lines(self, finding: Finding) -> Sequence[str]:
        cents = finding.found["cents"]
        return [
            f"{'orders':>7}  {'cents':>9}  customer",
            *(f"{count:>7,}  {cents[name]:>9,}  {name}" for name, count in finding.found["orders"].items()),
        ]

    def commands(self) -> Sequence[str]:
        return [f"get {ORDERS.name} customer=ann", f"get {BY_STATUS.name}", f"explain {ORDERS.name} customer=ann --yes"]
