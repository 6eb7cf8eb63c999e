"""Invoices of customers in three time zones: closed periods stand, late events are adjustments, sums are exact.

Each schedule accepts, corrects and retracts late events, delivers batches again, and closes periods meanwhile, by
processes that lose answers and race. HTTP, command line and export agree on every number.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from botocore.exceptions import ClientError

from dynamodb_counters import Counters, Event, Statement, Sum, Window
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.testing._dynamodb.client_errors import failure
from simulation.night import scaled
from simulation.workbench import Workbench
from tests.unit.cli.in_process import run

ATTRIBUTES = {"customer": str, "id": int, "at": datetime, "rev": int, "euros": Decimal}
CALL: Final = Event("call", key=("customer", "id"), version="rev", attributes=ATTRIBUTES)
YEAR: Final = timedelta(days=366)
USAGE: Final = Window("usage", CALL, by="customer", time="at", measure=Sum("euros"), longest=YEAR)
CUSTOMERS: Final = {"c1": ("Europe/Berlin", 1), "c2": ("America/New_York", 15), "c3": ("Asia/Kathmandu", 31)}
MONTHS: Final = ("2026-09", "2026-10", "2026-11", "2026-12")
BEGIN: Final = datetime(2026, 10, 3, tzinfo=UTC)
SCHEDULES: Final = scaled(3)


class LosesAnswers:
    """A client whose puts may land without an answer, or after another process has put the same."""

    def __init__(self, table: Any, rng: random.Random, before: Callable[[], object]) -> None:
        self._table, self._random, self._before = table, rng, before
        self.exceptions, self.meta = table.exceptions, table.meta

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def put_item(self, **request: Any) -> Any:
        if self._random.random() < 0.3:
            self._before()
        answer = self._table.put_item(**request)
        if self._random.random() < 0.3:
            raise failure("PutItem", "InternalServerError")
        return answer


class Billing:
    """A table of calls, its stream, and who closes periods."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bench = Workbench([USAGE], shards=2)
        self.bench.clock.now = BEGIN.timestamp()
        self.bench.aggregator.handle({})
        self.live: dict[tuple[str, int], tuple[datetime, Decimal, int]] = {}
        self.stood: dict[tuple[str, str], Statement] = {}
        self._reached: dict[str, int] = {}
        self._young: dict[str, int] = {}

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.bench.clock.now, UTC)

    def call(self) -> None:
        customer, number = self.random.choice([*CUSTOMERS]), self.random.randrange(40)
        revision = self.live.get((customer, number), (None, None, 0))[2] + 1
        at = self.now - timedelta(minutes=self.random.choice((1, 60, 5_000, 60_000)) * self.random.random())
        euros = Decimal(self.random.randint(-50, 5_000)) / 100
        values = {"customer": customer, "id": number, "at": at.replace(microsecond=0), "rev": revision, "euros": euros}
        assert self.bench.counters.accept(CALL, values).status in ("accepted", "replaced")
        self.live[customer, number] = values["at"], euros, revision  # type: ignore[assignment]

    def retract(self) -> None:
        if self.live:
            customer, number = self.random.choice(sorted(self.live))
            self.bench.counters.retract(CALL, {"customer": customer, "id": number})
            del self.live[customer, number]

    def deliver(self, *, everything: bool = False) -> None:
        """Deliver a few records, some of them again; or everything that is left."""
        for shard in self.bench.shards() if everything else [self.random.choice(self.bench.shards())]:
            reached, records = self._reached.get(shard, 0), self.bench.records(shard)
            start = max(self._young.get(shard, 0), reached - self.random.choice((0, 0, 3)))
            stop = len(records) if everything else min(len(records), reached + self.random.choice((1, 5, 100)))
            if start < stop:
                self.bench.deliver(records[start:stop], shard)
            self._reached[shard] = max(reached, stop)

    def wait(self) -> None:
        """Let hours or days pass: by then, everything is counted, and nothing is delivered again."""
        while any(self._reached.get(shard, 0) < len(self.bench.records(shard)) for shard in self.bench.shards()):
            self.deliver(everything=True)
        self._young = dict(self._reached)
        self.bench.clock.advance(self.random.choice((3_600, 86_400, 300_000)) * (1 + self.random.random()))

    def close(self, customer: str | None = None) -> None:
        """Close the first open period of a customer that has ended, or one that is closed already, once more."""
        customer = customer or self.random.choice([*CUSTOMERS])
        client: Any = LosesAnswers(self.bench.table, self.random, lambda: self._overtake(customer))
        with suppress(ClientError):
            self._close(client, customer)

    def _overtake(self, customer: str) -> None:
        """Another process closes the period, after one more event was counted."""
        self.call()
        self.deliver(everything=True)
        self._close(self.bench.table, customer)

    def _close(self, client: Any, customer: str) -> None:
        tz, anchor = CUSTOMERS[customer]
        reader = Counters(self.bench.table.name, client=client, clock=self.bench.clock).window(USAGE, customer=customer)
        closed = len(reader.closed())
        month = MONTHS[max(0, closed - self.random.choice((0, 0, 1)))]
        if closed < len(MONTHS) and reader.statement("month", month, tz, anchor=anchor).end <= self.now:
            self.keep(customer, month, reader.close("month", month, tz, anchor=anchor))

    def keep(self, customer: str, month: str, found: Statement) -> None:
        assert self.stood.setdefault((customer, month), found) == found

    def run(self) -> None:
        steps = [self.call] * 6 + [self.deliver] * 4 + [self.retract] + [self.close] * 2 + [self.wait]
        while self.now < BEGIN + timedelta(days=85):
            self.random.choice(steps)()
            self.bench.clock.advance(30)
        self.wait()

    def owed(self, customer: str, start: datetime, end: datetime) -> Decimal:
        calls = [euros for (whose, _), (at, euros, _) in self.live.items() if whose == customer and start <= at < end]
        return sum(calls, Decimal())


