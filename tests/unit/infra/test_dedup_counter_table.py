"""The table's settings and grants, existing tables, and where a table is used: elsewhere its name means another one."""

from __future__ import annotations

import json

import pytest
from aws_cdk import Acknowledgment, RemovalPolicies, RemovalPolicy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator
from dynamodb_counters._declarations.codec import decode, encode
from tests.unit.infra.declared import TOP, VIEW, VIEWS
from tests.unit.infra.place import ARN, STREAM_ARN, THEIRS, Place, imported
from tests.unit.infra.support import actions, build, granted, new_role, new_stack, properties, specs, synthesized


def test_protection_goes_with_a_table_that_may_go_unless_it_was_asked_for(stack: Stack) -> None:
    """With RETAIN_ON_UPDATE_OR_DELETE, it would end a first deployment that fails in ROLLBACK_FAILED."""
    DedupCounterTable(stack, "Gone", removal_policy=RemovalPolicy.DESTROY)
    DedupCounterTable(stack, "Kept", removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    DedupCounterTable(stack, "Retained")
    for name, protection in (("Asked", True), ("Unasked", None)):
        RemovalPolicies.of(DedupCounterTable(stack, name, deletion_protection=protection)).destroy()
    tables = synthesized(stack).find_resources("AWS::DynamoDB::GlobalTable").items()
    protected = {name[:3]: table["Properties"]["Replicas"][0]["DeletionProtectionEnabled"] for name, table in tables}
    assert protected == {"Gon": False, "Kep": False, "Ret": True, "Ask": True, "Una": False}


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

    warnings = Annotations.from_stack(stack).find_warning("*", uncounted)

    assert [message.id for message in warnings] == ["/Test/Uncounted"]


def test_grants_on_an_imported_table_cover_the_indexes_it_is_said_to_have(stack: Stack) -> None:
    role = new_role(stack)
    table = imported(stack, table_name=None, table_arn=ARN, global_indexes=["ranking"])
    counters = DedupCounterTable(stack, "Counters", table=table)
    counters.grant_accept(role, VIEW)
    counters.grant_read(role)
    resources = dict(granted(synthesized(stack)))
    assert resources.pop("dynamodb:Query") == [ARN, f"{ARN}/index/*"]
    assert {*resources.values()} == {ARN}


def test_grantee_in_another_account_stands_in_the_policy_of_the_table() -> None:
    stack = new_stack(region="us-east-1")
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    counters.grant_accept(iam.AccountPrincipal("210987654321"), VIEW)
    [replica] = properties(synthesized(stack), "AWS::DynamoDB::GlobalTable")["Replicas"]
    [statement] = replica["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert set(actions(statement)) == {"dynamodb:PutItem"}
    assert "210987654321" in str(statement["Principal"])
    assert statement["Resource"] == "*"  # the table's ARN would make the table depend on itself


def test_uses_an_imported_table_and_says_what_it_cannot_check(stack: Stack) -> None:
    build(StreamAggregator, stack, table=build(DedupCounterTable, stack, table=imported(stack)))
    template = synthesized(stack)
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 0)
    assert properties(template, "AWS::Lambda::EventSourceMapping")["EventSourceArn"] == STREAM_ARN
    Annotations.from_stack(stack).has_info("/Test/Own", Match.string_like_regexp("cannot check any of this"))


def test_an_index_is_as_warm_as_its_table_unless_it_says_otherwise(stack: Stack) -> None:
    warm, cool = (dynamodb.WarmThroughput(write_units_per_second=units) for units in (9000, 5000))
    DedupCounterTable(stack, "Counters", ranking_index=True, warm_throughput=warm)
    DedupCounterTable(stack, "Cool", ranking_index={"warm_throughput": cool}, warm_throughput=warm)
    DedupCounterTable(stack, "Plain", ranking_index={}, warm_throughput=warm)
    tables = specs(synthesized(stack), "AWS::DynamoDB::GlobalTable")
    units = [
        [part["WarmThroughput"]["WriteUnitsPerSecond"] for part in (table, *table["GlobalSecondaryIndexes"])]
        for table in tables
    ]
    assert units == [[9000, 9000], [9000, 5000], [9000, 9000]]


@pytest.mark.parametrize(("by", "value"), [("name", "events"), ("arn", ARN)])
def test_an_app_that_only_reads_needs_no_stream(by: str, value: str, stack: Stack) -> None:
    """Neither is it warned that nothing in it counts, if it writes, either: another app does."""
    counters = getattr(DedupCounterTable, f"from_table_{by}")(stack, "Counters", value)
    build(CounterApi, stack, table=counters, shown=[TOP], events=[VIEW])
    template = synthesized(stack)
    resources = json.dumps(dict(granted(template))["dynamodb:Query"])
    assert "table/events" in resources
    assert "/index/*" in resources
    assert properties(template, "AWS::Lambda::Function")["Environment"]["Variables"]["TABLE_NAME"] == "events"
    assert not template.find_resources("AWS::DynamoDB::GlobalTable")
    build(EventIngest, stack, table=counters)
    counters.grant_accept(new_role(stack), VIEW)
    Annotations.from_stack(stack).has_no_warning("*", Match.any_value())


def test_resources_in_the_same_place_or_known_by_their_arn_give_no_name() -> None:
    here = Place()
    here(StreamAggregator)
    Place(here.app, "Api")(CounterApi, table=here.counters)
    here.counters.grant_accept(iam.Role.from_role_arn(here.stack, "Theirs", f"arn:aws:iam::{THEIRS}:role/writer"), VIEW)
    [table] = synthesized(here.stack).find_resources("AWS::DynamoDB::GlobalTable").values()
    assert "TableName" not in table["Properties"]


def test_stacks_without_account_and_region_share_a_table() -> None:
    counts = Place(account=None, region=None)
    counts(StreamAggregator)
    counts.elsewhere()(CounterApi, table=counts.counters)
    counts.app.synth()


def test_an_ingest_on_a_replica_knows_that_the_primary_is_counted() -> None:
    here = Place()
    _, there = here.replica(table_name="events")
    there(EventIngest)
    there(CounterApi)
    here(StreamAggregator, aggregates=[VIEWS])
    here.app.synth()
    Annotations.from_stack(there.stack).has_no_warning("*", Match.any_value())
    variables = [spec["Environment"]["Variables"] for spec in specs(synthesized(there.stack), "AWS::Lambda::Function")]
    assert {entry.name for values in variables for entry in decode(values.get("AGGREGATES", encode(())))} == {"views"}
