"""Schedules of one consumer, in which days pass: of the kernel alone, and of a `Distinct` whose members expire."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Self, TypeAlias
from unittest.mock import patch

from dynamodb_counters import Counters, Distinct, Event, exactly_once
from dynamodb_counters._commit.batch import Report
from dynamodb_counters._fold.records import padded
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, HOUR
from dynamodb_counters.exactly_once import Amounts, ExactlyOnce, Key, Record
from simulation.delivery.event_source_mapping import Delivery, Settings
from simulation.faults.faulty_client import FaultPlan
from simulation.faults.process import in_disorder
from simulation.pairs import coverage
from simulation.pairs.backend import MakeBackend, MemoryBackend
from simulation.pairs.coverage import Outcome
from simulation.pairs.deliveries import Deliveries, drawn
from simulation.pairs.function import Function, Sandbox

_MOST_STEPS: Final = 100_000


class Days:
    """One schedule; its seed decides everything. All but its loop is of a kind."""

    steps: ClassVar[int] = 80
    backlog: ClassVar[float] = 22 * HOUR
    """Of what waits longer, Lambda gives up on some."""

    def __init__(self, seed: int, make_backend: MakeBackend) -> None:
        self._seed = seed
        self._random = rng = random.Random(seed)
        self._backend = make_backend(rng)
        self._clock = self._backend.clock
        self._faults = FaultPlan(rng, rng.choice((0.0, 0.03, 0.1)), 200)

    def _begin(self, function: Function, settings: Settings) -> None:
        self._function, self._reached = function, function.reached
        self._deliveries = Deliveries(self._backend, self._random, self._faults, function, settings)

    def run(self) -> Outcome:
        for _ in range(self.steps):
            self._random.choice((self._write, self._write, self._write, self._count, self._count, self._pass))()
        self._faults.budget = 0
        self._settle()
        mapping, wrong = self._deliveries.mapping, [*self._wrong(), *self._function.standstills]
        reached: Counter[str] = self._reached
        return Outcome(self._seed, wrong, mapping.deliveries, mapping.delivered, self._faults.injected, reached)

    def _write(self) -> None:
        raise NotImplementedError

    def _wrong(self) -> Iterable[str]:
        raise NotImplementedError

    def _trouble(self) -> Sequence[Callable[[], object]]:
        return self._deliveries.disturbances()

    def _pass(self) -> None:
        """Let time pass, but only as much as the records that wait have left."""
        left = self._deliveries.oldest_waiting() + self.backlog - self._clock()
        self._clock.advance(max(0.0, min(self._random.choice((60, HOUR, 5 * HOUR, 14 * HOUR, DAY)), left)))

    def _count(self) -> None:
        """Deliver for a while, with all that goes wrong."""
        for _ in range(self._random.choice((10, 40, 160))):
            chance = self._random.random()
            if chance < 0.2:
                self._deliveries.start()
            elif chance < 0.25:
                self._random.choice(self._trouble())()
            elif chance < 0.27:
                self._clock.hurry(self._random)
            else:
                self._step()

    def _step(self) -> None:
        self._deliveries.step()

    def _settle(self) -> None:
        """Count all there is."""
        for _ in range(_MOST_STEPS):
            self._step()
            if not self._function.running and not self._clock.hurry(self._random) and self._deliveries.drained():
                return
        raise AssertionError(f"seed {self._seed} does not end")


REFUSED: Final = "records too old to be counted"

Consumer: TypeAlias = Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
"""A function on the stream: takes event and context."""


def adds(record: Record) -> Iterator[tuple[Key, Amounts]]:
    """Yield what a record adds to two items: events and bytes of a page, and of all."""
    for name, sign in (("OldImage", -1), ("NewImage", 1)):
        image = record["dynamodb"].get(name, {})
        if "page" in image:
            amounts = {"events": sign, "bytes": sign * int(image["bytes"]["N"])}
            yield ("PAGE#" + image["page"]["S"], "COUNT"), amounts
            yield ("ALL", "COUNT"), amounts


def plain_add(table: Table, _: Callable[[Record], object]) -> Consumer:
    """Return the consumer that many have: it adds up a batch, and sends an ``ADD`` per item."""

    def handle(event: Mapping[str, Any], _: Any) -> Mapping[str, Any]:
        sums: dict[Key, Counter[str]] = {}
        for item, amounts in (each for record in event.get("Records", ()) for each in adds(record)):
            sums.setdefault(item, Counter()).update(amounts)
        for (pk, sk), total in sums.items():
            key = {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}
            typed = {name: {"N": str(amount)} for name, amount in total.items()}
            table.client.update_item(**exactly_once.update_request(table.name, key, {"kind": {"S": "count"}}, typed))
        return {"state": {}}

    return handle


def kernel(table: Table, too_old: Callable[[Record], object]) -> Consumer:
    """Return the consumer that counts each record once."""
    counted = ExactlyOnce(table.name, client=table.client, clock=table.clock, too_old=too_old)
    return lambda event, context: counted.handle(event, adds, context)


class KernelSchedule(Days):
    """One schedule of a consumer."""

    def __init__(
        self,
        seed: int,
        make_backend: MakeBackend = MemoryBackend,
        consumer: Callable[[Table, Callable[[Record], object]], Consumer] = kernel,
    ) -> None:
        super().__init__(seed, make_backend)
        rng, backend = self._random, self._backend
        self._too_old: list[Record] = []
        too_old = self._too_old.append

        class OwnSandbox(Sandbox):
            def _begin(self, table: Table, *_: Any) -> None:
                self.report = Report()
                self._consumer = consumer(table, too_old)

            def handle(self, delivery: Delivery, deadline: float) -> Mapping[str, Any]:
                self.deadline = deadline
                left = SimpleNamespace(get_remaining_time_in_millis=lambda: 1000 * (deadline - self._clock.now))
                return self._consumer(delivery.event, left)

        function = Function(backend, rng, self._faults, (), make_sandbox=OwnSandbox)
        # With no limit of age, a stream that is delivered from its start has records that are too old.
        settings = drawn(rng, rng.choice((23 * HOUR, math.inf)))
        self._begin(function, replace(settings, retention_seconds=rng.choice((24, 30)) * HOUR))

    def run(self) -> Outcome:
        with (
            patch.object(exactly_once, "ThreadPoolExecutor", lambda _: _Threads(self._random)),
            patch.object(exactly_once, "PRUNED_AT", 1),
            patch.object(exactly_once, "PRUNED_EVERY", 0),
        ):
            outcome = super().run()
        outcome.reached[REFUSED] += len(self._too_old)
        outcome.reached += coverage.of_records(self._backend.history())
        return outcome

    def _write(self) -> None:
        rng, client, table = self._random, self._backend.client, self._backend.name
        key = {"pk": {"S": f"EVENT#{rng.randrange(40)}"}, "sk": {"S": "EVENT"}}
        if rng.random() < 0.2:
            client.delete_item(TableName=table, Key=key)
            return
        values = {"page": {"S": rng.choice("abc")}, "bytes": {"N": str(rng.randrange(10**6))}}
        client.put_item(TableName=table, Item={**key, **values})

    def _wrong(self) -> Iterator[str]:
        expected: dict[Key, Counter[str]] = {}
        counts: dict[Key, Counter[str]] = {}
        for item in self._backend.items():
            for key, amounts in adds({"dynamodb": {"NewImage": item}}):
                expected.setdefault(key, Counter()).update(amounts)
            if item["sk"]["S"] == "COUNT":
                numbers = {name: int(item[name]["N"]) for name in ("events", "bytes") if name in item}
                counts[item["pk"]["S"], "COUNT"] = Counter(numbers)
        for key in sorted({*expected, *counts}, key=str):
            if counts.get(key, Counter()) != expected.get(key, Counter()):
                yield f"{key[0]!r}: {dict(counts.get(key, {}))}, expected {dict(expected.get(key, {}))}"


class _Threads:
    """Threads of which one works at a time, in an order that a seed decides."""

    def __init__(self, rng: random.Random) -> None:
        self._side_by_side = in_disorder(rng)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [result for _, result in self._side_by_side(work, [*items])]


LATE: Final = "late contribution"
EXPIRED: Final = "member expired"

VIEW: Final = Event("view", pk="VIEW#{id}", sk="VIEW", version="version")
_RETENTION: Final = 2
VISITORS: Final = Distinct(
    "visitors",
    VIEW,
    pk="SITE#{site}",
    sk="VISITORS#{at:day}",
    member="client",
    retention=timedelta(days=_RETENTION),
)

PAGED: Final = Distinct(
    "visitors", VIEW, by=("at:day", "site"), member="client", retention=timedelta(days=_RETENTION), pages=True
)

_Member = tuple[str, str, str]
"""Site, day, client."""


class ExpiringMembers(Days):
    """One schedule of members."""

    steps = 90
    backlog = 20 * HOUR

    def __init__(self, seed: int, *, pages: bool = False) -> None:
        super().__init__(seed, MemoryBackend)
        self._visitors = PAGED if pages else VISITORS
        rng, backend = self._random, self._backend
        self._counters = Counters(backend.name, client=backend.client, clock=self._clock)
        vars(self._counters._table)["threads"] = 1
        self._sleepy = rng.random() < 0.5
        settings = replace(drawn(rng, math.inf), retention_seconds=math.inf)
        self._begin(Function(backend, rng, self._faults, self._visitors._parts), settings)
        self._events: list[dict[str, Any]] = []

    # Events

    def _write(self) -> None:
        rng = self._random
        if self._events and rng.random() < 0.35:
            event = rng.choice(self._events)
            if rng.random() < 0.4:
                self._counters.retract(VIEW, event)
                return
            if rng.random() < 0.6:
                # Else it is sent once more.
                event |= self._values() | {"version": event["version"] + 1}
        else:
            event = {"id": f"{len(self._events)}", **self._values(), "version": 1}
            self._events.append(event)
        self._counters.accept(VIEW, event)

    def _values(self) -> dict[str, Any]:
        at = self._clock() - self._random.choice((0, 0, HOUR, DAY, 2 * DAY, 3 * DAY, 4 * DAY))
        return {
            "site": self._random.choice("ab"),
            "client": self._random.choice(("ann", "bob", "eve")),
            "at": datetime.fromtimestamp(at, UTC).isoformat(),
        }

    def _pass(self) -> None:
        """Sleep long once all is counted."""
        if self._sleepy and self._random.random() < 0.3:
            self._settle()
            self._clock.advance(2 * DAY)
        super()._pass()

    def _trouble(self) -> Sequence[Callable[[], object]]:
        return [self._deliveries.time_out]

    def _count(self) -> None:
        super()._count()
        if self._random.random() < 0.7:
            gone = self._backend.expire(self._random.choice((1, 5, 10**6)))
            self._reached[EXPIRED] += sum(item["_type"]["S"] == self._visitors._parts[0].name for item in gone)

    def _step(self) -> None:
        if (ended := self._deliveries.step()) is not None:
            self._reached[LATE] += ended.sandbox.report.late if ended.error is None else 0

    # Checks

    def _wrong(self) -> Iterator[str]:
        counts: Counter[_Member] = Counter()
        records: dict[tuple[str, str], Record] = {}
        for shard, record in self._backend.history():
            records[shard, padded(record["dynamodb"]["SequenceNumber"])] = record
            for member, number in _members_of(record, in_time=True):
                counts[member] += number
        uncertain: set[_Member] = set()
        # An entry that has expired with its group was in quarantine all the same.
        entries = {entry["sk"]["S"]: entry for entry in _entries(records.values())}
        for entry in entries.values():
            shard, sequence = entry["sk"]["S"].split("#")[:2]
            uncertain |= {member for member, _ in _members_of(records[shard, sequence], in_time=False)}
        for site, day in sorted({(site, day) for site, day, _ in (*counts, *uncertain)}):
            here = {member for member in (*counts, *uncertain) if member[:2] == (site, day)}
            certain, told = sum(counts[member] >= 1 for member in here - uncertain), len(here & uncertain)
            # A member that came and went may have only one of both in quarantine.
            least, most = certain - told, certain + told
            found = self._counters.get(self._visitors.total, {"site": site, "at:day": day}).measures["distinct"]
            if not least <= found <= most:
                yield f"{site} {day}: {found} visitors, expected {least} to {most}"


def _entries(records: Iterable[Record]) -> Iterator[Mapping[str, Any]]:
    """Entries that were in quarantine at any time."""
    images = (record["dynamodb"].get("NewImage") or {} for record in records)
    return (image for image in images if image.get("_type", {}).get("S") == "quarantine")


def _members_of(record: Record, *, in_time: bool) -> Iterator[tuple[_Member, int]]:
    """The members that a record is about, and what it adds to each, spelled out."""
    change = record["dynamodb"]
    for name, sign in (("NewImage", 1), ("OldImage", -1)):
        image = change.get(name) or {}
        kind = image.get("_type", {}).get("S")
        if kind == VIEW.name:
            day = datetime.fromisoformat(image["at"]["S"]).date()
            end = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + DAY
            if not in_time or change["ApproximateCreationDateTime"] < end + _RETENTION * DAY:
                yield (image["site"]["S"], day.isoformat(), image["client"]["S"]), sign
        elif kind == VISITORS._parts[0].name and not in_time:
            other = change.get("OldImage" if sign > 0 else "NewImage") or {}
            yield from ((member, sign) for member in _members_in(image, other))


def _members_in(image: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[_Member]:
    """The member of an item, or those of a page that differ from another image of it."""
    parts = image["sk"]["S"].split("#")
    if parts[0] == "PAGE":
        day = image["pk"]["S"].split("#")[1]
        changed = [name for name, value in image.items() if name.startswith("=") and value != other.get(name)]
        yield from ((site, day, client) for site, client in (name[1:].split("#") for name in changed))
    elif parts[0] == "VISITORS":
        yield image["pk"]["S"].removeprefix("SITE#"), parts[1], parts[3]
    else:
        # A group of a page, as the quarantine holds it.
        yield parts[1], image["pk"]["S"].split("#")[1], parts[3]
