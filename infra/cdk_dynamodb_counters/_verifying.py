"""Scheduled verification of a table's counts."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations, Duration, Token, Tokenization
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from cdk_dynamodb_counters._arguments import require_duration
from cdk_dynamodb_counters._functions import Observed, build_function, build_role, is_isolated
from cdk_dynamodb_counters._grants import grant
from dynamodb_counters.errors import InvalidArgumentError

_HOUR: Final = 3_600_000


def build_verifier(
    scope: Observed,
    table: dynamodb.ITable,
    source_table: dynamodb.ITable | None,
    *,
    every: Duration | None,
    sample: float,
) -> lambda_.Function | None:
    """Build the function that verifies, and the rules that have it begin and go on; nothing if `every` is None."""
    _require_verification(every, sample)
    if every is None:
        return None
    if is_isolated(scope.function_options):
        Annotations.of(scope).add_warning_v2(
            "dynamodb-counters:streamsUnreachable",
            "The function that verifies calls DynamoDB Streams, which has no gateway endpoint, and whose interface "
            "endpoint has no private DNS: from isolated subnets, every verification fails. Choose subnets with a NAT "
            "gateway, or acknowledge this if your network resolves the name of DynamoDB Streams itself.",
        )
    role = build_role(scope, "VerifierRole", "Compares a table's counts with their source items")
    role.add_to_policy(
        iam.PolicyStatement(actions=["dynamodb:DescribeStream"], resources=[str(table.table_stream_arn)])
    )
    if source_table is not None:
        _grant_source(role, source_table)
    grant(table, role, "BatchGetItem", "DescribeTable", "GetItem", "PutItem", "Query", "Scan")
    function = build_function(
        scope,
        "Verifier",
        description="Compares a table's counts with their source items",
        handler="verifier",
        environment={"TABLE_NAME": table.table_name, "SAMPLE": Tokenization.stringify_number(sample)},
        role=role,
        # Half a million groups are held at a time.
        memory_size=2048,
        timeout=Duration.minutes(15),
    )
    _build_rule(scope, "Verify", "Begins to compare counts with their source items", every, function, begin=True)
    # As long as an invocation may take.
    _build_rule(scope, "GoOn", "Goes on comparing", Duration.minutes(15), function, begin=False)
    return function


def _grant_source(role: iam.Role, table: dynamodb.ITable) -> None:
    """Allow reading a source table, and its stream to the end: it gets no heartbeat."""
    actions = ["dynamodb:DescribeTable", "dynamodb:Scan"]
    role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[table.table_arn]))
    stream = [f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator")]
    role.add_to_policy(iam.PolicyStatement(actions=stream, resources=[str(table.table_stream_arn)]))
    if table.encryption_key is not None:
        table.encryption_key.grant_decrypt(role)


def _build_rule(
    scope: Observed, construct_id: str, description: str, every: Duration, function: lambda_.Function, *, begin: bool
) -> None:
    target = targets.LambdaFunction(function, event=events.RuleTargetInput.from_object({"begin": begin}))
    events.Rule(scope, construct_id, description=description, schedule=events.Schedule.rate(every), targets=[target])


def _require_verification(every: Duration | None, sample: object) -> None:
    if every is not None:
        require_duration("verify_every", every, Duration.hours(1), Duration.days(30))
        if not every.is_unresolved() and every.to_milliseconds() % _HOUR:
            raise InvalidArgumentError("verify_every", every.to_human_string(), "whole hours")
    if isinstance(sample, bool) or not isinstance(sample, int | float):
        raise InvalidArgumentError("verify_sample", sample, "a number above 0, up to 1")
    if not Token.is_unresolved(sample) and not 0 < sample <= 1:
        raise InvalidArgumentError("verify_sample", sample, "a number above 0, up to 1")
