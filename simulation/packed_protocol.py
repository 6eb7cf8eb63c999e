"""The log of chunks alone, small enough to try every interleaving of its writers.

A state holds one log, its writers, the puts that may still land, and what has been told about each job. A step is one
request, a lost acknowledgement, a put that lands late, a writer that gives up or dies, or the expiry of a chunk.
A job that was not answered is done again, under a new batch id; chunks never change, so a cache is a length.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

_T = TypeVar("_T")

RETRACT: Final = 0
"""As an entry's version: the event is taken back."""

GONE: Final = 0
"""As a known version: the event was taken back."""

Told: TypeAlias = Literal["accepted", "duplicate", "retracted", "absent", "too late"]


class Entry(NamedTuple):
    """What a caller asks for: to accept a version of an event, or to retract the event."""

    key: int
    version: int


class Row(NamedTuple):
    """A row of a chunk; the sign 0 is that of a tombstone."""

    sign: int
    key: int
    version: int


class Chunk(NamedTuple):
    """An item of the log; its id is the job and how many calls were made for it."""

    id: tuple[int, int]
    rows: tuple[Row, ...]


Phase: TypeAlias = Literal["put", "unsure", "refused"]
"""To put, to put again since no answer came, or to read after a refusal."""


class Call(NamedTuple):
    """A call under way: what it puts, where, and what it will tell."""

    phase: Phase
    number: int
    chunk: Chunk
    answers: tuple[Told, ...]


class Writer(NamedTuple):
    """A process: how many chunks it knows, and its call under way, if any."""

    known: int = 0
    calls: tuple[Call, ...] = ()


class Job(NamedTuple):
    """How many calls were made for a job, and what the last one told: nothing as long as it was not answered."""

    calls: int = 0
    told: tuple[Told, ...] = ()


class State(NamedTuple):
    """All there is at one moment; `late` are puts that may still land, of the log the first `expired` are gone."""

    log: tuple[Chunk, ...]
    expired: int
    late: tuple[tuple[int, Chunk], ...]
    writers: tuple[Writer, ...]
    jobs: tuple[Job, ...]
    faults: int


Mechanism: TypeAlias = Literal[
    "condition", "batch_id", "anew", "contiguous", "log_values", "earlier", "final", "tombstone"
]
"""What makes the protocol safe; a test goes without one.

`condition`: a chunk is put only where none is. `batch_id`: a writer that was refused looks for its own chunk. `anew`:
it then decides every entry anew. `contiguous`: a log with a gap is not written. `log_values`: what is taken back is as
the log has it. `earlier`: a cold writer reads all chunks. `final`: a retracted event stays so. `tombstone`: to retract
what is unknown is written, too.
"""


