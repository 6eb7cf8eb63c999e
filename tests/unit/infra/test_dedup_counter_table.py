"""The table's settings and grants, and existing tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import Acknowledgment, CfnParameter, RemovalPolicies, RemovalPolicy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    STREAM_ARN,
    TOP,
    VIEW,
    actions,
    build,
    each,
    environment,
    imported,
    new_role,
    new_stack,
    own_table,
    properties,
    statements,
    synthesized,
)

STRING = dynamodb.AttributeType.STRING


def test_table_that_may_go_is_not_protected(stack: Stack) -> None:
    DedupCounterTable(stack, "Counters", removal_policy=RemovalPolicy.DESTROY)
    [replica] = properties(synthesized(stack), "AWS::DynamoDB::GlobalTable")["Replicas"]
    assert replica["DeletionProtectionEnabled"] is False


def test_a_first_deployment_that_fails_can_delete_what_it_created(stack: Stack) -> None:
    """With RETAIN_ON_UPDATE_OR_DELETE it does, and protection would end it in ROLLBACK_FAILED."""
    kept = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
    DedupCounterTable(stack, "Counters", removal_policy=kept)
    with pytest.raises(InvalidArgumentError, match=r"^invalid deletion_protection=True: expected False with RETAIN_ON"):
        DedupCounterTable(stack, "Other", removal_policy=kept, deletion_protection=True)
    assert protection(stack) == [False]


def test_an_aspect_that_destroys_all_takes_the_protection_along() -> None:
    stack = new_stack(region="us-east-1")
    counters = DedupCounterTable(stack, "Counters")
    assert isinstance(counters.table, dynamodb.TableV2)
    counters.table.add_replica(region="us-west-2")
    RemovalPolicies.of(stack).destroy()
    assert protection(stack) == [False, False]


def test_protection_that_was_asked_for_stays_whatever_an_aspect_does(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", deletion_protection=True)
    RemovalPolicies.of(counters).destroy()
    assert protection(stack) == [True]


def protection(stack: Stack) -> list[bool]:
    [table] = each(synthesized(stack), "AWS::DynamoDB::GlobalTable")
    return [replica["DeletionProtectionEnabled"] for replica in table["Replicas"]]


def test_warns_when_counts_cannot_be_got_back(stack: Stack) -> None:
    DedupCounterTable(stack, "Kept", point_in_time_recovery=False)
    DedupCounterTable(stack, "BackedUp", removal_policy=RemovalPolicy.DESTROY)
    Annotations.from_stack(stack).has_no_warning("*", Match.string_like_regexp("recovered"))
    DedupCounterTable(stack, "Gone", removal_policy=RemovalPolicy.DESTROY, point_in_time_recovery=False)
    Annotations.from_stack(stack).has_warning("/Test/Gone", Match.string_like_regexp("cannot be recovered"))


def test_a_table_that_nothing_aggregates_is_warned_of() -> None:
    stack, uncounted = new_stack(), Match.string_like_regexp("No StreamAggregator counts this table")
    build(DedupCounterTable, stack, construct_id="Uncounted")
    acknowledged = build(DedupCounterTable, stack, construct_id="Incremented")
    counted = build(DedupCounterTable, stack, construct_id="Counted")
    build(DedupCounterTable, stack, construct_id="Elsewhere", table=imported(stack))
    # Any construct may come first: synth warns once everything is declared.
    build(StreamAggregator, stack, table=counted)
    id_ = "Annotation::dynamodb-counters:nothingAggregates"
    Validations.of(acknowledged).acknowledge(Acknowledgment(id=id_, reason="It is incremented only."))

    found = Annotations.from_stack(stack).find_warning("*", uncounted)

    assert [message.id for message in found] == ["/Test/Uncounted"]


def test_grants_on_an_imported_table_cover_the_indexes_it_is_said_to_have(stack: Stack, role: iam.Role) -> None:
    arn = STREAM_ARN.partition("/stream")[0]
    table = imported(stack, table_name=None, table_arn=arn, global_indexes=["ranking"])
    counters = DedupCounterTable(stack, "Counters", table=table)
    counters.grant_accept(role, VIEW)
    counters.grant_read(role)
    granted = {action: one["Resource"] for one in statements(synthesized(stack)) for action in actions(one)}
    assert granted.pop("dynamodb:Query") == [arn, f"{arn}/index/*"]
    assert {*granted.values()} == {arn}


def test_grantee_in_another_account_stands_in_the_policy_of_the_table() -> None:
    stack = new_stack(region="us-east-1")
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    counters.grant_accept(iam.AccountPrincipal("210987654321"), VIEW)
    [replica] = properties(synthesized(stack), "AWS::DynamoDB::GlobalTable")["Replicas"]
    [granted] = replica["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert set(actions(granted)) == {"dynamodb:PutItem"}
    assert "210987654321" in str(granted["Principal"])
    assert granted["Resource"] == "*"  # the table's ARN would make the table depend on itself


def test_uses_an_imported_table_and_says_what_it_cannot_check(stack: Stack) -> None:
    build(StreamAggregator, stack, table=build(DedupCounterTable, stack, table=imported(stack)))
    template = synthesized(stack)
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 0)
    assert properties(template, "AWS::Lambda::EventSourceMapping")["EventSourceArn"] == STREAM_ARN
    Annotations.from_stack(stack).has_info("/Test/Own", Match.string_like_regexp("cannot check any of this"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition_key": dynamodb.Attribute(name="id", type=STRING)}, "partition key 'pk' and sort key 'sk'"),
        ({"sort_key": None}, "partition key 'pk' and sort key 'sk'"),
        ({"sort_key": dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.NUMBER)}, "both strings"),
        ({"dynamo_stream": None}, "StreamViewType.NEW_AND_OLD_IMAGES"),
        ({"dynamo_stream": dynamodb.StreamViewType.NEW_IMAGE}, "StreamViewType.NEW_AND_OLD_IMAGES"),
        ({"time_to_live_attribute": None}, "time_to_live_attribute='ttl'"),
        ({"time_to_live_attribute": "expires"}, "time_to_live_attribute='ttl'"),
    ],
)
def test_refuses_a_table_that_cannot_hold_counters(changes: dict[str, Any], message: str, stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        DedupCounterTable(stack, "Counters", table=own_table(stack, **changes))


def test_refuses_an_imported_table_without_a_stream(stack: Stack) -> None:
    table = dynamodb.TableV2.from_table_name(stack, "Own", "events")
    with pytest.raises(InvalidArgumentError, match="table_stream_arn"):
        DedupCounterTable(stack, "Counters", table=table)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("removal_policy", RemovalPolicy.RETAIN),
        ("deletion_protection", False),
        ("point_in_time_recovery", True),
        ("encryption", dynamodb.TableEncryptionV2.dynamo_owned_key()),
        ("warm_throughput", dynamodb.WarmThroughput(write_units_per_second=5000)),
        ("ranking_index", True),
    ],
)
def test_refuses_settings_of_a_table_that_is_not_its_own(argument: str, value: Any, stack: Stack) -> None:
    table = own_table(stack)
    with pytest.raises(InvalidArgumentError, match=rf"^invalid {argument}=.*None when table is given"):
        DedupCounterTable(stack, "Counters", **{"table": table, argument: value})


def test_an_index_is_as_warm_as_its_table_unless_it_says_otherwise(stack: Stack) -> None:
    warm, cool = (dynamodb.WarmThroughput(write_units_per_second=units) for units in (9000, 5000))
    DedupCounterTable(stack, "Counters", ranking_index=True, warm_throughput=warm)
    DedupCounterTable(stack, "Cool", ranking_index={"warm_throughput": cool}, warm_throughput=warm)
    DedupCounterTable(stack, "Plain", ranking_index={}, warm_throughput=warm)
    tables = each(synthesized(stack), "AWS::DynamoDB::GlobalTable")
    units = [
        [part["WarmThroughput"]["WriteUnitsPerSecond"] for part in (table, *table["GlobalSecondaryIndexes"])]
        for table in tables
    ]
    assert units == [[9000, 9000], [9000, 5000], [9000, 9000]]


ARN = STREAM_ARN.partition("/stream")[0]
HANDLES: dict[str, Callable[[Stack], DedupCounterTable]] = {
    "name": lambda stack: DedupCounterTable.from_table_name(stack, "Counters", "events"),
    "arn": lambda stack: DedupCounterTable.from_table_arn(stack, "Counters", ARN),
}


@pytest.mark.parametrize("handle", HANDLES)
def test_an_app_that_only_reads_needs_no_stream(handle: str, stack: Stack) -> None:
    """Neither is it warned that nothing in it counts: another app does."""
    counters = HANDLES[handle](stack)
    build(CounterApi, stack, table=counters, shown=[TOP], events=[VIEW])
    template = synthesized(stack)
    granted = {action: one["Resource"] for one in statements(template) for action in actions(one)}
    resources = json.dumps(granted["dynamodb:Query"])
    assert "table/events" in resources
    assert "/index/*" in resources
    assert environment(template)["TABLE_NAME"] == "events"
    assert not template.find_resources("AWS::DynamoDB::GlobalTable")
    Annotations.from_stack(stack).has_no_warning("*", Match.any_value())


@pytest.mark.parametrize("handle", HANDLES)
def test_an_app_may_write_into_a_table_that_another_one_counts(handle: str, stack: Stack) -> None:
    counters = HANDLES[handle](stack)
    build(EventIngest, stack, table=counters)
    counters.grant_accept(new_role(stack), VIEW)
    Annotations.from_stack(stack).has_no_warning("*", Match.any_value())


@pytest.mark.parametrize("handle", HANDLES)
def test_constructs_that_count_need_the_stream(handle: str, stack: Stack) -> None:
    counters = HANDLES[handle](stack)
    for construct in (StreamAggregator, WindowedCounter):
        with pytest.raises(InvalidArgumentError, match=r"invalid table=.*: expected a table with a stream"):
            build(construct, stack, table=counters)
    with pytest.raises(InvalidArgumentError, match=r"invalid table=.*: expected a table with a stream"):
        _ = counters.table_stream_arn


def test_a_handle_is_checked(stack: Stack) -> None:
    for name in ("", "ab", "a/b", ARN, 1):
        with pytest.raises(InvalidArgumentError, match=r"^invalid table_name="):
            DedupCounterTable.from_table_name(stack, "Counters", name)  # type: ignore[arg-type]
    for arn in ("events", STREAM_ARN, "arn:aws:s3:::events", 1):
        with pytest.raises(InvalidArgumentError, match=r"^invalid table_arn="):
            DedupCounterTable.from_table_arn(stack, "Counters", arn)  # type: ignore[arg-type]
    parameter = CfnParameter(stack, "Name").value_as_string
    assert DedupCounterTable.from_table_name(stack, "Late", parameter).table_name == parameter
    elsewhere = new_stack(region="eu-west-1")
    with pytest.raises(InvalidArgumentError, match="and region eu-west-1"):
        DedupCounterTable.from_table_arn(elsewhere, "Counters", ARN)
