"""Recordings as traces that TLC can compare with the specification."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._commit import batch
from dynamodb_counters._commit.batch import intake
from dynamodb_counters._commit.checkpoints import Checkpoint, Checkpoints
from dynamodb_counters._commit.commit import Committer
from dynamodb_counters._control.counted_names import CountedNames, plan_of
from dynamodb_counters._control.registry import Entry, Registry
from dynamodb_counters._fold import updates
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.bookkeeping import sequence_of
from dynamodb_counters._timeline.tiers import HOUR, MINUTE
from dynamodb_counters.exactly_once import Watermark, update_request
from simulation.aws.sigv4 import LATEST
from simulation.clock import EPOCH
from simulation.pairs.function import LONGEST_INVOCATION
from simulation.pairs.schedule import PairSchedule
from simulation.pairs.swarm import Swarm
from simulation.pairs.truth import is_entry
from simulation.specification.explorations import DEADLOCK, Verdict, check
from simulation.specification.recorder import Event, Recording, recorded

_commit = Committer.commit
_advance = Checkpoints.advance


def unguarded(*arguments: Any, is_common: bool) -> dict[str, Any]:
    """Return the request of an update, whatever the item has counted."""
    return update_request(*arguments[:4], is_common=is_common)


def _all_but_one(self: Committer, deltas: Any, part: Any) -> Any:
    return _commit(self, deltas[1:], part)


def _stamped_by_clock(self: Checkpoints, shard: str, last: str, _: float) -> float:
    return _advance(self, shard, last, self._table.clock())


def _heedless(self: batch.Aggregator, event: Any, deadline: float) -> batch.Report:
    changes = batch.intake(event["Records"], self._origins)
    report, shard = batch.Report(records=len(changes)), self._shard(event)
    self._refresh(report)
    self._quarantine.leave_aside(shard, changes)
    self._count(shard, changes, deadline, report)
    return report


BROKEN: Final[dict[str, Callable[[], AbstractContextManager[Any]]]] = {
    "updates have no condition": lambda: patch.object(updates, "update_request", unguarded),
    "the last item of a batch is not committed": lambda: patch.object(Committer, "commit", _all_but_one),
    "a checkpoint settles at once": lambda: patch.object(
        Checkpoint, "settled_through", lambda self, _: self.applied_through
    ),
    "stamps are the clock's, not the deadline": lambda: patch.object(Checkpoints, "advance", _stamped_by_clock),
    "names that wait are folded": lambda: patch.object(
        CountedNames, "_plan", lambda self, _: Plan(self.registry.declarations)
    ),
    "a record is folded by the code that delivers it": lambda: patch.object(
        CountedNames, "_plan", lambda self, _: Plan(self._own)
    ),
    "checkpoints are not heeded": lambda: patch.object(batch.Aggregator, "_batch", _heedless),
}
"""Contexts in which handlers are broken, by what is wrong."""


MODULE: Final = "CountersTrace"
SETTLING: Final = 28 * MINUTE
"""After which a checkpoint may have settled; not what the handler takes for it, which is to be compared."""
KEPT: Final = 24 * HOUR
"""After which a watermark may go, by the age of its record: no invocation begins to count one that is older by then."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One schedule as constants of the specification."""

    seed: int
    shards: int
    items: int
    processes: int
    streams: str
    log: list[str]


def trace_of(seed: int) -> Trace:
    """Run a schedule and convert what its handlers did."""
    schedule = PairSchedule(seed, swarm=Swarm.draw(seed, "traced"))
    with recorded() as recording:
        # Some names are registered before the schedule runs.
        entries = (Entry.of(item) for item in schedule._engine.backend.items() if is_entry(item))
        recording.entries |= {entry.name: entry for entry in entries}
        schedule.run()
    return _Conversion(recording).trace(seed)


def compare(traces: Sequence[Trace], seconds: float = 900) -> tuple[Verdict, str | None]:
    """Check traces against the specification in one run; return which step of which trace it does not allow."""
    configuration = _configuration(traces)
    bodies = ",\n".join(f"[streams |-> {trace.streams},\n log |-> {_sequence(trace.log)}]" for trace in traces)
    module = f"---- MODULE CountersTraces ----\nEXTENDS Counters\nTraces == <<\n{bodies}\n>>\n====\n"
    verdict = check(MODULE, configuration, {"CountersTraces.tla": module}, seconds, compiled_in_haste=True)
    return verdict, rejected(verdict, [(trace.seed, trace.log) for trace in traces])


