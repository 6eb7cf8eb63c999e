"""Each construct with its defaults and with everything given: a template changes only when somebody means it to.

`make snapshot` writes the files anew; review them as code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from cdk_dynamodb_counters import CountersLayer, DedupCounterTable, StreamAggregator, WindowedCounter
from tests.unit.infra.support import PROJECT, ROLLING, SITE, VIEWS, new_stack, normalised, synthesized

SNAPSHOTS = PROJECT / "tests" / "snapshots"


def table_minimal(stack: Stack) -> None:
    DedupCounterTable(stack, "Counters")


def table_everything(stack: Stack) -> None:
    counters = DedupCounterTable(
        stack,
        "Counters",
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=True,
        point_in_time_recovery=False,
        encryption=dynamodb.TableEncryptionV2.customer_managed_key(kms.Key(stack, "Key")),
        max_read_request_units=1000,
        max_write_request_units=2000,
        ranking_index=True,
    )
    writer = iam.Role(stack, "Writer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    reader = iam.Role(stack, "Reader", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    counters.grant_accept(writer)
    counters.grant_record_once(writer)
    counters.grant_increment(writer)
    counters.grant_read_counts(reader)
    counters.grant_redrive(writer)
    counters.grant_reset(writer)
    counters.grant_retract(writer)


def aggregator_minimal(stack: Stack) -> None:
    StreamAggregator(stack, "Aggregator", table=DedupCounterTable(stack, "Counters"), aggregates=[VIEWS])


def aggregator_everything(stack: Stack) -> None:
    key = kms.Key(stack, "Key")
    encryption = dynamodb.TableEncryptionV2.customer_managed_key(key)
    aggregator = StreamAggregator(
        stack,
        "Aggregator",
        table=DedupCounterTable(stack, "Counters", encryption=encryption),
        aggregates=[VIEWS],
        service_name="blog",
        batch_size=10_000,
        max_batching_window=Duration.minutes(5),
        memory_size=2048,
        timeout=Duration.minutes(15),
        runtime=lambda_.Runtime.PYTHON_3_12,
        architecture=lambda_.Architecture.X86_64,
        tracing=lambda_.Tracing.DISABLED,
        log_level=lambda_.ApplicationLogLevel.DEBUG,
        log_retention=logs.RetentionDays.ONE_YEAR,
        quarantine_retention=Duration.days(7),
        on_failure_bucket=s3.Bucket(stack, "Bucket", encryption_key=key),
        alarm_actions=[actions.SnsAction(sns.Topic(stack, "Topic"))],
    )
    aggregator.add_aggregate(SITE)


def window_minimal(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    StreamAggregator(stack, "Aggregator", table=counters)
    WindowedCounter(stack, "Rolling", table=counters, window=ROLLING)


def window_everything(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    rolling = WindowedCounter(stack, "Rolling", table=counters, window=ROLLING)
    rolling.grant_read(iam.Role(stack, "Reader", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    rolling.metric_late_events(period=Duration.minutes(1), statistic="Maximum").create_alarm(
        stack, "Late", threshold=1, evaluation_periods=1
    )
    StreamAggregator(stack, "Aggregator", table=counters)


def layer_minimal(stack: Stack) -> None:
    CountersLayer(stack, "Layer")


@pytest.mark.snapshot
@pytest.mark.parametrize(
    "build",
    [
        table_minimal,
        table_everything,
        aggregator_minimal,
        aggregator_everything,
        window_minimal,
        window_everything,
        layer_minimal,
    ],
)
def test_template_is_as_reviewed(build: Callable[[Stack], None]) -> None:
    stack = new_stack(region="us-east-1")
    build(stack)
    text = json.dumps(normalised(synthesized(stack).to_json()), indent=2) + "\n"
    path = SNAPSHOTS / f"{build.__name__}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.exists(), f"no {path.name} yet: make snapshot"
    assert json.loads(text) == json.loads(path.read_text()), "if that was meant: make snapshot"
