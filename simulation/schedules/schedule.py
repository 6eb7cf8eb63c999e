"""A schedule: writes, deliveries, splits and faults interleaved by a seed, then the counts compared with the truth."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._declarations import Event, Packed
from dynamodb_counters._quarantine.quarantine import Quarantined, list_quarantined, redrive
from dynamodb_counters._table import Table
from simulation.aws.sigv4 import LATEST
from simulation.faults.faulty_client import FaultPlan
from simulation.oracle.specs import SPECS, Spec, declarations, packed, sourced
from simulation.oracle.truth import entry_of, is_image, is_waiting
from simulation.schedules import coverage
from simulation.schedules.apart import SHAPES, Apart, OtherWriters
from simulation.schedules.audit import Audit
from simulation.schedules.backend import MakeBackend, MemoryBackend
from simulation.schedules.coverage import Outcome, WrongCountError
from simulation.schedules.deliveries import HOUR, MAX_AGE, Deliveries, drawn
from simulation.schedules.deployments import Deployments
from simulation.schedules.function import Function
from simulation.schedules.housekeeping import housekeeping
from simulation.schedules.kinds import Kind
from simulation.schedules.packed_writers import PackedWriters
from simulation.schedules.sandbox import QUARANTINE_SECONDS
from simulation.schedules.spoiling import Spoiler
from simulation.schedules.writers import Writers

# A run takes some hundred; one that takes this many goes round in circles.
_MOST_STEPS: Final = 200_000
_MOST_DEPLOYMENTS: Final = 8

_BACKLOG_SECONDS: Final = 16 * HOUR
"""Beyond this, nothing fails on purpose: the stream forgets after 24 hours, and then no count can be right."""

_CHUNKS_EXPIRE_AFTER: Final = 1.9 * HOUR
"""Bucket, retention and the margin of eager housekeeping; windows still count them."""


class Schedule:
    """A run of the whole system, step by step decided by a seed: of minutes, or of hours and days."""

    def __init__(self, seed: int, make_backend: MakeBackend = MemoryBackend, kind: Kind | None = None) -> None:
        rng = random.Random(seed)
        self._seed = seed
        self._random = rng
        self._backend = make_backend(rng)
        self._kind = kind = kind or Kind.draw(rng)
        among: Sequence[Spec] = packed(SPECS, _layout(rng)) if kind.packed else SPECS
        if kind.apart:
            self._backend = apart = Apart(self._backend, shape := rng.choice(SHAPES), rng)
            among = sourced(SPECS, shape.source())
        self._deployments = Deployments(rng, rng.sample(among, rng.randint(2, 4)), among)
        # Entries of the quarantine live for two weeks.
        keeps_entries = kind.poison or kind.mended or kind.redeclared or kind.spoiled
        self._pauses = 0 if keeps_entries or not kind.hours else 2
        books, operations = (12, rng.randint(24, 48)) if kind.hours else (4, rng.randint(5, 24))
        self._faults = FaultPlan(
            rng,
            rng.choice((0.0, 0.02, 0.1, 0.3)),
            rng.randint(0, 50 if kind.hours or kind.packed else 25),
            registrations=rng.choice((0.0, 0.3)),
        )
        self._writers = Writers(self._backend, rng, operations, kind.poison, books)
        if kind.apart:
            self._writers = OtherWriters(apart, rng, operations, kind.poison, books)
        if isinstance(event := among[0].declaration.source, Event) and event.packed is not None:
            self._writers = PackedWriters(self._backend, rng, self._faults, event, operations, kind.poison, books)
        if kind.apart or kind.hours:
            self._register()
        self._spoiler = Spoiler(self._backend, rng)
        self._forgets = rng.random() < 0.5
        settings = drawn(rng, MAX_AGE)
        self._failing = rng.choice(self._deployments.current).name if kind.mended else ""
        self._function = Function(
            self._backend, rng, self._faults, declarations(self._deployments.current), self._failing
        )
        self._deliveries = Deliveries(self._backend, rng, self._faults, self._function, settings)
        self._reached: Counter[str] = self._function.reached

    def _register(self) -> None:
        """Register names as complete, as they are when the stream is young; a source table, too, is empty by now."""
        table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
        declared = declarations(self._deployments.current)
        Aggregator(table, declared, quarantine_retention_seconds=QUARANTINE_SECONDS).handle({})

    def run(self) -> Outcome:
        with housekeeping(eager=self._kind.eager):
            return self._run()

    def _run(self) -> Outcome:
        """Run until all is delivered and nothing runs any more; then redrive what waits, and go on."""
        for left in range(self._pauses, 0, -1):
            self._drain(self._writers.left * left // (left + 1))
            self._let_pass(self._random.choice((2.1, 8)) * 24 * HOUR)
            self._deliveries.create_mapping()
        self._drain()
        if self._kind.packed and self._kind.eager:
            self._let_expire()
        self._mend()
        audit = self._audit()
        wrong = self._writers.wrong() + audit.wrong()
        self._reached += audit.reached + self._writers.reached
        if audit.waiting:
            audit = self._redrive()
            wrong += audit.wrong()
        if not self._kind.spoiled:
            wrong += audit.wrong_beside(self._writers.rows())
        if given_up := self._deliveries.given_up:
            wrong.append(f"{given_up} records expired before they were counted")
        self._reached[coverage.FLOOD] += self._writers.flooded
        reached = self._reached + coverage.of_records(self._backend.history())
        self._backend.drop()
        mappings = self._deliveries.mappings
        return Outcome(
            self._seed,
            wrong + self._function.standstills,
            sum(mapping.deliveries for mapping in mappings),
            sum(mapping.delivered for mapping in mappings),
            self._faults.injected,
            reached,
            self._function.paused,
            self._writers.accepts,
        )

    def _let_expire(self) -> None:
        """Have TTL delete some of the chunks, and count what that takes back."""
        self._let_pass(_CHUNKS_EXPIRE_AFTER)
        self._backend.expire(self._random.randint(1, 20))
        self._drain()

    def _audit(self) -> Audit:
        spoiled = self._spoiler
        return Audit(self._backend, self._deployments.made, spoiled.groups, spoiled.entries, self._failing)

    def _redrive(self) -> Audit:
        """Redrive what waits, which waits again: a name keeps the definition that cannot count it."""
        for _ in range(1 if self._kind.spoiled else 2):
            waiting = self._quarantined()
            table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
            for record in self._random.choices(waiting, k=2 * len(waiting)) + waiting if waiting else ():
                redrive(table, record)
            self._drain()
        audit = self._audit()
        self._reached[coverage.AGAIN] += audit.waiting
        return audit

    def _drain(self, still_to_write: int = 0) -> None:
        draw = self._random.random
        for _ in range(_MOST_STEPS):
            if self._writers.left > still_to_write and draw() < 0.2:
                self._writers.write()
                if self._kind.hours and draw() < 0.3:
                    self._let_pass(self._random.choice((0.4, 1, 4, 13)) * HOUR)
            elif self._writers.is_busy and draw() < 0.4:
                self._writers.step()
            elif draw() < 0.25:
                self._deliveries.start()
            elif draw() < 0.06:
                self._disturb()
            elif self._deliveries.step() is not None:
                if self._function.fails_for and draw() < 0.5 and self._in_doubt():
                    self._mend()
            elif (
                not self._function.running
                and not self._backend.clock.hurry(self._random)
                and self._writers.left <= still_to_write
                and not self._writers.is_busy
                and self._deliveries.drained()
            ):
                return
        raise AssertionError(f"seed {self._seed} does not end")

    def _disturb(self) -> None:
        """Do something outside of any store call."""
        kind, deliveries = self._kind, self._deliveries
        choices: list[Callable[[], object]] = [*[deliveries.time_out] * 3, deliveries.rewind, self._land]
        choices += [self._wait, self._wait, *([deliveries.split] if self._writers.left else [])]
        if kind.hours:
            choices += [self._deploy]
        if kind.redeclared:
            choices += [self._redeclare, self._redeclare, self._redeclare, self._redeclare, self._wait]
        if kind.hours:
            choices += [deliveries.replay, self._fail_for_hours]
        if kind.crowded:
            choices += [deliveries.crowd]
        if kind.spoiled:
            choices += [self._spoil, self._spoil, self._spoil]
        self._random.choice(choices)()

    def _redeclare(self) -> None:
        """Deploy something else; invocations of the one before run on, and some of its processes are invoked again."""
        if self._random.random() < 0.5 and len(self._deployments.made) < _MOST_DEPLOYMENTS:
            self._reached[coverage.REDECLARED] += 1
            self._function.deploy(declarations(self._deployments.change()), stragglers=self._random.random() < 0.5)
            self._deliveries.abandon(0.3)

    def _mend(self) -> None:
        """Deploy code that counts what the former could not, once no request of that is on its way."""
        if self._function.fails_for and not self._function.running:
            self._let_pass(LATEST + 1)
            self._function.mend()
            self._reached[coverage.MENDED] += self._in_doubt()

    def _in_doubt(self) -> bool:
        """Whether something is aside of a batch that is delivered again."""
        waiting = [entry_of(item["sk"]["S"]) for item in self._backend.items() if is_waiting(item)]
        through = self._deliveries.acknowledged
        return any(sequence > through.get(shard, "").zfill(40) for shard, sequence, _ in waiting)

    def _spoil(self) -> None:
        if self._faults.budget > 0 and (kind := self._spoiler.spoil()) is not None:
            self._faults.strikes(f"{coverage.SPOILED}: {kind}")

    def _land(self) -> None:
        self._backend.clock.hurry(self._random)

    def _wait(self) -> None:
        running = self._function.running
        if running and self._random.random() < 0.4:
            # Into the last moments of an invocation.
            left = self._random.choice(running).deadline - self._backend.clock.now
            self._let_pass(max(0.0, left - self._random.choice((5, 14, 40))))
        else:
            self._let_pass(self._random.choice((1, 30, 59, 61, 600, 1300)))

    def _deploy(self) -> None:
        if self._random.random() < 0.5:
            self._reached[coverage.DEPLOYED] += 1
            self._function.deploy(declarations(self._deployments.reorder()))
            self._deliveries.abandon(0.5)

    def _fail_for_hours(self) -> None:
        self._deliveries.fail_for_hours((1, 5, 19))

    def _let_pass(self, seconds: float) -> None:
        """Let time pass, but only as much as the records that wait have left; replace shards as AWS does."""
        clock = self._backend.clock
        if self._kind.hours:
            left = self._deliveries.oldest_waiting() + _BACKLOG_SECONDS - clock.now
            if seconds > left:
                self._deliveries.recover()
                seconds = left
        if seconds <= 0:
            return
        clock.advance(seconds)
        if seconds > HOUR and self._writers.left and self._random.random() < 0.7:
            self._reached[coverage.ROLLED_OVER] += 1
            self._backend.roll_over()
        if self._forgets:
            self._backend.trim(clock.now - 24 * HOUR)

    def _quarantined(self) -> list[Quarantined]:
        """Entries to redrive."""
        table = Table(self._backend.name, self._backend.client, clock=self._backend.clock)
        waiting = list_quarantined(table, redriven=False)
        return [entry for entry in waiting if is_image(entry.key[1])]


def _layout(rng: random.Random) -> Packed:
    return Packed(
        "at",
        timedelta(minutes=rng.choice((1, 10))),
        parts=rng.choice((1, 1, 3)),
        partition_by=rng.choice((None, "book")),
        tenant=rng.choice((None, None, "book")),
        chunk_bytes=1024,
    )


def check(seed: int, make_backend: MakeBackend = MemoryBackend, engine: str = "memory") -> Outcome:
    """Run one schedule; raise `WrongCountError` if a count is not exact."""
    outcome = Schedule(seed, make_backend).run()
    if outcome.wrong:
        raise WrongCountError(outcome, engine)
    return outcome