class Model:
    """A configuration: what each job asks for, how many writers there are, and how much may go wrong.

    Without `strong_reads`, also the read after a refusal may miss the newest chunks.
    """

    def __init__(
        self,
        jobs: Sequence[Sequence[Entry]],
        writers: int,
        faults: int,
        without: Mechanism | None = None,
        *,
        strong_reads: bool = True,
    ) -> None:
        self._jobs = [tuple(entries) for entries in jobs]
        self._writers = writers
        self._faults = faults
        self._without = without
        self._strong_reads = strong_reads

    def start(self) -> State:
        return State((), 0, (), (Writer(),) * self._writers, (Job(),) * len(self._jobs), self._faults)

    def explore(self) -> tuple[int, State | None]:
        """Visit every reachable state; return how many, and the first one that is wrong."""
        seen = {self.start()}
        fresh = [self.start()]
        while fresh:
            state = fresh.pop()
            if self.is_wrong(state):
                return len(seen), state
            for successor in self.successors(state):
                if successor not in seen:
                    seen.add(successor)
                    fresh.append(successor)
        return len(seen), None

    def walk(self, rng: random.Random) -> State:
        """Take random steps until a wrong state or the end."""
        state = self.start()
        while not self.is_wrong(state) and (steps := list(self.successors(state))):
            state = rng.choice(steps)
        return state

    def is_wrong(self, state: State) -> bool:
        """Whether an answer is untrue, or all is over and a sum is not exact."""
        put = {chunk.id: {row[1:] for row in chunk.rows if row.sign > 0} for chunk in state.log}
        accepted: list[tuple[int, ...]] = []
        for number, (entries, job) in enumerate(zip(self._jobs, state.jobs, strict=True)):
            if job.told:
                told = [tuple(entry) for entry, told in zip(entries, job.told, strict=True) if told == "accepted"]
                if set(told) != put.get((number, job.calls), set()):
                    return True
                accepted += told
        if len(set(accepted)) < len(accepted):
            return True
        if state.late or any(writer.calls for writer in state.writers) or not all(job.told for job in state.jobs):
            return False
        sums = Counter[tuple[int, int]]()
        for chunk in state.log:
            for row in chunk.rows:
                sums[row.key, row.version] += row.sign
        return {group: total for group, total in sums.items() if total} != self._truth(state)

    def successors(self, state: State) -> Iterator[State]:
        """Every state one step away, some more than once."""
        for number, chunk in state.late:
            rest = list(state.late)
            rest.remove((number, chunk))
            after = state._replace(late=tuple(rest))
            yield self._with_put(after, number, chunk) if self._takes(state, number) else after
        if self._may_expire(state):
            yield state._replace(expired=1, writers=(Writer(),) * self._writers, faults=state.faults - 1)
        for writer in {*state.writers}:
            others = list(state.writers)
            others.remove(writer)
            for after, then in self._steps(state, writer):
                yield after._replace(writers=tuple(sorted((*others, then))))

    def _truth(self, state: State) -> dict[tuple[int, int], int]:
        """What the sums must be when all jobs were answered: each event's newest version once, unless retracted."""
        # What is told to be too late may be there, by a call that was not answered.
        there = {chunk.id[0] for chunk in state.log}
        done = [
            entry
            for number, (entries, job) in enumerate(zip(self._jobs, state.jobs, strict=True))
            for entry in entries
            if number in there or "too late" not in job.told
        ]
        retracted = {key for key, version in done if version == RETRACT}
        newest = {entry.key: entry.version for entry in sorted(done) if entry.key not in retracted}
        return dict.fromkeys(newest.items(), 1)

    def _may_expire(self, state: State) -> bool:
        # By then no process that wrote to the bucket is left, nor any request of one.
        idle = not state.late and not any(writer.calls for writer in state.writers)
        return idle and state.faults > 0 and not state.expired and len(state.log) > 1

    def _steps(self, state: State, writer: Writer) -> Iterator[tuple[State, Writer]]:
        """What a writer can do next, or what can befall it."""
        if not writer.calls:
            under_way = {call.chunk.id[0] for other in state.writers for call in other.calls}
            for number, job in enumerate(state.jobs):
                if not job.told and number not in under_way:
                    yield from self._begun(state, writer, number)
            return
        [call] = writer.calls
        if state.faults:
            faulted = state._replace(faults=state.faults - 1)
            yield faulted, Writer()
            if call.phase == "unsure":
                yield faulted, writer._replace(calls=())
        if call.phase == "refused":
            yield from self._read(state, call)
            return
        if not self._takes(state, call.number):
            yield state, writer._replace(calls=(call._replace(phase="refused"),))
            return
        put = self._with_put(state, call.number, call.chunk)
        yield self._answered(put, call.chunk.id, call.answers), Writer(call.number + 1)
        if state.faults:
            unsure = writer._replace(calls=(call._replace(phase="unsure"),))
            yield put._replace(faults=state.faults - 1), unsure
            late = tuple(sorted((*state.late, (call.number, call.chunk))))
            yield state._replace(late=late, faults=state.faults - 1), unsure

    def _begun(self, state: State, writer: Writer, number: int) -> Iterator[tuple[State, Writer]]:
        """A call begins with what is known, or looks, and may see any prefix that is no shorter."""
        job = state.jobs[number]
        begun = state._replace(jobs=_put(state.jobs, number, Job(job.calls + 1)))
        batch_id = (number, job.calls + 1)
        if state.expired and not writer.known:
            if self._without != "contiguous":
                answers: tuple[Told, ...] = tuple("too late" for _ in self._jobs[number])
                yield self._answered(begun, batch_id, answers), writer
            else:
                yield self._decided(begun, 0, batch_id)
            return
        for known in range(writer.known, len(state.log) + 1):
            yield self._decided(begun, known, batch_id)

    def _read(self, state: State, call: Call) -> Iterator[tuple[State, Writer]]:
        """What a writer does with what it reads after a refusal."""
        least = len(state.log) if self._strong_reads else call.number
        for known in range(least, len(state.log) + 1):
            own = any(chunk.id == call.chunk.id for chunk in state.log[call.number : known])
            if own and self._without != "batch_id":
                yield self._answered(state, call.chunk.id, call.answers), Writer(known)
            elif self._without == "anew":
                yield state, Writer(known, (call._replace(phase="put", number=known),))
            else:
                yield self._decided(state, known, call.chunk.id)

    def _decided(self, state: State, known: int, batch_id: tuple[int, int]) -> tuple[State, Writer]:
        """Decide each entry of a job from the first chunks of the log; answer at once if nothing is to be put."""
        first = max(0, known - 1) if self._without == "earlier" else 0
        versions: dict[int, int] = {}
        for chunk in state.log[first:known]:
            self._learn(versions, chunk.rows)
        rows, answers = [], []
        for entry in self._jobs[batch_id[0]]:
            decided, told = self._decide(entry, versions.get(entry.key))
            self._learn(versions, decided)
            rows += decided
            answers.append(told)
        if not rows:
            return self._answered(state, batch_id, tuple(answers)), Writer(known)
        return state, Writer(known, (Call("put", known, Chunk(batch_id, tuple(rows)), tuple(answers)),))

    def _decide(self, entry: Entry, known: int | None) -> tuple[list[Row], Told]:
        key, version = entry
        if version == RETRACT:
            if known is None:
                return [] if self._without == "tombstone" else [Row(0, key, 0)], "absent"
            return ([self._minus(entry, known)], "retracted") if known else ([], "absent")
        if known is None:
            return [Row(1, key, version)], "accepted"
        if known == GONE or known >= version:
            return [], "duplicate"
        return [self._minus(entry, known), Row(1, key, version)], "accepted"

    def _minus(self, entry: Entry, known: int) -> Row:
        # A caller knows at best which version came before its own.
        return Row(-1, entry.key, entry.version - 1 if self._without == "log_values" else known)

    def _learn(self, versions: dict[int, int], rows: Sequence[Row]) -> None:
        for row in rows:
            if row.sign > 0:
                versions[row.key] = row.version
            elif self._without == "final":
                versions.pop(row.key, None)
            else:
                versions[row.key] = GONE

    def _takes(self, state: State, number: int) -> bool:
        """Whether a put of that number succeeds."""
        return number >= len(state.log) or number < state.expired or self._without == "condition"

    def _with_put(self, state: State, number: int, chunk: Chunk) -> State:
        if number < state.expired:
            # In the place of one that is gone, but was counted.
            return state._replace(log=(*state.log, chunk))
        return state._replace(log=(*state.log[:number], chunk, *state.log[number + 1 :]))

    def _answered(self, state: State, batch_id: tuple[int, int], answers: tuple[Told, ...]) -> State:
        number, calls = batch_id
        return state._replace(jobs=_put(state.jobs, number, Job(calls, answers)))


def _put(row: tuple[_T, ...], index: int, value: _T) -> tuple[_T, ...]:
    return (*row[:index], value, *row[index + 1 :])
