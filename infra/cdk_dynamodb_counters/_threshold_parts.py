"""The parts of `ThresholdEvents`, each built by one function."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_eventschemas as schemas
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_dynamodb_counters._aggregator_parts import grant_failures, grant_stream, polling
from cdk_dynamodb_counters._crossing_schema import SCHEMA
from cdk_dynamodb_counters._functions import Observed
from cdk_dynamodb_counters._functions import build_role as build_function_role
from cdk_dynamodb_counters._metrics import of_function, of_mapping
from cdk_dynamodb_counters._monitoring import AlarmSpec
from dynamodb_counters._declarations import Threshold
from dynamodb_counters._declarations.thresholds import DETAIL_TYPE, EVENT_SOURCE
from dynamodb_counters.errors import InvalidArgumentError

# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
_LARGEST: Final = 5_000_000_000
_DECIMALS: Final = 6


def build_role(scope: Observed, table: dynamodb.ITable, bus: events.IEventBus, bucket: s3.IBucket) -> iam.Role:
    role = build_function_role(scope, "Role", "Sends crossings of thresholds to EventBridge")
    grant_stream(role, table)
    if table.encryption_key is not None:
        table.encryption_key.grant_decrypt(role)
    grant_failures(role, bucket)
    bus.grant_put_events_to(role)
    return role


def build_schema(scope: Construct, registry: str) -> None:
    name = f"{EVENT_SOURCE}@{DETAIL_TYPE.replace(' ', '')}"
    here = Stack.of(scope).environment
    for other in scope.node.root.node.find_all():
        if (
            isinstance(other, schemas.CfnSchema)
            and (other.registry_name, other.schema_name) == (registry, name)
            and Stack.of(other).environment == here
        ):
            allowed = f"a registry without this event's schema, which the one at {other.node.path!r} registers there"
            raise InvalidArgumentError("schema_registry", registry, allowed)
    schemas.CfnSchema(
        scope,
        "Schema",
        registry_name=registry,
        schema_name=name,
        type="OpenApi3",
        content=json.dumps(SCHEMA),
    )


def _listed(levels: Iterable[int | Decimal]) -> str:
    return ", ".join(f"{Decimal(level):f}" for level in levels)


def require_level(level: object, thresholds: Sequence[Threshold]) -> None:
    """Refuse a level that none of the thresholds has, or that EventBridge does not compare."""
    known = {one for each in thresholds for one in each.at}
    if isinstance(level, bool) or not isinstance(level, int | Decimal) or level not in known:
        raise InvalidArgumentError("level", level, f"one of {_listed(sorted(known))}")
    number = Decimal(level)
    if abs(number) > _LARGEST or number != round(number, _DECIMALS):
        allowed = f"at most {_LARGEST:,} and {_DECIMALS} decimals: leave it out, and look at detail.level in the target"
        raise InvalidArgumentError("level", level, allowed)


def crossed_pattern(
    table_arn: str, threshold: Threshold | None, level: int | Decimal | None, direction: str | None
) -> events.EventPattern:
    detail = {
        **({} if threshold is None else {"threshold": [threshold.name]}),
        # By value: EventBridge compares a plain number by its text.
        **(
            {}
            if level is None
            else {"level": [{"numeric": ["=", int(level) if level == int(level) else float(level)]}]}
        ),
        **({} if direction is None else {"direction": [direction]}),
    }
    return events.EventPattern(
        source=[EVENT_SOURCE], detail_type=[DETAIL_TYPE], resources=[table_arn], detail=detail or None
    )


def alarm_specs(metrics: Observed, mapping: lambda_.EventSourceMapping) -> tuple[AlarmSpec, ...]:
    """Return the alarms for crossings that are delayed or given up."""
    return (
        AlarmSpec(
            "CrossingsWaitAlarm",
            of_function(metrics.function, "IteratorAge", statistic="Maximum"),
            Duration.minutes(15).to_milliseconds(),
            "Crossings of thresholds have waited 15 minutes for EventBridge. At 23 hours, Lambda gives up on them.",
        ),
        polling("CrossingsPollingAlarm", mapping, "the stream for crossings"),
        AlarmSpec(
            "CrossingsGivenUpAlarm",
            of_mapping(mapping, "OnFailureDestinationDeliveredEventCount"),
            1,
            "Lambda gave up on crossings that EventBridge has refused for 23 hours. They lie in the on-failure bucket.",
        ),
        AlarmSpec(
            "CrossingsDroppedAlarm",
            of_function(metrics.function, "DestinationDeliveryFailures"),
            1,
            "Lambda gave up on crossings and could not send them to the on-failure bucket.",
        ),
        AlarmSpec(
            "CrossingsUndeliverableAlarm",
            metrics.metric("CrossingsUndeliverable"),
            1,
            "EventBridge has refused crossings that it can never take. Their items are in the table.",
        ),
    )


def graphs(metrics: Observed, mapping: lambda_.EventSourceMapping) -> dict[str, list[cloudwatch.Metric]]:
    return {
        "Wait (ms)": [of_function(metrics.function, "IteratorAge", statistic="Maximum")],
        "Crossings": [
            metrics.metric("CrossingsDelivered"),
            metrics.metric("CrossingsRefused"),
            metrics.metric("CrossingsUndeliverable"),
        ],
        "On failure": [
            of_mapping(mapping, "OnFailureDestinationDeliveredEventCount"),
            of_function(metrics.function, "DestinationDeliveryFailures"),
        ],
        "Function": [of_function(metrics.function, "Errors"), of_function(metrics.function, "Throttles")],
    }
