"""docs/mistakes.md: each mistake made, when it is noticed, and the message; none is silent.

UPDATE_SNAPSHOTS=1 writes it again.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_dynamodb import Attribute, AttributeType, StreamViewType, Table, TableV2

import cdk_dynamodb_counters
from cdk_dynamodb_counters.testing import stable_template
from dynamodb_counters import Outcome, Outcomes, evaluate
from dynamodb_counters._declarations import flatten
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._http.event_requests import EventCheck, parse_events
from dynamodb_counters._http.problems import ProblemError
from dynamodb_counters.errors import InvalidArgumentError
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from tests.unit import mistakes
from tests.unit.cli.in_process import run
from tests.unit.infra.support import new_stack

_PROJECT: Final = Path(__file__).parents[2]
_PAGE: Final = _PROJECT / "docs" / "mistakes.md"
_REFUSED: Final = "  # refused"
_NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)

NAMES: Final[dict[str, Any]] = {}
exec(mistakes.DECLARATIONS, NAMES)
_SHOWN: Final = ("VIEWS", "VISITORS", "LAST_DAY", "SHOPS", "HITS", "HEAT", "RECENT", "DAILY")
_DECLARED: Final = [NAMES[name] for name in _SHOWN]


@dataclass(frozen=True)
class Told:
    """When a mistake is noticed, and by what message."""

    when: str
    message: str


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


def _declared(code: str) -> Told | None:
    try:
        _evaluated(code)
    except ImportError as error:
        return Told("import", _message(error))
    except (InvalidArgumentError, TypeError) as error:
        return Told("declaration", _message(error))
    return None


def _composed(code: str) -> Told | None:
    stack = new_stack()
    pk, sk = (Attribute(name=name, type=AttributeType.STRING) for name in ("pk", "sk"))
    constructs = {name: getattr(cdk_dynamodb_counters, name) for name in cdk_dynamodb_counters.__all__}
    names = constructs | {
        "self": stack,
        "counters": cdk_dynamodb_counters.DedupCounterTable(stack, "Counters"),
        "iam": HttpIamAuthorizer(),
        "pk": pk,
        "sk": sk,
        "Duration": Duration,
        "HttpNoneAuthorizer": HttpNoneAuthorizer,
        "StreamViewType": StreamViewType,
        "Table": Table,
        "TableV2": TableV2,
        "lambda_": lambda_,
    }
    try:
        made = _evaluated(code, **names)
    except InvalidArgumentError as error:
        return Told("construct", _message(error))
    for problem in made.node.validate():
        return Told("synth", problem)
    for note in made.node.metadata:
        if note.type == "aws:cdk:warning":
            return Told("synth, as a warning", re.sub(r" \[ack: .*", "", note.data))
    return None


@contextmanager
def _in_memory() -> Iterator[CountersInMemory]:
    with counters_in_memory(_DECLARED, now=_NOON, quarantine="keep") as counters:
        yield counters


def _called(when: str) -> Callable[[str], Told | None]:
    def call(code: str) -> Told | None:
        with _in_memory() as counters:
            try:
                value = _evaluated(code, counters=counters, boto3=boto3)
            except (InvalidArgumentError, TypeError) as error:
                return Told("creation" if code.startswith("Counters(") else when, _message(error))
            if isinstance(value, Outcome) and value.is_conflict:
                return Told(f"{when}, in the outcome", f"{value.status}: {value.reason}")
            if isinstance(value, Outcomes) and len(value.accepted) < len(value):
                return Told(f"{when}, in the outcomes", str(value))
            for entry in counters.quarantined():
                return Told("count: quarantine and alarm", str(entry.reason))
        return None

    return call


def _tested(code: str) -> Told | None:
    names = {"counters_in_memory": counters_in_memory, "evaluate": evaluate, "stable_template": stable_template}
    try:
        _evaluated(code, **names)
    except (InvalidArgumentError, AssertionError, ValueError) as error:
        first, _, rest = _message(error).partition("\n")
        return Told("test", f"{first} {rest.partition(': {')[0]}".strip())
    return None


def _operated(line: str) -> Told | None:
    with _in_memory() as counters:
        done = run(*shlex.split(line)[1:], client=counters.client, clock=counters.clock, width=1000)
    error = done.err.strip()
    return Told(f"command, exit code {done.code}", error) if done.code == 2 and "\n" not in error else None


def _posted(name: str, body: str) -> Told | None:
    event = NAMES[name]
    counting = tuple(part for part in flatten(_DECLARED) if part.source == event)
    try:
        _, problem = EventCheck(event, None, Plan(counting)).texts(parse_events(body), {}, _NOON.timestamp())
    except ProblemError as refused:
        problem = refused
    if problem is None:
        return None
    reason = f": {problem.errors[0]['detail']}" if problem.errors else ""
    return Told(f"request, status {problem.status.value}", f"{problem}{reason}")


def _refused_by_type_checkers() -> set[str]:
    """The lines of which tests/typing proves that mypy and pyright refuse them."""
    lines = (_PROJECT / "tests" / "typing" / "wrong.py").read_text().splitlines()
    return {line.strip().removesuffix(_REFUSED) for line in lines if line.endswith(_REFUSED)}


def _code(text: str) -> str:
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _rows(tell: Callable[..., Told | None], lines: Iterable[Any]) -> list[str]:
    typed, rows = _refused_by_type_checkers(), []
    for line in lines:
        noticed = tell(*line) if isinstance(line, tuple) else tell(line)
        shown = " → ".join(line) if isinstance(line, tuple) else line
        assert noticed is not None, f"silent: {shown}"
        when = f"type checker, {noticed.when}" if shown in typed else noticed.when
        rows.append(f"| {_code(shown)} | {when} | {_code(noticed.message)} |")
    return rows


SECTIONS: Final[dict[str, tuple[Callable[..., Told | None], Iterable[Any]]]] = {
    "Declaring": (_declared, mistakes.DECLARING),
    "Windows, packed events, quotas": (_declared, mistakes.WINDOWS),
    "Composing constructs": (_composed, mistakes.COMPOSING),
    "Writing": (_called("write"), mistakes.WRITING),
    "Counting": (_called("write"), mistakes.COUNTING),
    "Reading": (_called("read"), mistakes.READING),
    "Testing": (_tested, mistakes.TESTING),
    "Operating": (_operated, mistakes.OPERATING),
    "Posting": (_posted, mistakes.POSTING),
}


@pytest.mark.snapshot
@pytest.mark.parametrize("section", SECTIONS)
def test_each_mistake_is_noticed_as_the_documentation_says(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_PAGE.parent)
    head = ["| mistake | reported by | message |", "|---|---|---|"]
    made = "\n".join([*head, *_rows(*SECTIONS[section])]) + "\n"
    _require_written(section.partition(",")[0].lower(), made)


@pytest.mark.snapshot
def test_the_documentation_has_what_the_mistakes_use() -> None:
    _require_written("declarations", f"```python\n{mistakes.DECLARATIONS}```\n")


def test_there_are_at_least_eighty_different_mistakes() -> None:
    lines = [str(line) for _, section in SECTIONS.values() for line in section]
    assert len({*lines}) == len(lines) >= 80


def _require_written(name: str, made: str) -> None:
    begin, end = (f"<!-- {mark}{name}: written by a test -->\n" for mark in ("", "end of "))
    text = _PAGE.read_text()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        _PAGE.write_text(f"{before}{begin}{made}{end}{after}")
        return
    assert f"{begin}{made}{end}" in text, "if the change is intended: make snapshot"