def _invoice(billing: Billing, customer: str) -> tuple[int, int]:
    """Compare a customer's statements in every form; return how many are closed, and how many have adjustments."""
    bench, (tz, anchor) = billing.bench, CUSTOMERS[customer]
    api = CountResources(bench.counters, [USAGE], bench.clock)
    reader = bench.counters.window(USAGE, customer=customer)
    closed = reader.closed()
    following = MONTHS[len(closed)] if len(closed) < len(MONTHS) else None
    billed = [*closed, *([reader.statement("month", following, tz, anchor=anchor)] if following else [])]

    assert sum(one.total for one in billed) == billing.owed(customer, billed[0].start, billed[-1].end)
    documents = []
    for month, statement in zip(MONTHS, billed, strict=False):
        if statement.closed_at is not None:
            billing.keep(customer, month, statement)
        query = urlencode({"customer": customer, "period": "month", "of": month, "tz": tz, "anchor": anchor})
        answer = api.read("usage", query, resource="window")
        options = (f"customer={customer}", "--tz", tz, "--anchor", str(anchor), "--table", bench.table.name)
        commands = [
            ("window", "usage", "--period", "month", "--of", month, "--json"),
            *(("close", "usage", f"month={month}", "--dry-run", "--export", form) for form in ("jsonl", "csv")),
        ]
        *printed, exported = (run(*one, *options, client=bench.table, clock=bench.clock).out for one in commands)
        [row] = csv.DictReader(io.StringIO(exported))
        for one in (answer, *(json.loads(text, parse_float=Decimal) for text in printed), row):
            numbers = [Decimal(one[name]) for name in ("count", "adjustment", "total")]
            assert numbers == [statement.count, statement.adjustment, statement.total]
            assert [datetime.fromisoformat(one[name]) for name in ("start", "end")] == [statement.start, statement.end]
            at = one["closed_at"] or None
            assert (at and datetime.fromisoformat(at)) == statement.closed_at
        documents.append(answer)
    listed = api.read("usage", urlencode({"customer": customer}), resource="closed")["closed"]
    assert listed == [{name: one[name] for name in listed[0]} for one in documents[: len(closed)]]
    return len(closed), sum(one.adjustment != 0 for one in billed)


def test_invoices_are_exact_to_the_cent_and_the_same_everywhere() -> None:
    closed = adjusted = 0
    for seed in range(SCHEDULES):
        billing = Billing(seed)
        billing.run()
        for customer in CUSTOMERS:
            numbers = _invoice(billing, customer)
            closed, adjusted = closed + numbers[0], adjusted + numbers[1]
    assert closed > 3 * SCHEDULES
    assert adjusted > SCHEDULES


def test_periods_of_a_customer_are_local() -> None:
    for tz, anchor in CUSTOMERS.values():
        reader = Workbench([USAGE]).counters.window(USAGE, customer="c")
        statement = reader.statement("month", "2026-09", tz, anchor=anchor)
        start = statement.start.astimezone(ZoneInfo(tz))
        assert (start.month, start.day, start.hour, start.minute) == (9, min(anchor, 30), 0, 0)
