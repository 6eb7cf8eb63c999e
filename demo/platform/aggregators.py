"""Logs of the functions that count: why counts do not arrive."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.dev import FRAME
from counters_cli.emulator import Emulator
from demo.terminal import printable

_LOG_LINES: Final = 30
_LINE_CHARACTERS: Final = 500
_ALL: Final = 1_000_000
_MAPPING: Final = "ESM: Lambda "
"""How the emulator's lines about what an event source mapping invokes begin."""
_REASON: Final = re.compile(r"errorMessage=(.*?)\)?$")
_KILLED: Final = "Worker process died"
"""The emulator's reason for an invocation whose process ended before it answered."""


def diagnosis(emulator: Emulator, outputs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Each aggregator's event source mapping, then the logs of those that fail, or of all when none does."""
    lambdas, logs = emulator.client("lambda"), emulator.client("logs")
    counting = {stack: named for stack, named in sorted(outputs.items()) if "AggregatorName" in named}
    lines: list[str] = []
    failing: list[str] = []
    for stack, named in counting.items():
        results = list(_mappings(lambdas, named["AggregatorName"]))
        lines += (f"{stack}: {line}" for line, _ in results)
        if not all(well for _, well in results):
            failing.append(stack)
    for stack in failing or counting:
        named = counting[stack]
        # A function that cannot be loaded logs nothing itself.
        printed = _printed(emulator, f"Lambda {named['AggregatorName']} ", 1)
        logged = [*_logged(logs, named["AggregatorLogGroup"]), *(f"(the emulator) {line}" for line in printed)]
        lines += (f"{stack} logged: {printable(line, _LINE_CHARACTERS)}" for line in logged or ["nothing"])
    return lines


def _printed(emulator: Emulator, text: str, most: int) -> list[str]:
    """Return the last `most` lines that the emulator printed that contain a text."""
    with emulator.log.open(encoding="utf-8", errors="replace") as lines:
        return list(deque((line.rstrip() for line in lines if text in line), most))


def finished(emulator: Emulator) -> int:
    """Return how many batches the functions have finished."""
    return sum(" processed " in line for line in _printed(emulator, _MAPPING, _ALL))


def is_delivered(emulator: Emulator, functions: Iterable[str]) -> bool:
    """Return True if no batch of the functions waits to be delivered again."""
    last = [line for function in functions for line in _printed(emulator, f"{_MAPPING}{function} ", 1)]
    return not any(" failed processing " in line for line in last)


def crashes(emulator: Emulator, function: str) -> int:
    """Return how many invocations of a function ended because its process did."""
    return sum(_KILLED in line for line in _printed(emulator, f"{_MAPPING}{function} failed processing ", _ALL))


def limits(emulator: Emulator, outputs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Which functions' invocations failed or ran out of their time, how often, and why the last one did."""
    lines = []
    for stack, named in sorted(outputs.items()):
        failures = [
            _REASON.search(line)
            for line in _printed(emulator, f"{_MAPPING}{named.get('AggregatorName')} failed processing ", _ALL)
        ]
        if failures:
            reason = printable(failures[-1][1], _LINE_CHARACTERS) if failures[-1] else "an error without a message"
            lines.append(f"{stack}: {len(failures):,} invocations failed, the last one by {reason}")
    return lines


def _mappings(lambdas: Any, function: str) -> Iterator[tuple[str, bool]]:
    try:
        mappings = lambdas.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]
    except (BotoCoreError, ClientError) as error:
        yield f"its event source mapping cannot be read: {error}", False
        return
    if not mappings:
        yield "no event source mapping", False
    for mapping in mappings:
        state, result = mapping["State"], mapping.get("LastProcessingResult", "unknown")
        yield f"event source mapping {state}, last result: {result}", state == "Enabled" and result.startswith("OK")


def _logged(logs: Any, group: str) -> list[str]:
    last: deque[str] = deque(maxlen=_LOG_LINES)
    try:
        last.extend(message.rstrip() for message in _messages(logs, group) if not message.startswith(FRAME))
    except (BotoCoreError, ClientError) as error:
        last.append(f"its log cannot be read: {error}")
    return list(last)


def _messages(logs: Any, group: str) -> Iterator[str]:
    for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
        yield from (event["message"] for event in page["events"])
