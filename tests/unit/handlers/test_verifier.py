"""The verifier's handler: it begins when its schedule says so, and reports what it has found."""

from __future__ import annotations

import importlib
import json
from types import ModuleType, SimpleNamespace

import pytest

from simulation.handler_process import LAMBDA_CONTEXT
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import REVENUE, bench, spoil
from tests.exactly_once.test_scheduled_verification import Invocations

__all__ = ["bench"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "shop")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Counters")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "verifier")
    return importlib.reload(importlib.import_module("dynamodb_counters.handlers.verifier"))


def metered(printed: str) -> dict[str, float]:
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {name: line[name][0] for line in lines if "_aws" in line for name in ("Drift", "GroupsVerified")}


def test_drift_is_metered_when_the_verification_is_complete(
    bench: Workbench,
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    invocations = Invocations(bench)
    monkeypatch.setattr(module, "verifier", lambda: invocations.verifier)
    # The bench's time is not the machine's: an invocation ends at once, or never.
    context = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 900_000})
    spoil(bench, REVENUE, "total", 5, customer="ann")

    module.handler({"begin": False}, context)
    assert metered(capsys.readouterr().out) == {}
    module.handler({"begin": True}, context)
    assert metered(capsys.readouterr().out) == {"Drift": 1, "GroupsVerified": 1}
    [said] = caplog.records
    assert (said.message, vars(said)["groups"]) == ("counts have drifted", {"revenue": 1})

    spoil(bench, REVENUE, "total", -5, customer="ann")
    module.handler({"begin": True}, context)
    assert metered(capsys.readouterr().out) == {"Drift": 0, "GroupsVerified": 1}


def test_a_verification_that_cannot_be_says_why(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    empty = Invocations(Workbench([REVENUE]))
    monkeypatch.setattr(module, "verifier", lambda: empty.verifier)
    context = SimpleNamespace(**{**vars(LAMBDA_CONTEXT), "get_remaining_time_in_millis": lambda: 900_000})
    module.handler({"begin": True}, context)
    [said] = caplog.messages
    assert said.startswith("no aggregator of this version has run on the table")
