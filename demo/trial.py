"""The way from events to findings: send, wait until all is counted, read back, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from counters_cli.emulator import Emulator
from demo.check.drain import Silence, read_settled, wait_until_drained
from demo.check.explained import explain
from demo.check.inbox import Inbox
from demo.cost import Bill, Meter
from demo.example import Example, Finding, Numbers
from demo.platform.aggregators import crashes, diagnosis, finished, is_delivered, limits
from demo.platform.deployment import Deployment
from demo.report import Result
from demo.sending import Account, Repeated
from demo.terminal import Progress
from dynamodb_counters import Counters


@dataclass
class Trial:
    """An example and its table; `reader` has a client of its own, so that what it reads can be measured."""

    example: Example
    writer: Counters
    reader: Counters
    emulator: Emulator
    function: str
    bill: Bill | None = None
    inbox: Inbox | None = None
    repeated: Repeated = field(default_factory=Repeated)
    account: Account = field(default_factory=Account)

    @classmethod
    def of(cls, example: Example, deployment: Deployment, *, priced: bool) -> Trial:
        emulator, outputs = deployment.emulator, deployment.outputs[example.stack]
        writing, reading = emulator.client("dynamodb"), emulator.client("dynamodb")
        table = deployment.table(example.stack)
        repeated = Repeated()
        repeated.watch(writing)
        writer, reader = Counters(table, client=writing), Counters(table, client=reading)
        table_units = partial(deployment.table_units, example.stack)
        bill = Bill(Meter(writing), Meter(reading), table_units) if priced and example.priced else None
        queue = outputs.get("InboxUrl")
        inbox = Inbox(emulator.client("sqs"), queue) if queue else None
        function = outputs["AggregatorName"]
        return cls(example, writer, reader, emulator, function, bill, inbox, repeated)

    def finding(self, silence: Silence) -> Finding:
        actual = read_settled(self._read, lambda numbers: numbers == self.example.expected(numbers), silence)
        costs = self.bill.costs(self.account.total, self.example.responses()["accepted"]) if self.bill else None
        explained = [explain(self.reader, *question) for question in self.example.questions()]
        return Finding(
            self.example, self.account, actual, costs, explained, crashed=crashes(self.emulator, self.function) > 0
        )

    def _read(self) -> Numbers:
        numbers = self.example.read(self.reader)
        return numbers if self.inbox is None else {**numbers, "crossings": self.inbox.read()}


def count(examples: Sequence[Example], deployment: Deployment, progress: Progress, *, priced: bool) -> Result:
    """Take all examples from their events to their findings; when the counts stall, say why and read back as usual.

    If `priced`, units are measured, which takes another read of the whole stream.
    """
    trials = [Trial.of(example, deployment, priced=priced) for example in examples]
    silence = Silence(partial(finished, deployment.emulator))
    # Smallest first: aggregates over aggregates take further rounds of the stream while the others are being sent.
    for trial in sorted(trials, key=lambda trial: trial.example.size):
        trial.example.send(trial.writer, deployment, trial.account, progress)
    progress("all sent; waiting until all of it is counted")
    stalled = wait_until_drained(
        {trial.example.name: partial(trial.example.total, trial.writer) for trial in trials},
        {example.name: example.expected_total for example in examples},
        partial(is_delivered, deployment.emulator, [trial.function for trial in trials]),
        progress,
        silence,
    )
    if stalled:
        for line in (stalled, *diagnosis(deployment.emulator, deployment.outputs)):
            progress(line)
    progress("reading back all groups and windows")
    findings = [trial.finding(silence) for trial in trials]
    met = [f"{trial.example.stack}: {line}" for trial in trials if (line := trial.repeated.note())]
    met += limits(deployment.emulator, deployment.outputs)
    return Result(findings, progress.seconds, stalled, met)
