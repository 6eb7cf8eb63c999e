"""One example's way from its events to a finding: sent, read back, compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from demo.check.drain import read_settled
from demo.check.finding import Finding
from demo.cost.bill import Bill
from demo.cost.meter import Meter
from demo.example import Example
from demo.platform.deployment import Deployment
from demo.sending.send import Account, send
from demo.terminal import Progress
from dynamodb_counters import Counters


@dataclass
class Trial:
    """An example and its table; `reader` has a client of its own, so that what it reads can be measured."""

    example: Example
    writer: Counters
    reader: Counters
    bill: Bill | None = None
    account: Account = field(default_factory=Account)

    @classmethod
    def of(cls, example: Example, deployment: Deployment) -> Trial:
        """Bind an example to its deployed stack."""
        writing, reading = deployment.database(), deployment.database()
        table = deployment.table(example.stack)
        # "put", because the emulator's stream lacks what PartiQL writes.
        writer, reader = Counters(table, client=writing, bulk="put"), Counters(table, client=reading)
        metrics = partial(deployment.metrics, example.stack)
        bill = Bill(Meter(writing), Meter(reading), metrics) if example.measured else None
        return cls(example, writer, reader, bill)

    def send(self, progress: Progress) -> None:
        """Send all events, kind by kind."""
        for event, deliveries, name in self.example.feeds():
            accept_many, retract = partial(self.writer.accept_many, event), partial(self.writer.retract, event)
            self.account += send(accept_many, retract, deliveries, name, progress)

    def totals(self) -> dict[str, int]:
        """Read the numbers that show whether everything has been counted."""
        return self.example.totals(self.writer)

    def finding(self, progress: Progress) -> Finding:
        """Read everything back and put it beside the truth."""
        reading = read_settled(
            partial(self.example.read, self.reader, progress), lambda read: read.counts == self.example.expected(read)
        )
        responses = self._responses()
        costs = self.bill.costs(self.account.sent, responses["accepted"]) if self.bill else None
        expected = self.example.expected(reading)
        return Finding(self.example.name, self.account, responses, reading, expected, costs)

    def _responses(self) -> Mapping[str, int]:
        each = [feed.deliveries.responses() for feed in self.example.feeds()]
        return {status: sum(responses[status] for responses in each) for status in each[0]}
