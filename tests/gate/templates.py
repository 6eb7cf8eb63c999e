"""Every template that the gate looks at: the examples, and the constructs with their defaults and with everything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from functools import cache
from typing import Any
from unittest.mock import patch

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import HttpJwtAuthorizer

from cdk_dynamodb_counters import DedupCounterTable, EventIngest, ThresholdEvents
from cdk_dynamodb_counters.counter_api import CounterApi, LivePage
from cdk_dynamodb_counters.stream_aggregator import StreamAggregator, WindowedCounter
from dynamodb_counters import Aggregate, Count, Items, TableKeys, Threshold
from examples.stacks import stacks
from tests.gate.template import Template
from tests.unit.infra.declared import PACKED, POPULAR, ROLLING, SITE, TOP, VIEW, VIEWS
from tests.unit.infra.support import build, new_app, new_role, new_stack, private_vpc, synthesized


def everything(stack: Stack) -> dict[str, Any]:
    """Return function options with network, reserved concurrency and a key."""
    vpc = private_vpc(stack)
    return {
        "vpc": vpc,
        "vpc_subnets": ec2.SubnetSelection(subnets=vpc.isolated_subnets[:1]),
        "security_groups": [ec2.SecurityGroup(stack, "Group", vpc=vpc)],
        "reserved_concurrent_executions": 10,
        "environment_encryption": kms.Key(stack, "EnvironmentKey"),
    }


CHANGED: dict[str, Any] = {"throttle_rate": 10, "throttle_burst": 20, "access_log": True}
DAILY = Duration.days(1)


def topic(stack: Stack) -> actions.SnsAction:
    return actions.SnsAction(sns.Topic(stack, "Topic"))


def table_everything(stack: Stack) -> None:
    counters = DedupCounterTable(
        stack,
        "Counters",
        events=[VIEW],
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=True,
        point_in_time_recovery=False,
        encryption=dynamodb.TableEncryptionV2.customer_managed_key(kms.Key(stack, "Key")),
        billing=dynamodb.Billing.on_demand(max_read_request_units=1000, max_write_request_units=2000),
        warm_throughput=dynamodb.WarmThroughput(read_units_per_second=15_000, write_units_per_second=6_000),
        ranking_index={
            "max_read_request_units": 3000,
            "max_write_request_units": 4000,
            "warm_throughput": dynamodb.WarmThroughput(write_units_per_second=5_000),
        },
    )
    writer, reader = new_role(stack, "Writer"), new_role(stack, "Reader")
    counters.grant_accept(writer, VIEW)
    counters.grant_accept(writer, PACKED)
    for job in ("record_once", "increment", "redrive", "reset", "retract"):
        getattr(counters, f"grant_{job}")(writer)
    counters.grant_read(reader)


def aggregator_everything(stack: Stack) -> None:
    key = kms.Key(stack, "Key")
    encryption = dynamodb.TableEncryptionV2.customer_managed_key(key)
    aggregator = build(
        StreamAggregator,
        stack,
        table=build(DedupCounterTable, stack, encryption=encryption),
        service_name="blog",
        batch_size=10_000,
        max_batching_window=Duration.minutes(5),
        quarantine_retention=Duration.days(7),
        on_failure_bucket=s3.Bucket(stack, "Bucket", encryption_key=key),
        alarm_actions=[topic(stack)],
        function_options=lambda_.FunctionOptions(
            memory_size=2048,
            timeout=Duration.minutes(15),
            architecture=lambda_.Architecture.X86_64,
            tracing=lambda_.Tracing.ACTIVE,
            application_log_level_v2=lambda_.ApplicationLogLevel.DEBUG,
            system_log_level_v2=lambda_.SystemLogLevel.INFO,
            **everything(stack),
        ),
    )
    aggregator.add_aggregate(SITE)


def source_table(stack: Stack, **more: Any) -> dynamodb.Table:
    key = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.NUMBER)
    return dynamodb.Table(stack, "Orders", partition_key=key, stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES, **more)


def apart_everything(stack: Stack) -> None:
    keys = [kms.Key(stack, name) for name in ("Key", "BucketKey")]
    encrypted = {"encryption": dynamodb.TableEncryption.CUSTOMER_MANAGED, "encryption_key": keys[0]}
    build(
        StreamAggregator,
        stack,
        source_table=source_table(stack, time_to_live_attribute="expiresAt", **encrypted),
        aggregates=[orders(TableKeys("id", ttl="expiresAt")), VIEWS],
        batch_size=500,
        verify_every=DAILY,
        on_failure_bucket=s3.Bucket(stack, "Bucket", encryption_key=keys[1]),
        alarm_actions=[topic(stack)],
    )


def orders(keys: TableKeys) -> Aggregate:
    return Aggregate("orders", Items("order", keys=keys), pk="SHOP", sk="ORDERS", measures={"orders": Count()})


def thresholds_minimal(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS])
    build(ThresholdEvents, stack, table=counters)


def thresholds_everything(stack: Stack) -> None:
    key = kms.Key(stack, "Key")
    counters = DedupCounterTable(stack, "Counters", encryption=dynamodb.TableEncryptionV2.customer_managed_key(key))
    quota = Threshold("quota", SITE, at=[Decimal("0.8"), 1], direction="both", burst="highest", once=True)
    crossed = build(
        ThresholdEvents,
        stack,
        table=counters,
        thresholds=[POPULAR, quota],
        event_bus=events.EventBus(stack, "Bus"),
        on_failure_bucket=s3.Bucket(stack, "Bucket", encryption_key=key),
        service_name="crossed",
        alarm_actions=[topic(stack)],
        function_options=lambda_.FunctionOptions(memory_size=256, timeout=Duration.seconds(30), **everything(stack)),
    )
    crossed.on_crossed("Popular", threshold=POPULAR, level=1000, direction="up", target=targets.SqsQueue(queue(stack)))
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS, SITE])


def queue(stack: Stack) -> sqs.Queue:
    return sqs.Queue(stack, "Queue", enforce_ssl=True, removal_policy=RemovalPolicy.RETAIN)


def window_everything(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    build(WindowedCounter, stack, table=counters)
    counters.grant_read(new_role(stack, "Reader"))
    aggregator = StreamAggregator(stack, "Aggregator", table=counters)
    aggregator.metric("LateEvents", period=Duration.minutes(1), statistic="Maximum").create_alarm(
        stack, "Late", threshold=1, evaluation_periods=1
    )


def ingest_everything(stack: Stack) -> None:
    build(
        EventIngest,
        stack,
        table=build(DedupCounterTable, stack),
        authorizer=HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"]),
        schema={"type": "object", "properties": {"url": {"type": "string"}}},
        path="/v1/views",
        allow_origins=["https://example.com"],
        max_body_bytes=65_536,
        batch_size=1000,
        max_batching_window=Duration.minutes(1),
        max_concurrency=10,
        service_name="ingest",
        alarm_actions=[topic(stack)],
        tenant={"clientId": "claims.sub"},
        function_options=lambda_.FunctionOptions(memory_size=1024, timeout=Duration.minutes(2), **everything(stack)),
        **CHANGED,
    )


def api_everything(stack: Stack) -> None:
    threshold, beacon = Threshold("known", TOP, at=[10, Decimal("99.5")]), {"url": "{page}"}
    declarations: dict[str, Any] = {"total": SITE, "top": TOP, "window": ROLLING, "threshold": threshold}
    page = LivePage(title="Blog", **declarations, beacon=beacon, beacon_path="/views")
    build(
        CounterApi,
        stack,
        table=build(DedupCounterTable, stack, ranking_index=True),
        shown=[SITE, TOP, ROLLING],
        events=[VIEW, PACKED],
        authorizer=HttpNoneAuthorizer(),
        page=page,
        cache_age=Duration.minutes(1),
        allow_origins=["*"],
        service_name="api",
        function_options=lambda_.FunctionOptions(memory_size=1024, timeout=Duration.seconds(29), **everything(stack)),
        **CHANGED,
    )


BUILDS: dict[str, Callable[[Stack], object]] = {
    "table_minimal": lambda stack: build(DedupCounterTable, stack),
    "table_everything": table_everything,
    "aggregator_minimal": lambda stack: build(StreamAggregator, stack),
    "aggregator_everything": aggregator_everything,
    "apart_minimal": lambda stack: build(
        StreamAggregator, stack, source_table=source_table(stack), aggregates=[orders(TableKeys("id"))]
    ),
    "apart_everything": apart_everything,
    "window_everything": window_everything,
    "aggregator_verified": lambda stack: build(StreamAggregator, stack, verify_every=DAILY, verify_sample=0.25),
    "thresholds_minimal": thresholds_minimal,
    "thresholds_everything": thresholds_everything,
    "ingest_minimal": lambda stack: build(EventIngest, stack),
    "ingest_direct": lambda stack: build(EventIngest, stack, mode="direct"),
    "ingest_packed": lambda stack: build(EventIngest, stack, event=PACKED),
    "ingest_everything": ingest_everything,
    "api_minimal": lambda stack: build(CounterApi, stack),
    "api_everything": api_everything,
    "api_of_tenants": lambda stack: build(CounterApi, stack, shown=[VIEWS], tenant={"url": "iam.accountId"}),
}


CONSTRUCTS = (CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter)
GIVEN: dict[str, set[str]] = {construct.__name__: set() for construct in CONSTRUCTS}
"""Arguments that the builds give to each construct."""


@cache
def built(name: str) -> Stack:
    """Build a stack once."""
    if name in stacks():
        return stacks()[name](new_app(), name)
    stack = new_stack(region="us-east-1")
    with ExitStack() as patches:
        for construct in CONSTRUCTS:
            patches.enter_context(patch.object(construct, "__init__", _noting(construct.__name__, construct.__init__)))
        BUILDS[name](stack)
    return stack


def _noting(name: str, build_it: Callable[..., None]) -> Callable[..., None]:
    def noting(*arguments: Any, **named: Any) -> None:
        GIVEN[name] |= {*named}
        build_it(*arguments, **named)

    return noting


@cache
def templates() -> dict[str, Template]:
    """All templates by name, synthesized once."""
    return {name: Template(name, dict(synthesized(built(name)).to_json())) for name in names()}


def names() -> list[str]:
    """Return the names of all templates, known before any is built."""
    return [*stacks(), *BUILDS]
