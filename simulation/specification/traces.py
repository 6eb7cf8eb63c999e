"""Recordings as traces that TLC can compare with the specification."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from counters_lambda.counting import batch
from counters_lambda.counting.batch import intake
from counters_lambda.counting.commit import Checkpoint, Checkpoints, Committer
from counters_lambda.counting.counted_names import CountedNames, plan_of
from dynamodb_counters._assumptions import FRESH
from dynamodb_counters._fold import layouts
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._registry import Entry, Registry
from dynamodb_counters._tiers import HOUR, MINUTE
from dynamodb_counters.exactly_once import update_request
from simulation.aws.sigv4 import LATEST
from simulation.pairs.function import LONGEST_INVOCATION
from simulation.pairs.schedule import PairSchedule
from simulation.pairs.swarm import Swarm
from simulation.pairs.truth import is_entry
from simulation.specification.explorations import DEADLOCK, SPECIFICATIONS, Result, check, configured
from simulation.specification.recorder import RecordedSandbox, Recording, braced, place_of, record

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
    name: partial(patch.object, *change)
    for name, change in {
        "updates have no condition": (layouts, "update_request", unguarded),
        "the last item of a batch is not committed": (Committer, "commit", _all_but_one),
        "a checkpoint settles at once": (Checkpoint, "settled_through", lambda self, _: self.applied_through),
        "stamps are the clock's, not the deadline": (Checkpoints, "advance", _stamped_by_clock),
        "names that wait are folded": (CountedNames, "_plan", lambda self, _: Plan(self.registry.declarations)),
        "a record is folded by the code that delivers it": (CountedNames, "_plan", lambda self, _: Plan(self._own)),
        "checkpoints are not heeded": (batch.Aggregator, "_batch", _heedless),
    }.items()
}
"""Contexts in which handlers are broken, by what is wrong."""

SETTLING: Final = 28 * MINUTE
"""After which a checkpoint may have settled; not what the handler takes for it, which is to be compared."""
KEPT: Final = 24 * HOUR
"""After which a watermark may go, by the age of its record: no invocation begins to count one that is older by then."""


_CONSTANTS: Final = {
    **SPECIFICATIONS[0].constants,
    "Streams": "<- NoRecords",
    "NameOf": "<- OneForAll",
    "Features": '= {"checkpoints", "copies", "windows", "pruning", "parts"}',
    "Timeout": f"= {LONGEST_INVOCATION:.0f}",
    "Landing": f"= {LATEST + 1:.0f}",
    "Fresh": f"= {FRESH}",
    "Settling": f"= {SETTLING:.0f}",
    "KeptFor": f"= {KEPT:.0f}",
}


class Trace(NamedTuple):
    """One schedule as constants of the specification, and how many of a kind there are."""

    seed: int
    log: list[str]
    streams: list[str]
    numbers: Mapping[str, int]


def trace_of(seed: int) -> Trace:
    """Run a schedule and convert what its handlers did."""
    schedule = PairSchedule(seed, swarm=Swarm.draw(seed, "traced"))
    engine: Any = schedule._engine
    recording = Recording(engine.backend)
    engine.function._make_sandbox = partial(RecordedSandbox, recording, count(1))
    schedule.run()
    entries = [Entry.of(item) for item in engine.backend.items() if is_entry(item)]
    plan = plan_of(Registry(entries={entry.name: entry for entry in entries}))
    (processes, log), streams = _log(recording), list(_streams(recording, plan))
    return Trace(seed, log, streams, {"Items": len(recording.items), "Shards": len(streams), "Processes": processes})


def compare(traces: Sequence[Trace], seconds: float = 900) -> tuple[Result, str | None]:
    """Check traces against the specification in one run; return which step of which trace it does not allow."""
    lines = ("INIT TraceInit", "NEXT TraceNext", "VIEW Position", "CHECK_DEADLOCK TRUE", "INVARIANTS AtMostOnce")
    most = {name: max(trace.numbers[name] for trace in traces) or 1 for name in ("Items", "Shards", "Processes")}
    numbers = {name: f"= {braced(range(1, number + 1))}" for name, number in most.items()}
    bodies = (f"[streams |-> {_sequence(t.streams)},\n log |-> {_sequence(t.log)}]" for t in traces)
    module = f"---- MODULE CountersTraces ----\nEXTENDS Counters\nTraces == {_sequence(bodies)}\n====\n"
    text, files = configured({**_CONSTANTS, **numbers}, *lines), {"CountersTraces.tla": module}
    result = check("CountersTrace", text, files, seconds, compiled_in_haste=True)
    if result.violated is None:
        return result, None
    last = dict(line[3:].split(" = ", 1) for line in result.trace[-1].splitlines() if line.startswith("/\\ "))
    trace, step, is_deadlock = traces[int(last["trace"]) - 1], int(last["step"]), result.violated == DEADLOCK
    # An invariant is violated by the step before; a deadlock means that the next one is not allowed.
    number = step if is_deadlock else step - 1
    what = "is not allowed" if is_deadlock else f"violates {result.violated}"
    return result, f"seed {trace.seed}: step {number} of {len(trace.log)} {what}: {trace.log[number - 1]}"


def _streams(recording: Recording, plan: Plan) -> Iterator[str]:
    """Of each record of each shard: in which items it counts, and which of its images go to quarantine."""
    for index, (shard, records) in enumerate(recording.records.items(), start=1):
        rows = []
        for number, change in records.values():
            folded = fold(plan, intake([change]))
            items = sorted({recording.item(place_of(delta, shard)) for delta in folded.deltas})
            aside = sorted({f'"{image.image_name}"' for image in folded.invalid})
            rows.append(record(event=f"<<{index}, {number}>>", items=braced(items), aside=braced(aside)))
        yield _sequence(rows)


def _log(recording: Recording) -> tuple[int, list[str]]:
    """Return how many processes there are, and all steps; a sandbox takes the process of one that has ended."""
    last = {sandbox: index for index, (sandbox, op, _) in enumerate(recording.steps) if not op.endswith(" landed")}
    processes: dict[int, int] = {}
    free: list[int] = []
    log: list[str] = []
    for index, (sandbox, op, lines) in enumerate(recording.steps):
        if sandbox not in processes:
            processes[sandbox] = free.pop() if free else max(processes.values(), default=0) + 1
        log += [line.replace("?", str(processes[sandbox])) for line in lines]
        if op == "end" and last[sandbox] == index:
            free.append(processes[sandbox])
    return max(processes.values(), default=1), log


def _sequence(rows: Iterable[str]) -> str:
    return "<<" + ",\n  ".join(rows) + ">>"
