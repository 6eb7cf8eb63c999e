"""Handlers as Lambda loads them, and the metrics that they emit."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from types import ModuleType

import pytest

from counters_lambda.handlers import _metering

Load = Callable[..., ModuleType]
Metered = Callable[[], dict[str, float]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load a handler with an environment of its own."""

    def load(name: str, **environment: str) -> ModuleType:
        named = {"AWS_LAMBDA_FUNCTION_NAME": name, "POWERTOOLS_SERVICE_NAME": name}
        for variable, value in {**named, "POWERTOOLS_METRICS_NAMESPACE": "Counters", **environment}.items():
            monkeypatch.setenv(variable, value)
        # Pytest forgets the filter of warnings that was set in another test.
        importlib.reload(_metering)
        return importlib.reload(importlib.import_module(f"counters_lambda.handlers.{name}"))

    return load


@pytest.fixture
def metered(capsys: pytest.CaptureFixture[str]) -> Metered:
    """Return what was emitted since the last call, as CloudWatch reads it."""

    def emitted() -> dict[str, float]:
        metrics: dict[str, float] = {}
        for line in capsys.readouterr().out.splitlines():
            document = json.loads(line) if '"_aws"' in line else {"_aws": {"CloudWatchMetrics": []}}
            for directive in document["_aws"]["CloudWatchMetrics"]:
                assert (directive["Namespace"], directive["Dimensions"]) == ("Counters", [["service"]])
                metrics |= {metric["Name"]: sum(document[metric["Name"]]) for metric in directive["Metrics"]}
        return metrics

    return emitted
