"""Mistakes of newcomers: each is noticed where it is made, with a message; none is silent.

Those of who composes constructs: tests/unit/infra/test_refusals.py.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from cdk_dynamodb_counters.testing import stable_template
from dynamodb_counters import Outcome, Outcomes
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.event_requests import EventCheck, parse_events
from dynamodb_counters._http.requests import ProblemError
from dynamodb_counters.errors import InvalidArgumentError
from simulation.counters_in_memory import CountersInMemory, counters_in_memory
from tests.unit import mistakes
from tests.unit.cli.in_process import run

_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)

NAMES: Final[dict[str, Any]] = {}
exec(mistakes.DECLARATIONS, NAMES)
_SHOWN: Final = ("VIEWS", "VISITORS", "LAST_DAY", "SHOPS", "HITS", "HEAT", "RECENT", "DAILY", "STOCK", "SEATS")
_DECLARED: Final = [NAMES[name] for name in _SHOWN]


def _evaluated(code: str, **names: Any) -> Any:
    """Run a line; the value of the expression that it ends with."""
    names = {**NAMES, "replace": replace, **names}
    *before, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(compile(code, "mistake", "exec"), names)
        return None
    exec(compile(ast.Module(before, []), "mistake", "exec"), names)
    return eval(compile(ast.Expression(last.value), "mistake", "eval"), names)


def _message(error: Exception) -> str:
    text = re.sub(r" \(/\S+\)|\. Did you mean: .*", "", str(error))  # as Python's version and this machine have it
    return text if isinstance(error, InvalidArgumentError) else f"{type(error).__name__}: {text}"


def _declared(code: str) -> str | None:
    try:
        _evaluated(code)
    except ImportError as error:
        return _message(error)
    except (InvalidArgumentError, TypeError) as error:
        return _message(error)
    return None


@contextmanager
def _in_memory() -> Iterator[CountersInMemory]:
    with counters_in_memory(_DECLARED, now=_NOON, quarantine="keep") as counters:
        yield counters


def _called(code: str) -> str | None:
    with _in_memory() as counters:
        try:
            value = _evaluated(code, counters=counters, boto3=boto3)
        except (InvalidArgumentError, TypeError) as error:
            return _message(error)
        if isinstance(value, Outcome) and value.status == "conflict":
            return f"{value.status}: {value.reason}"
        if isinstance(value, Outcomes) and len(value.indexes("accepted")) < len(value):
            return str(value)
        for entry in counters.quarantined():
            return str(entry.reason)
    return None


def _tested(code: str) -> str | None:
    names = {"counters_in_memory": counters_in_memory, "stable_template": stable_template}
    try:
        _evaluated(code, **names)
    except (InvalidArgumentError, AssertionError, TypeError, ValueError) as error:
        first, _, rest = _message(error).partition("\n")
        return f"{first} {rest.partition(': {')[0]}".strip()
    return None


def _operated(line: str) -> str | None:
    with _in_memory() as counters:
        done = run(
            *shlex.split(line)[1:],
            client=counters.client,
            clients={"dynamodbstreams": None},
            clock=counters.clock,
        )
    error = done.err.strip()
    return error if done.code == 2 and "\n" not in error else None


def _posted(name: str, body: str) -> str | None:
    event = NAMES[name]
    counting = tuple(part for part in flatten(_DECLARED) if part.source == event)
    try:
        EventCheck(event, None, Plan(counting), _NOON.timestamp).texts(parse_events(body), {})
    except ProblemError as problem:
        reason = f": {problem.errors[0]['detail']}" if problem.errors else ""
        return f"{problem}{reason}"
    return None


SECTIONS: Final[dict[str, tuple[Callable[..., str | None], Iterable[Any]]]] = {
    "Declaring": (_declared, mistakes.DECLARING),
    "Windows, packed events, quotas": (_declared, mistakes.WINDOWS),
    "Writing": (_called, mistakes.WRITING),
    "Counting": (_called, mistakes.COUNTING),
    "Reading": (_called, mistakes.READING),
    "Testing": (_tested, mistakes.TESTING),
    "Operating": (_operated, mistakes.OPERATING),
    "Posting": (_posted, mistakes.POSTING),
}


@pytest.mark.parametrize("section", SECTIONS)
def test_no_mistake_is_silent(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2] / "docs")
    message_of, lines = SECTIONS[section]
    silent = [line for line in lines if not (message_of(*line) if isinstance(line, tuple) else message_of(line))]
    assert silent == []
