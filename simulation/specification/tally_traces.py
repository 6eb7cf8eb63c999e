"""Traces of the real handler that TLC compares with docs/spec/Tally.tla."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from simulation.specification.tally_history import TallyHistory, TallyTrace
from simulation.specification.tally_schedule import TallySchedule, in_order
from simulation.specification.tlc import Verdict, check
from simulation.specification.traces import rejected

MODULE: Final = "TallyTrace"


def tally_trace_of(seed: int) -> TallyTrace:
    """Run a schedule and convert what became of the group."""
    with in_order() as records:
        schedule = TallySchedule(seed)
        wrong = schedule.run()
    assert not wrong, wrong
    return TallyHistory(list(schedule.backend.items()), records).trace(seed)


def compare_tallies(traces: Sequence[TallyTrace], seconds: float = 900) -> tuple[Verdict, str | None]:
    """Check traces against the specification in one run; return which step of which trace it does not allow."""
    shards, keys = max(trace.shards for trace in traces), max(trace.keys for trace in traces)
    firsts = [*accumulate((len(trace.generations) for trace in traces), initial=1)][:-1]
    logs = [[_step(step, first, shards) for step in trace.log] for trace, first in zip(traces, firsts, strict=True)]
    bodies = [
        f"[first |-> {first}, cuts |-> {_bounds(trace.cuts, 1, shards)}, ends |-> {_bounds(trace.ends, None, shards)},"
        f"\n log |-> {_tuple(log)}]"
        for trace, first, log in zip(traces, firsts, logs, strict=True)
    ]
    known = [
        (home, None if carried is None else first + carried, weight)
        for trace, first in zip(traces, firsts, strict=True)
        for home, carried, weight in trace.generations
    ]
    homes, carries, weights = zip(*known, strict=True)
    module = "\n".join(
        [
            "---- MODULE TallyTraces ----",
            "EXTENDS Tally",
            f"TraceHome == [k \\in Keys |-> ((k - 1) % {shards}) + 1]",
            "TraceFirst == [k \\in Keys |-> 0]",
            f"TraceItemHome == {_tuple(map(str, homes))}",
            f"TraceCarries == {_tuple(map(_text, carries))}",
            f"TraceWeight == {_tuple(map(str, weights))}",
            f"Traces == {_tuple(bodies)}",
            "====",
        ]
    )
    constants = {
        "None": "= None",
        "Keys": f"= {_numbers(keys * shards)}",
        "First": "<- TraceFirst",
        "Shards": f"= {_numbers(shards)}",
        "Home": "<- TraceHome",
        "ItemHome": "<- TraceItemHome",
        "Generations": f"= {_numbers(len(known))}",
        "Carries": "<- TraceCarries",
        "Weight": "<- TraceWeight",
        "Keeps": f"= {_numbers(len(known))}",
        "Features": '= {"changes", "erasures", "increments", "resets", "removal"}',
        "Without": "= {}",
        "Directs": "= 0",
    }
    lines = ["INIT TraceInit", "NEXT TraceNext", "VIEW Position", "CHECK_DEADLOCK TRUE", "INVARIANTS Balanced"]
    configuration = "\n".join([*lines, "CONSTANTS", *(f"  {name} {value}" for name, value in constants.items())]) + "\n"
    verdict = check(MODULE, configuration, {"TallyTraces.tla": module}, seconds, compiled_in_haste=True)
    return verdict, rejected(verdict, [(trace.seed, log) for trace, log in zip(traces, logs, strict=True)])


def _step(step: Mapping[str, Any], first: int, shards: int) -> str:
    """A step, with its generation and key as they are numbered among those of all traces."""
    fields = dict(step)
    if "generation" in fields:
        fields["generation"] += first
    if "key" in fields:
        home, index = fields["key"]
        fields["key"] = (index - 1) * shards + home
        count, erased = fields["new"] or (0, False)
        fields["new"] = f"[count |-> {count}, erased |-> {str(erased).upper()}]" if fields["new"] else "None"
    fields["op"] = f'"{fields["op"]}"'
    return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields.items()) + "]"


def _bounds(rows: Iterable[Sequence[int | None]], other: int | None, shards: int) -> str:
    """Rows of bounds, one for each generation, filled up for shards that the schedule does not have."""
    return _tuple(_tuple(map(_text, [*row, *[other] * (shards - len(row))])) for row in rows)


def _tuple(texts: Iterable[str]) -> str:
    return "<<" + ", ".join(texts) + ">>"


def _text(number: int | None) -> str:
    return str(number)


def _numbers(count: int) -> str:
    return "{" + ", ".join(map(str, range(1, count + 1))) + "}"
