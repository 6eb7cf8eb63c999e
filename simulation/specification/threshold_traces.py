"""Traces of the real handler and notifier that TLC compares with docs/spec/Thresholds.tla."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from simulation.specification.recorder import BOOK, recorded
from simulation.specification.tally_schedule import in_order
from simulation.specification.threshold_history import ThresholdHistory, ThresholdTrace
from simulation.specification.threshold_schedule import ThresholdSchedule
from simulation.specification.tlc import Verdict, check
from simulation.specification.traces import rejected

MODULE: Final = "ThresholdsTrace"
INVARIANTS: Final = ("RightPuts", "RightMoves", "RightEnds", "RightEvents")


def threshold_trace_of(seed: int) -> ThresholdTrace:
    """Run a schedule and convert what became of the group, its outbox and its events."""
    with in_order() as records, recorded(records) as recording:
        schedule = ThresholdSchedule(seed)
        wrong = schedule.run()
    assert not wrong, wrong
    assert not any(event["op"].startswith(BOOK) for event in recording.events), seed
    return ThresholdHistory(list(schedule.backend.items()), recording).threshold_trace(seed)


def compare_thresholds(traces: Sequence[ThresholdTrace], seconds: float = 900) -> tuple[Verdict, str | None]:
    """Check traces against the specification in one run; return which step of which trace it does not allow."""
    generations = [*accumulate((len(trace.generations) for trace in traces), initial=1)]
    eras = [*accumulate((len(trace.eras) for trace in traces), initial=1)]
    firsts = [*zip(traces, generations, eras, strict=False)]
    homes = [home for trace in traces for home, _ in trace.generations]
    carries = [_plus(first, carried) for trace, first, _ in firsts for _, carried in trace.generations]
    known = [
        {**each, "folds": {first + number for number in each["folds"]}}
        for trace, first, _ in firsts
        for each in trace.eras
    ]
    logs = [[_text(step) for step in trace.log] for trace in traces]
    bodies = [
        f"[generation |-> {first}, era |-> {era},\n log |-> {_tuple(log)}]"
        for (_, first, era), log in zip(firsts, logs, strict=True)
    ]
    module = "\n".join(
        [
            "---- MODULE ThresholdsTraces ----",
            "EXTENDS Thresholds",
            f"TraceHome == {_text(homes)}",
            f"Carries == {_text(carries)}",
            f"TraceEras == {_text(known)}",
            f"Traces == {_tuple(bodies)}",
            "NoRecords == <<>>",
            "====",
        ]
    )
    constants = {
        "None": "= None",
        "Processes": f"= {_text({*range(1, max(trace.processes for trace in traces) + 1)})}",
        "Adds": "<- NoRecords",
        "Born": "<- NoRecords",
        "Eras": "<- TraceEras",
        "Generations": f"= {_text({*range(1, generations[-1])})}",
        "Shards": f"= {_text({*range(1, max(trace.shards for trace in traces) + 1)})}",
        "Home": "<- TraceHome",
        "Limits": "= {}",
        "Sets": "= 0",
        "Features": '= {"notifier"}',
        "Without": "= {}",
    }
    lines = ["INIT TraceInit", "NEXT TraceNext", "VIEW Position", "CHECK_DEADLOCK TRUE"]
    lines += [f"INVARIANTS {' '.join(INVARIANTS)}", "CONSTANTS"]
    configuration = "\n".join([*lines, *(f"  {name} {value}" for name, value in constants.items())]) + "\n"
    verdict = check(MODULE, configuration, {"ThresholdsTraces.tla": module}, seconds, compiled_in_haste=True)
    return verdict, rejected(verdict, [(trace.seed, log) for trace, log in zip(traces, logs, strict=True)])


def _plus(first: int, number: int | None) -> int | None:
    return None if number is None else first + number


def _text(value: Any) -> str:
    """A value as the specification writes it."""
    match value:
        case bool():
            return str(value).upper()
        case str():
            return f'"{value}"'
        case Mapping():
            return "[" + ", ".join(f"{name} |-> {_text(each)}" for name, each in value.items()) + "]"
        case set():
            return "{" + ", ".join(map(_text, sorted(value))) + "}"
        case list():
            return _tuple(map(_text, value))
    return str(value)


def _tuple(texts: Iterable[str]) -> str:
    return "<<" + ",\n  ".join(texts) + ">>"
