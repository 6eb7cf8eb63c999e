"""cdk-nag finds nothing beyond what the constructs acknowledge, with settings that the example app does not use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, NestedStack, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    FunctionOptions,
    StreamAggregator,
    ThresholdEvents,
)
from dynamodb_counters import Threshold
from tests.unit.infra.support import CONTEXT, TOP, build, private_vpc


def report(app: App, directory: Path) -> dict[str, Any]:
    """Synthesize and return cdk-nag's report."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    reports = json.loads((directory / "validation-report.json").read_text())["pluginReports"]
    found: dict[str, Any] = next(report for report in reports if report["pluginName"] == "AwsSolutions")
    return found


def findings(directory: Path, *, mode: Any, own_key: bool) -> dict[str, Any]:
    """Synthesize all constructs on a table with an index and return cdk-nag's report; the functions share the key."""
    app = App(context=CONTEXT, outdir=str(directory))
    stack = Stack(app, "Test", env=Environment(region="us-east-1"))
    key = kms.Key(stack, "Key", enable_key_rotation=True) if own_key else None
    encryption = None if key is None else dynamodb.TableEncryptionV2.customer_managed_key(key)
    counters = DedupCounterTable(stack, "Counters", ranking_index=True, encryption=encryption)
    options = FunctionOptions()
    if key is not None:
        vpc = private_vpc(stack)
        vpc.add_flow_log("FlowLog")
        options = FunctionOptions(vpc=vpc, environment_encryption=key, log_encryption_key=key, reserved_concurrency=5)
    build(StreamAggregator, stack, table=counters, aggregates=[TOP], function_options=options)
    build(CounterApi, stack, table=counters, shown=[TOP], function_options=options)
    often = Threshold("often", TOP, at=[1000])
    build(ThresholdEvents, stack, table=counters, thresholds=[often], function_options=options)
    build(EventIngest, stack, table=counters, mode=mode, function_options=options)
    return report(app, directory)


@pytest.mark.parametrize(("mode", "own_key"), [("validated", False), ("direct", True)])
def test_every_finding_is_acknowledged(tmp_path: Path, mode: str, own_key: bool) -> None:
    assert findings(tmp_path, mode=mode, own_key=own_key)["violations"] == []


def test_only_the_api_may_ask_an_index(tmp_path: Path) -> None:
    acknowledged = findings(tmp_path, mode="validated", own_key=False)["suppressedViolations"]
    asking = [
        construct["constructPath"]
        for finding in acknowledged
        if "/index/*" in finding["ruleName"]
        for construct in finding["violatingConstructs"]
    ]
    assert asking == ["Test/Api/Role/DefaultPolicy/Resource"]


def _another(app: App) -> tuple[Stack, Stack]:
    return Stack(app, "Data"), Stack(app, "Api")


def _nested_api(app: App) -> tuple[Stack, Stack]:
    stack = Stack(app, "Data")
    return stack, NestedStack(stack, "Nested")


def _nested_table(app: App) -> tuple[Stack, Stack]:
    stack = Stack(app, "Api")
    return NestedStack(stack, "Nested"), stack


@pytest.mark.parametrize("places", [_another, _nested_api, _nested_table])
def test_every_finding_is_acknowledged_wherever_the_api_is(
    tmp_path: Path, places: Callable[[App], tuple[Stack, Stack]]
) -> None:
    app = App(context=CONTEXT, outdir=str(tmp_path))
    data, other = places(app)
    counters = DedupCounterTable(data, "Counters", ranking_index=True)
    build(StreamAggregator, data, table=counters, aggregates=[TOP])
    api = build(CounterApi, other, table=counters, shown=[TOP])
    build(EventIngest, other, table=counters, http_api=api.http_api)
    assert report(app, tmp_path)["violations"] == []