def rejected(verdict: Verdict, logs: Sequence[tuple[int, Sequence[str]]]) -> str | None:
    """The step of a log, with its seed, that is not allowed; None if all are."""
    if verdict.violated is None:
        return None
    last = dict(line[3:].split(" = ", 1) for line in verdict.trace[-1].splitlines() if line.startswith("/\\ "))
    (seed, log), step = logs[int(last["trace"]) - 1], int(last["step"])
    # An invariant is violated by the step before; a deadlock means that the next one is not allowed.
    number = step if verdict.violated == DEADLOCK else step - 1
    what = "is not allowed" if verdict.violated == DEADLOCK else f"violates {verdict.violated}"
    return f"seed {seed}: step {number} of {len(log)} {what}: {log[number - 1]}"


def _configuration(traces: Sequence[Trace]) -> str:
    constants = {
        "None": "= None",
        "Items": f"= {_numbers(max(trace.items for trace in traces))}",
        "Shards": f"= {_numbers(max(trace.shards for trace in traces))}",
        "Processes": f"= {_numbers(max(trace.processes for trace in traces))}",
        "Streams": "<- NoRecords",
        "Parents": "<- NoParents",
        "NameOf": "<- OneForAll",
        "Features": '= {"checkpoints", "copies", "windows", "pruning", "parts"}',
        "Without": "= {}",
        "Timeout": f"= {LONGEST_INVOCATION:.0f}",
        "Landing": f"= {LATEST + 1:.0f}",
        "Fresh": f"= {FRESH}",
        "Settling": f"= {SETTLING:.0f}",
        "MaxAge": "= 0",
        "KeptFor": f"= {KEPT:.0f}",
        "Clock": "<- InStep",
    }
    lines = ["INIT TraceInit", "NEXT TraceNext", "VIEW Position", "CHECK_DEADLOCK TRUE"]
    lines += ["INVARIANTS AtMostOnce", "CONSTANTS"]
    return "\n".join([*lines, *(f"  {name} {value}" for name, value in constants.items())]) + "\n"


