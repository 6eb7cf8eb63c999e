"""A table is used where it is: elsewhere its name means another table, and CDK would replace it by an empty one."""

from __future__ import annotations

from typing import Any

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
)
from dynamodb_counters._declarations.codec import decode
from tests.unit.infra.support import (
    VIEW,
    VIEWS,
    build,
    each,
    new_app,
    own_table,
)

OURS, THEIRS = "111111111111", "222222222222"
HERE, THERE = "us-east-1", "eu-west-1"


def stack_at(app: App, name: str, account: str | None = OURS, region: str | None = HERE, **more: Any) -> Stack:
    return Stack(app, name, env=Environment(account=account, region=region), **more)


def counted(stack: Stack) -> DedupCounterTable:
    counters = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=counters)
    return counters


def test_resources_in_the_same_place_or_known_by_their_arn_give_no_name() -> None:
    app = new_app()
    stack = stack_at(app, "Counts")
    counters = counted(stack)
    build(CounterApi, stack_at(app, "Api"), table=counters)
    counters.grant_accept(iam.Role.from_role_arn(stack, "Theirs", f"arn:aws:iam::{THEIRS}:role/writer"), VIEW)
    [table] = Template.from_stack(stack).find_resources("AWS::DynamoDB::GlobalTable").values()
    assert "TableName" not in table["Properties"]


def test_stacks_without_account_and_region_share_a_table() -> None:
    app = new_app()
    counters = counted(Stack(app, "Counts"))
    build(CounterApi, Stack(app, "Api"), table=counters)
    app.synth()


def test_an_ingest_on_a_replica_knows_that_the_primary_is_counted() -> None:
    app = new_app()
    here, there = stack_at(app, "Here"), stack_at(app, "There", region=THERE)
    table = own_table(here, table_name="events", replicas=[dynamodb.ReplicaTableProps(region=THERE)])
    copy = build(DedupCounterTable, there, table=table.replica(THERE))
    build(EventIngest, there, table=copy)
    build(CounterApi, there, table=copy)
    build(StreamAggregator, here, table=build(DedupCounterTable, here, table=table), aggregates=[VIEWS])
    app.synth()
    Annotations.from_stack(there).has_no_warning("*", Match.any_value())
    variables = [one["Environment"]["Variables"] for one in each(Template.from_stack(there), "AWS::Lambda::Function")]
    assert [one.name for one in decode(variables[0]["AGGREGATES"])] == ["views"]
