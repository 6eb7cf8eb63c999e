"""Writers of packed events: processes with caches of their own, that die, are stopped, and try again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Event
from dynamodb_counters._writes.accept import accept, accept_many, retract
from dynamodb_counters.errors import CountersError
from simulation.aws.sigv4 import SKEW_SECONDS
from simulation.faults.actors import Actor, Crashed
from simulation.faults.faulty_client import Fault, FaultPlan
from simulation.faults.hooked_client import StaleReads
from simulation.faults.process import Process
from simulation.oracle.chunks import EventKey, Held, Logs, event_key, plain_values, read_logs
from simulation.oracle.specs import Values
from simulation.schedules import coverage
from simulation.schedules.backend import Backend
from simulation.schedules.sandbox import LONGEST_INVOCATION
from simulation.schedules.writers import Writers

_PROCESSES: Final = 4
_MOST_WAITED: Final = 4 * 3600
_FINAL: Final = ("accepted", "duplicate", "too_late", "retracted", "absent")


@dataclass(eq=False)
class Entry:
    """An event to accept or to retract, what was answered, and when; `unanswered` calls may have been done or not."""

    values: dict[str, Any]
    retracts: bool = False
    unanswered: int = 0
    told: str = ""
    at: float = 0.0


class _Writer(Process):
    """A process with what it remembers of the table, and its call under way."""

    def __init__(self, backend: Backend, rng: random.Random) -> None:
        client = StaleReads(backend.client, rng)
        super().__init__(client, backend.name, backend.clock, rng)
        self.entries: list[Entry] = []
        self.is_disturbed = False


class PackedWriters(Writers):
    """Writes packed events by several processes, and knows what the logs must hold."""

    def __init__(  # noqa: PLR0917
        self,
        backend: Backend,
        rng: random.Random,
        faults: FaultPlan,
        event: Event,
        operations: int,
        poison: float = 0.0,
        books: int = 4,
    ) -> None:
        super().__init__(backend, rng, operations, poison, books)
        self._faults = faults
        self._event = event
        self._processes = [_Writer(backend, rng) for _ in range(rng.randint(2, _PROCESSES))]
        self._waiting: list[list[Entry]] = []
        self._all: list[Entry] = []
        self._known: list[Values] = []
        self._made = 0
        self._waited = 0
        self._wrong: list[str] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting) or any(process.call is not None for process in self._processes)

    def write(self) -> None:
        """Have something written; several calls are under way at a time."""
        self.left -= 1
        acts = {self._new: 6, self._repeat: 4, self._retract: 3, self._expire: 2}
        if self._poison and not self.flooded:
            acts[self._flood] = 1
        [act] = self._random.choices(list(acts), list(acts.values()))
        act()
        self._begin()

    def step(self) -> None:
        running = [process for process in self._processes if process.call is not None]
        if running and (not self._waiting or self._random.random() < 0.7):
            self._go_on(self._random.choice(running))
        else:
            self._begin()

    def rows(self) -> list[tuple[Values, int, bool]]:
        return self.logs().rows

    def logs(self) -> Logs:
        return read_logs(self._backend.history())

    def wrong(self) -> list[str]:
        """Differences of the logs from what was asked for and answered."""
        logs = self.logs()
        self.reached[coverage.CHUNKS] = logs.chunks
        self.reached[coverage.EXPIRED_EVENTS] = sum(by_ttl for _, _, by_ttl in logs.rows)
        self.reached[coverage.TAKEN_BACK] = sum(sign < 0 for _, sign, _ in logs.rows)
        wrong = self._wrong + logs.wrong
        of_event: dict[EventKey, list[Entry]] = {}
        for entry in self._all:
            of_event.setdefault(event_key(entry.values), []).append(entry)
        for key, entries in of_event.items():
            late = self._too_late(key) - SKEW_SECONDS
            wrong += [f"event {key}: {text}" for text in _untrue(entries, logs.events.get(key, Held()), late)]
        wrong += [f"event {key} was made up" for key in logs.events.keys() - of_event.keys()]
        return wrong + self._misread(logs)

    def _misread(self, logs: Logs) -> list[str]:
        """Differences of reads from the logs."""
        now = self._backend.clock.now
        counters = Counters(self._backend.name, client=self._backend.client, clock=self._backend.clock)
        assert self._event.packed is not None
        books = {entry.values["book"] for entry in self._all}
        tenants = [{"book": book} for book in books] if self._event.packed.tenant else [{}]
        read = [
            plain_values(values)
            for tenant in tenants
            for values in counters.events(self._event, tenant, consistent=True)
        ]
        live = [held.values for key, held in logs.events.items() if held.is_live and now < self._too_late(key)]
        return [f"read back, but not there: {values}" for values in read if values not in live] + [
            f"there, but not read back: {values}" for values in live if values is None or read.count(dict(values)) != 1
        ]

    def _too_late(self, key: EventKey) -> float:
        """When an event begins to be too late."""
        packed, retention = self._event.packed, self._event.retention
        assert packed is not None
        assert retention is not None
        bucket = packed.bucket.total_seconds()
        return (key[-1] // bucket + 1) * bucket + retention.total_seconds()

    def _new(self) -> None:
        draw = self._random
        batch = [self._trade(*draw.choice(self._keys)) for _ in range(draw.choice((1, 1, 2, 4, 12)))]
        if draw.random() < 0.3:
            batch += draw.choices(batch, k=2)
        self._ask([Entry(values) for values in batch])

    def _repeat(self) -> None:
        """Send again what was sent, perhaps with other values, or among others."""
        if not self._known:
            return
        again = [dict(values) for values in self._random.choices(self._known, k=self._random.choice((1, 3)))]
        self._ask([Entry(values if self._random.random() < 0.7 else self._other(values)) for values in again])

    def _retract(self) -> None:
        draw = self._random
        # Known by its key only; now and then before it comes.
        values = self._other(draw.choice(self._known)) if self._known else {}
        if not values or draw.random() < 0.2:
            values = self._trade(*draw.choice(self._keys))
        self._ask([Entry(values, retracts=True)])

    def _flood(self) -> None:
        self.flooded = True
        batch = [self._trade("flood", number) for number in range(self._random.randint(10, 25))]
        for values in batch:
            self._poisoned(values)
        self._ask([Entry(values) for values in batch])

    def _expire(self) -> None:
        seconds = self._random.choice((60, 900, 4000, 7500))
        self._waited += seconds
        # No more: a stream that is not read for a day forgets.
        if self._waited < _MOST_WAITED:
            self._backend.clock.advance(seconds)
        self._backend.expire(self._random.randint(1, 20))

    def _trade(self, book: str, number: int) -> dict[str, Any]:
        draw = self._random
        values = self._values(book, number)
        now = int(self._backend.clock())
        # Few moments, so that events meet in a bucket and two may differ by the moment only.
        values["at"] = now // 300 * 300 - draw.choice((0, 0, 0, 0, 0, 0, 300, 300, 600, 1800, 7200))
        if draw.random() < 0.2:
            values["note"] = f"{draw.getrandbits(2000):x}"
        self._made += 1
        return {**values, "ref": self._made}

    def _other(self, values: Values) -> dict[str, Any]:
        """Other values of the same event."""
        kept = {name: values[name] for name in ("book", "id", "at")}
        return {**self._trade(values["book"], values["id"]), **kept}

    def _ask(self, entries: list[Entry]) -> None:
        self._all += entries
        self._known += [entry.values for entry in entries]
        self._waiting.append(entries)

    def _begin(self) -> None:
        """Have an idle process work on what waits."""
        idle = [process for process in self._processes if process.call is None]
        if not idle or not self._waiting:
            return
        process = self._random.choice(idle)
        process.entries = self._waiting.pop(self._random.randrange(len(self._waiting)))
        process.is_disturbed = False
        process.call = Actor(self._call(process))

    def _call(self, process: _Writer) -> Callable[[], list[str]]:
        entries, table, event = process.entries, process.table, self._event
        if entries[0].retracts:
            return lambda: ["retracted" if retract(table, event, entries[0].values) else "absent"]
        if len(entries) == 1 and self._random.random() < 0.5:
            return lambda: [accept(table, event, entries[0].values).status]
        return lambda: [outcome.status for outcome in accept_many(table, event, [entry.values for entry in entries])]

    def _go_on(self, process: _Writer) -> None:
        call = process.call
        assert call is not None
        fault = Fault.NONE
        if not call.waiting:
            process.deadline = self._backend.clock.now + LONGEST_INVOCATION
        elif self._backend.clock.now >= process.deadline:
            fault = self._random.choice((Fault.CRASH_BEFORE, Fault.CRASH_DURING))
        else:
            fault = self._faults.draw(call.waiting)
        process.is_disturbed |= fault is not Fault.NONE
        call.step(fault)
        if call.done:
            self._ended(process, call)

    def _ended(self, process: _Writer, call: Actor) -> None:
        process.call, now = None, self._backend.clock.now
        self.accepts += len(process.entries)
        if isinstance(call.error, ClientError | BotoCoreError | CountersError | TimeoutError | Crashed):
            told = ["failed"] * len(process.entries)
        elif call.error is not None:
            raise call.error
        else:
            told = call.result
        if "failed" in told and not process.is_disturbed:
            self._wrong.append(f"a call without a fault failed: {call.error}")
        for entry, status in zip(process.entries, told, strict=True):
            if status in _FINAL:
                entry.told, entry.at = status, now
                self.reached[coverage.ANSWERED + status] += 1
            else:
                entry.unanswered += 1
                self.reached[coverage.UNANSWERED] += 1
                if status != "failed":
                    self._wrong.append(f"{status}: {entry.values}")
        if left := [entry for entry in process.entries if not entry.told]:
            self._waiting.append(left)
        if isinstance(call.error, Crashed) or self._random.random() < 0.05:
            self._processes[self._processes.index(process)] = _Writer(self._backend, self._random)


def _untrue(entries: Sequence[Entry], held: Held, late: float) -> Iterator[str]:
    """False answers about an event; from `late` on it may have been too late."""
    yield from _untrue_accepts([entry for entry in entries if not entry.retracts], held)
    retractions = [entry for entry in entries if entry.retracts]
    if sum(entry.told == "retracted" for entry in retractions) > (held.values is not None):
        yield "retracted more often than it was there"
    if not held.is_gone and any(entry.told == "retracted" or entry.at < late for entry in retractions if entry.told):
        yield "retracted, but still there"
    if held.is_gone and not any(entry.told or entry.unanswered for entry in retractions):
        yield "gone, but never retracted"
    if any(entry.told == "too_late" and entry.at < late for entry in entries):
        yield f"answered as too late before {late}"


def _untrue_accepts(entries: Sequence[Entry], held: Held) -> Iterator[str]:
    accepted = [entry.values for entry in entries if entry.told == "accepted"]
    if untrue := [values for values in accepted if values != held.values]:
        yield f"answered as accepted, but not there: {untrue}"
    if len(accepted) > 1:
        yield f"accepted {len(accepted)} times"
    asked = [entry.values for entry in entries if entry.told == "accepted" or entry.unanswered]
    if held.values is not None and held.values not in asked:
        yield f"there, but never answered as accepted: {held.values}"
    if held.values is None and not held.is_gone and any(entry.told == "duplicate" for entry in entries):
        yield "answered as a duplicate, but not there"
