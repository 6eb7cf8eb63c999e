"""A schedule of a `Distinct` whose members expire: days pass, TTL deletes, batches are given up and redriven late.

Every number must be what the records say that were created in time. What the aggregator quarantined as uncertain may
be counted or not; it must tell so, and never count a member twice.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from dynamodb_counters import Counters, Distinct, Event
from dynamodb_counters._fold.records import padded
from dynamodb_counters._stream.batch import Aggregator, Report
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.times import DAY, HOUR
from dynamodb_counters.testing._counting import one_by_one
from dynamodb_counters.testing._dynamodb.memory_client import MemoryTable
from dynamodb_counters.testing._dynamodb.stream_source import Record
from simulation.clock import VirtualClock
from simulation.faults.actors import Crashed
from simulation.faults.faulty_client import FaultPlan, FaultyClient
from simulation.schedules.outcome import Outcome

GIVEN_UP: Final = "batch given up"
REDRIVEN: Final = "batch redriven from the bucket"
TOLD: Final = "record of a group that is gone"
LATE: Final = "late contribution"
EXPIRED: Final = "member expired"
AGAIN: Final = "batch delivered again"
BACK: Final = "entry redriven from the quarantine"

VIEW: Final = Event("view", pk="VIEW#{id}", sk="VIEW", version="version")
_RETENTION: Final = 2
_GIVEN_UP_AFTER: Final = 23 * HOUR
_QUARANTINE_SECONDS: Final = 1000 * DAY
_LANDING: Final = 120.0
_GONE: Final = "retention is over"

VISITORS: Final = Distinct(
    "visitors",
    VIEW,
    pk="SITE#{site}",
    sk="VISITORS#{at:day}",
    member="client",
    retention=timedelta(days=_RETENTION),
)

_Member = tuple[str, str, str]
"""Site, day, client."""


@dataclass(slots=True)
class _Shard:
    """How far a shard was delivered, and what of it lies in the bucket."""

    done: int = 0
    bucket: list[list[Record]] = field(default_factory=list)


class ExpiringMembers:
    """One schedule; its seed decides everything."""

    def __init__(self, seed: int, steps: int = 90) -> None:
        self._seed, self._steps = seed, steps
        self._random = random.Random(seed)
        self._clock = VirtualClock()
        self._table = MemoryTable(self._clock, seed, shards=2)
        self._counters = Counters(self._table.name, client=cast("Any", self._table), clock=self._clock)
        one_by_one(self._counters._table)
        self._faults = FaultPlan(self._random, self._random.choice((0.0, 0.03, 0.1)), 200)
        self._sleepy = self._random.random() < 0.5
        self._shards: defaultdict[str, _Shard] = defaultdict(_Shard)
        self._events: list[dict[str, Any]] = []
        self._deliveries = self._records = 0
        self._reached: Counter[str] = Counter()

    def run(self) -> Outcome:
        for _ in range(self._steps):
            self._random.choice(
                (self._write, self._write, self._write, self._deliver, self._deliver, self._pass, self._redrive)
            )()
            if self._random.random() < 0.3:
                self._expire()
            if self._random.random() < 0.1:
                self._send_back()
        self._faults.budget = 0
        self._settle()
        return Outcome(
            self._seed,
            list(self._wrong()),
            self._deliveries,
            self._records,
            self._faults.injected,
            self._reached,
        )

    # What happens

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
        self._clock.advance(self._random.choice((60, HOUR, 5 * HOUR, 14 * HOUR, DAY, 2 * DAY if self._sleepy else 0)))

    def _expire(self) -> None:
        gone = self._table.expire(self._random.choice((1, 5, None)))
        self._reached[EXPIRED] += sum(item["_type"]["S"] == VISITORS.members.name for item in gone)

    def _deliver(self) -> None:
        name = self._random.choice([shard.id for shard in self._table.stream.shards()])
        shard = self._shards[name]
        records = self._table.stream.read(name, None, 10**6).records
        again = self._random.randint(0, 10) if self._random.random() < 0.3 else 0
        start = max(0, shard.done - again)
        while start < shard.done and self._age(records[start]) > HOUR:
            start += 1
        batch = records[start : shard.done + self._random.choice((1, 3, 10, 100))]
        if not batch:
            return
        self._reached[AGAIN] += start < shard.done
        is_counted = self._handle(name, batch)
        # Lambda gives up on what is too old, counted in part or not at all.
        old = [record for record in records[shard.done :] if self._age(record) > _GIVEN_UP_AFTER]
        if is_counted and self._age(batch[0]) <= _GIVEN_UP_AFTER:
            shard.done = max(shard.done, start + len(batch))
        elif old:
            shard.bucket.append(old)
            shard.done += len(old)
            self._reached[GIVEN_UP] += 1

    def _redrive(self) -> None:
        waiting = [name for name, shard in self._shards.items() if shard.bucket]
        if waiting:
            name = self._random.choice(waiting)
            if self._handle(name, self._shards[name].bucket[0], given_up=True):
                self._shards[name].bucket.pop(0)
                self._reached[REDRIVEN] += 1

    def _send_back(self) -> None:
        for entry in self._counters.quarantined():
            if _GONE in entry.reason:
                self._reached[BACK] += self._counters.redrive(entry)
                return

    def _settle(self) -> None:
        """Count all there is, without faults."""
        before = -1
        while before < (now := sum(1 for _ in self._table.stream.history())):
            before = now
            for name in [shard.id for shard in self._table.stream.shards()]:
                shard = self._shards[name]
                while shard.bucket:
                    self._succeed(name, shard.bucket.pop(0), given_up=True)
                if records := self._table.stream.read(name, None, 10**6).records[shard.done :]:
                    self._succeed(name, records)
                    shard.done += len(records)

    def _succeed(self, shard: str, records: list[Record], *, given_up: bool = False) -> None:
        # An invocation that died may have to be over first.
        for _ in range(3):
            if self._handle(shard, records, given_up=given_up):
                return
            self._clock.advance(HOUR)
        raise AssertionError(f"seed {self._seed}: {shard} cannot be counted")

    def _handle(self, shard: str, records: list[Record], *, given_up: bool = False) -> bool:
        """One invocation of a new process; whether it succeeded."""
        skew = self._random.uniform(-_LANDING, _LANDING)
        client: Any = FaultyClient(self._table, self._faults.draw, self._random, self._postpone, self._clock.advance)
        table = Table(
            self._table.name,
            client,
            clock=lambda: self._clock() + skew,
            sleep=self._clock.advance,
            jitter=self._random.random,
        )
        aggregator = Aggregator(one_by_one(table), VISITORS.parts, quarantine_retention_seconds=_QUARANTINE_SECONDS)
        self._deliveries += 1
        self._records += len(records)
        try:
            report: Report = aggregator.handle({"shardId": shard, "Records": records}, given_up=given_up)
        except (Crashed, Exception):  # noqa: BLE001
            return False
        self._reached[LATE] += report.late
        return True

    def _postpone(self, send: Any) -> None:
        self._clock.call_at(self._clock() + self._random.uniform(0, _LANDING), send)

    def _age(self, record: Record) -> float:
        return self._clock() - float(record["dynamodb"]["ApproximateCreationDateTime"])

    # What must come of it

    def _wrong(self) -> Iterator[str]:
        counts: Counter[_Member] = Counter()
        records: dict[tuple[str, str], Record] = {}
        for shard, record in self._table.stream.history():
            records[shard, padded(record["dynamodb"]["SequenceNumber"])] = record
            for member, number in _members_of(record, in_time=True):
                counts[member] += number
        uncertain: set[_Member] = set()
        # An entry expires with its group, and has told so all the same.
        entries = {entry["sk"]["S"]: entry for entry in _entries(records.values())}
        for entry in entries.values():
            shard, sequence = entry["sk"]["S"].split("#")[:2]
            uncertain |= {member for member, _ in _members_of(records[shard, sequence], in_time=False)}
            self._reached[TOLD] += _GONE in entry["reason"]["S"]
        for site, day in sorted({(site, day) for site, day, _ in (*counts, *uncertain)}):
            here = {member for member in (*counts, *uncertain) if member[:2] == (site, day)}
            certain, told = sum(counts[member] >= 1 for member in here - uncertain), len(here & uncertain)
            # Of a member that came and went, only one of both may be quarantined.
            least, most = certain - told, certain + told
            found = self._counters.get(VISITORS.total, {"site": site, "at:day": day}).measures["distinct"]
            if not least <= found <= most:
                yield f"{site} {day}: {found} visitors, expected {least} to {most}"


def _entries(records: Iterable[Record]) -> Iterator[Mapping[str, Any]]:
    """What was in quarantine at any time."""
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
        elif kind == VISITORS.members.name and not in_time:
            [_, day_text, _, client] = image["sk"]["S"].split("#")
            yield (image["pk"]["S"].removeprefix("SITE#"), day_text, client), sign