class _Conversion:
    """Numbers for the shards, records, items and processes of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._records = {shard: sorted(records) for shard, records in recording.records.items()}
        self._shards = {shard: number for number, shard in enumerate(self._records, start=1)}
        self._numbers = {
            shard: {sequence: number for number, sequence in enumerate(sequences, start=1)}
            for shard, sequences in self._records.items()
        }
        self._items: dict[tuple[str, str], int] = {}
        self._slots = slots(recording.events)
        self._begun: set[int] = set()
        self._plan = plan_of(Registry(entries=recording.entries))
        self._named = {Watermark(shard).name: shard for shard in self._shards}

    def trace(self, seed: int) -> Trace:
        log = list(self._log())
        streams = [self._stream(shard) for shard in self._shards]
        return Trace(
            seed,
            max(len(streams), 1),
            max(len(self._items), 1),
            max(self._slots.values(), default=1),
            _sequence(streams),
            log,
        )

    def _stream(self, shard: str) -> str:
        number, rows = self._shards[shard], []
        for sequence in self._records[shard]:
            record = self._recording.records[shard][sequence]
            items, aside = self._effect(shard, record)
            event = f"<<{number}, {self._numbers[shard][sequence]}>>"
            rows.append(_record(event=event, items=items, aside=aside))
        return _sequence(rows)

    def _effect(self, shard: str, record: Any) -> tuple[str, str]:
        """In which items a record counts, and which of its images go to quarantine."""
        folded = fold(self._plan, intake([record]))
        keys = (Update(delta.layout, delta.group, {}, shard).key for delta in folded.deltas)
        items = sorted({self._item((key["pk"], key["sk"])) for key in keys})
        return _set(items), _texts(sorted({image.image_name for image in folded.unfoldable}))

    def _log(self) -> Iterator[str]:
        now = 0
        for index, event in enumerate(self._recording.events):
            if math.floor(event["now"]) > now:
                now = math.floor(event["now"])
                yield _record(op='"time"', now=str(now))
            yield from self._steps(index, event)

    def _steps(self, index: int, event: Event) -> Iterator[str]:
        op, process = event["op"], str(self._slots[event["process"]])
        if op == "begin":
            yield from self._begin(index, event, process)
        elif op == "end":
            if self._began(index, event) is not None:
                yield _record(op='"end"', process=process, how=f'"{self._how(index, event)}"')
        elif op == "expiry landed":
            for key in event["keys"]:
                if key in self._items:
                    yield _record(op='"expired"', item=str(self._item(key)))
        elif op == "read sent":
            return
        else:
            yield self._step(event, op, process)

    def _step(self, event: Event, op: str, process: str) -> str:
        shard: str = event["shard"]
        fields = {"op": f'"{op}"', "process": process, "shard": str(self._shards[shard])}
        convert: dict[str, Callable[[Any], str]] = {
            **dict.fromkeys(("deadline", "at"), lambda seconds: str(math.floor(seconds))),
            "accepted": lambda truth: str(truth).upper(),
            **dict.fromkeys(
                ("first", "last", "through", "mark", "sequence"),
                lambda number: str(self._number(shard, number)),
            ),
            "found": lambda fields: self._checkpoint(shard, fields),
            "image": lambda name: f'"{name}"',
            "item": lambda key: str(self._item(key)),
            "removed": self._removed,
        }
        fields |= {name: convert[name](value) for name, value in event.items() if name in convert}
        return _record(**fields)

    def _begin(self, index: int, event: Event, process: str) -> Iterator[str]:
        shard, last = event["shard"], self._number(event["shard"], event["last"])
        if not last:
            return
        begin = last if event["first"] is None else self._number(shard, event["first"]) - 1
        yield _record(
            op='"begin"',
            process=process,
            shard=str(self._shards[shard]),
            begin=str(begin),
            last=str(last),
            deadline=str(math.floor(event["deadline"])),
            cold=str(event["process"] not in self._begun).upper(),
        )
        self._begun.add(event["process"])
        mine = [other.get("how", other["op"]) for other in self._invocation(index)]
        # An empty invocation within a window, or after one that has committed nothing, uses no checkpoint.
        idle = ("read sent", "failed", "crashed", *(("finished",) if event["first"] is None else ()))
        if mine and mine[0] not in idle:
            yield _record(op='"copy"', process=process)

    def _invocation(self, index: int) -> list[Event]:
        """Events that the invocation that begins there logged next, until its end."""
        begun, found = self._recording.events[index], []
        for event in self._recording.events[index + 1 :]:
            # A request that lands late belongs to no invocation that runs.
            if event["process"] == begun["process"] and not event["op"].endswith(" landed"):
                found.append(event)
                if event["op"] == "end":
                    break
        return found

    def _began(self, index: int, event: Event) -> Event | None:
        for other in reversed(self._recording.events[:index]):
            if other["process"] == event["process"] and other["op"] == "begin":
                return other if self._number(other["shard"], other["last"]) else None
        return None

    def _how(self, index: int, event: Event) -> str:
        began = self._began(index, event)
        assert began is not None
        # The end of a window needs no acknowledgment.
        return "failed" if event["how"] == "finished" and began["first"] is None else str(event["how"])

    def _number(self, shard: str, sequence: str | None) -> int:
        """Number of a record; 0 if it was never delivered."""
        return self._numbers[shard].get(sequence, 0) if sequence else 0

    def _item(self, key: tuple[str, str]) -> int:
        return self._items.setdefault(key, len(self._items) + 1)

    def _checkpoint(self, shard: str, fields: Mapping[str, Any]) -> str:
        return _record(checkpoint=str(self._number(shard, fields["checkpoint"])), at=str(fields["at"]))

    def _removed(self, removed: Mapping[str, Any]) -> str:
        rows = [
            _record(
                shard=str(self._shards[shard]),
                value=str(self._number(shard, sequence_of(value))),
                created=str(math.floor(Watermark.read(value)[1] - EPOCH)),
            )
            for name, value in removed.items()
            if (shard := self._named.get(name)) is not None
        ]
        return "{" + ", ".join(rows) + "}"


def slots(events: Sequence[Event]) -> dict[int, int]:
    """A process for each sandbox: that of another one, once that has ended for good."""
    last = {event["process"]: index for index, event in enumerate(events) if not event["op"].endswith(" landed")}
    found: dict[int, int] = {}
    free: list[int] = []
    for index, event in enumerate(events):
        process = event["process"]
        if process not in found:
            found[process] = free.pop() if free else max(found.values(), default=0) + 1
        if last[process] == index and event["op"] == "end":
            free.append(found[process])
    return found


def _record(**fields: str) -> str:
    return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields.items()) + "]"


def _sequence(rows: Sequence[str]) -> str:
    return "<<" + ",\n  ".join(rows) + ">>"


def _set(numbers: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"


def _texts(texts: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{text}"' for text in texts) + "}"


def _numbers(count: int) -> str:
    return _set(range(1, count + 1))
