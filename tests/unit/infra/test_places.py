"""A table is used where it is: elsewhere its name means another table, and CDK would replace it by an empty one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aws_cdk import App, CfnOutput, Duration, Environment, PhysicalName, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from dynamodb_counters import Aggregate, Count, Items
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    STREAM_ARN,
    VIEW,
    VIEWS,
    actions,
    build,
    each,
    imported,
    new_app,
    own_table,
    statements,
)

OURS, THEIRS = "111111111111", "222222222222"
HERE, THERE = "us-east-1", "eu-west-1"
USERS = [CounterApi, EventIngest, StreamAggregator, ThresholdEvents, WindowedCounter]
ORDERS = Aggregate("orders", Items("order"), pk="SHOP", sk="ORDERS", measures={"n": Count()})


def stack_at(app: App, name: str, account: str | None = OURS, region: str | None = HERE, **more: Any) -> Stack:
    return Stack(app, name, env=Environment(account=account, region=region), **more)


def counted(stack: Stack) -> DedupCounterTable:
    counters = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=counters)
    return counters


def a_role(stack: Stack, counters: DedupCounterTable) -> None:
    principal = iam.ServicePrincipal("lambda.amazonaws.com")
    counters.grant_accept(
        iam.Role(stack, "Role", assumed_by=principal, role_name=PhysicalName.GENERATE_IF_NEEDED), VIEW
    )


def an_output(stack: Stack, counters: DedupCounterTable) -> None:
    iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    CfnOutput(stack, "Name", value=counters.table_name)


@pytest.mark.parametrize("elsewhere", [{"account": THEIRS}, {"region": THERE}])
@pytest.mark.parametrize("refers", [a_role, an_output])
def test_nothing_elsewhere_gives_a_live_table_another_name(
    refers: Callable[[Stack, DedupCounterTable], None], elsewhere: dict[str, str]
) -> None:
    app = new_app()
    counters = counted(stack_at(app, "Counts"))
    refers(stack_at(app, "Other", **elsewhere), counters)
    with pytest.raises(RuntimeError, match=r"in one of Other: .* would replace the table by a new, empty one"):
        app.synth()


@pytest.mark.parametrize("construct", USERS)
@pytest.mark.parametrize("elsewhere", [{"account": THEIRS}, {"region": THERE}, {"account": None, "region": None}])
def test_a_construct_elsewhere_than_its_table_is_refused(construct: Any, elsewhere: dict[str, str | None]) -> None:
    app = new_app()
    counters = build(DedupCounterTable, stack_at(app, "Counts"))
    with pytest.raises(
        InvalidArgumentError, match="invalid table='Counts/Counters/Table': expected a table of account"
    ):
        build(construct, stack_at(app, "Other", **elsewhere), table=counters)


def test_a_name_of_ones_own_is_no_name_elsewhere() -> None:
    app = new_app()
    stack = stack_at(app, "Counts", cross_region_references=True)
    counters = build(DedupCounterTable, stack, table=own_table(stack, table_name="events"))
    other = stack_at(app, "Other", region=THERE, cross_region_references=True)
    with pytest.raises(InvalidArgumentError, match="and region eu-west-1"):
        build(CounterApi, other, table=counters)


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


@pytest.mark.parametrize(
    ("stream", "more"),
    [
        (STREAM_ARN.replace("/events/", "/orders/"), {}),
        (STREAM_ARN, {"table_name": None, "table_arn": "arn:aws:dynamodb:eu-west-1:123456789012:table/events"}),
        (STREAM_ARN, {"table_name": None, "table_arn": "arn:aws:dynamodb:us-east-1:111111111111:table/events"}),
    ],
)
def test_an_import_has_the_stream_of_its_own_table(stream: str, more: dict[str, Any]) -> None:
    stack = Stack(new_app(), "Counts")
    own = imported(stack, table_stream_arn=stream, **more)
    with pytest.raises(InvalidArgumentError, match=r"invalid table=.* expected the stream of that table"):
        build(DedupCounterTable, stack, table=own)
    other = Stack(stack, "Other")
    with pytest.raises(InvalidArgumentError, match=r"invalid source_table=.* expected the stream of that table"):
        build(StreamAggregator, other, source_table=own, aggregates=[ORDERS])


def test_an_import_of_another_region_is_refused() -> None:
    app = new_app()
    stack = stack_at(app, "Counts", account="123456789012", region=THERE)
    own = imported(stack, table_name=None, table_arn=STREAM_ARN.partition("/stream")[0])
    with pytest.raises(InvalidArgumentError, match=r"invalid table=.* and region eu-west-1"):
        build(DedupCounterTable, stack, table=own)
    other = stack_at(app, "Other", account="123456789012", region=THERE)
    with pytest.raises(InvalidArgumentError, match=r"invalid source_table=.* and region eu-west-1"):
        build(StreamAggregator, other, source_table=own, aggregates=[ORDERS])


def test_a_source_table_may_be_of_another_account() -> None:
    stack, arn = stack_at(new_app(), "Counts"), STREAM_ARN.partition("/stream")[0]
    source = imported(stack, table_name=None, table_arn=arn)
    build(StreamAggregator, stack, source_table=source, aggregates=[ORDERS], verify_every=Duration.days(1))
    template = Template.from_stack(stack)
    assert [actions(one) for one in statements(template) if one["Resource"] == arn] == [
        ["dynamodb:DescribeTable"],
        ["dynamodb:DescribeTable", "dynamodb:Scan"],
    ]
    mappings = each(template, "AWS::Lambda::EventSourceMapping")
    assert STREAM_ARN in [mapping["EventSourceArn"] for mapping in mappings]
    functions = each(template, "AWS::Lambda::Function")
    assert [one for one in functions if one["Environment"]["Variables"].get("SOURCE_TABLE_ARN") == arn]


def test_two_replicas_have_one_aggregator() -> None:
    app = new_app()
    here = stack_at(app, "Here")
    table = own_table(here, table_name="events", replicas=[dynamodb.ReplicaTableProps(region=THERE)])
    build(StreamAggregator, here, table=build(DedupCounterTable, here, table=table), aggregates=[VIEWS])
    there = stack_at(app, "There", region=THERE)
    copy = build(DedupCounterTable, there, table=table.replica(THERE))
    build(CounterApi, there, table=copy)
    with pytest.raises(InvalidArgumentError, match="one StreamAggregator per table"):
        build(StreamAggregator, there, table=copy, aggregates=[VIEWS])


ANY_STREAM = STREAM_ARN.rpartition("/")[0] + "/*"


@pytest.mark.parametrize("construct", [StreamAggregator, ThresholdEvents])
def test_a_stream_of_no_known_arn_is_not_read(construct: Any) -> None:
    """CDK gives a replica's stream an ARN for policies, which no event source mapping takes."""
    app = new_app()
    here, there = stack_at(app, "Here", "123456789012"), stack_at(app, "There", "123456789012", THERE)
    table = own_table(here, table_name="orders", replicas=[dynamodb.ReplicaTableProps(region=THERE)])
    for stack, own in ((there, table.replica(THERE)), (here, imported(here, table_stream_arn=ANY_STREAM))):
        copy = build(DedupCounterTable, stack, table=own)
        build(EventIngest, stack, table=copy)
        with pytest.raises(InvalidArgumentError, match=r"^invalid table=.*: expected a table whose stream has a known"):
            build(construct, stack, table=copy)


def test_a_source_table_s_stream_has_a_known_arn() -> None:
    stack = stack_at(new_app(), "Counts", "123456789012")
    source = imported(stack, table_stream_arn=ANY_STREAM)
    with pytest.raises(InvalidArgumentError, match=r"^invalid source_table=.*whose stream has a known ARN"):
        build(StreamAggregator, stack, source_table=source, aggregates=[ORDERS])


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


def test_a_table_of_multi_region_strong_consistency_is_refused() -> None:
    """It refuses transactions, with which names are registered."""
    stack = stack_at(new_app(), "Counts")
    strong = dynamodb.MultiRegionConsistency.STRONG
    replicas = [dynamodb.ReplicaTableProps(region=region) for region in ("us-east-2", "us-west-2")]
    table = own_table(stack, replicas=replicas, multi_region_consistency=strong)
    with pytest.raises(InvalidArgumentError, match=r"invalid table=.* expected a table without multi-Region strong"):
        build(DedupCounterTable, stack, table=table)
