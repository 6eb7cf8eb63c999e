"""A table of other code that is counted: what is read, what is not touched, what synth notices."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from dynamodb_counters import Aggregate, Count, Items, TableKeys, Window
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import (
    PROJECT,
    STREAM_ARN,
    VIEWS,
    actions,
    build,
    each,
    environment,
    new_stack,
    own_table,
    problem,
    statements,
    synthesized,
)

STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER
ORDER = Items("order", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP", sk="ORDERS", measures={"n": Count()})
IMAGES = dynamodb.StreamViewType.NEW_AND_OLD_IMAGES


def table_v1(stack: Stack, **changes: Any) -> dynamodb.Table:
    settings: dict[str, Any] = {
        "partition_key": dynamodb.Attribute(name="id", type=NUMBER),
        "time_to_live_attribute": "expiresAt",
        "stream": IMAGES,
    }
    return dynamodb.Table(stack, "Orders", **settings | changes)


def table_v2(stack: Stack, **changes: Any) -> dynamodb.TableV2:
    settings: dict[str, Any] = {
        "partition_key": dynamodb.Attribute(name="id", type=NUMBER),
        "time_to_live_attribute": "expiresAt",
        "dynamo_stream": IMAGES,
    }
    return dynamodb.TableV2(stack, "Orders", **settings | changes)


def imported(stack: Stack) -> dynamodb.ITable:
    return dynamodb.Table.from_table_attributes(stack, "Orders", table_name="events", table_stream_arn=STREAM_ARN)


def apart(stack: Stack, source: Any, **arguments: Any) -> StreamAggregator:
    return build(StreamAggregator, stack, **{"source_table": source, "aggregates": [ORDERS], **arguments})


def test_an_import_is_known_by_its_stream_as_its_records_name_it(stack: Stack) -> None:
    apart(stack, imported(stack))
    assert environment(synthesized(stack))["SOURCE_TABLE_ARN"] == STREAM_ARN.partition("/stream/")[0]


KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012"


@pytest.mark.parametrize("is_named", [True, False])
def test_imports_that_a_key_encrypts_name_it_and_synth_says_so(stack: Stack, is_named: bool) -> None:
    """Without a permission on the key of the bucket, what Lambda gives up on is lost, and shows after 23 hours."""
    key = kms.Key.from_key_arn(stack, "Key", KEY_ARN) if is_named else None
    bucket = s3.Bucket.from_bucket_attributes(stack, "Failures", bucket_name="failures", encryption_key=key)
    source = dynamodb.Table.from_table_attributes(
        stack, "Orders", table_name="events", table_stream_arn=STREAM_ARN, encryption_key=key
    )
    own = dynamodb.TableV2.from_table_attributes(
        stack, "Own", table_name="own", table_stream_arn=STREAM_ARN.replace("events", "own")
    )
    table = DedupCounterTable(stack, "Counters", table=own)
    apart(stack, source, table=table, on_failure_bucket=bucket)
    found = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("encryption_key="))
    expected = ["/Test/Own"] if is_named else ["/Test/Own", "/Test/Orders", "/Test/Aggregator/Role"]
    assert sorted(message.id for message in found) == sorted(expected)
    granted = {
        action for one in statements(synthesized(stack)) if one["Resource"] == KEY_ARN for action in actions(one)
    }
    assert ({"kms:Decrypt", "kms:GenerateDataKey*"} <= granted) == is_named


@pytest.mark.parametrize("table", [table_v1, table_v2])
@pytest.mark.parametrize("view", [None, dynamodb.StreamViewType.NEW_IMAGE, dynamodb.StreamViewType.KEYS_ONLY])
def test_a_table_without_both_images_is_refused_with_advice(table: Any, view: Any, stack: Stack) -> None:
    keyword = "stream" if table is table_v1 else "dynamo_stream"
    source = table(stack, **{keyword: view})
    expected = rf"^invalid source_table='Test/Orders': .*{keyword}=StreamViewType.NEW_AND_OLD_IMAGES$"
    with pytest.raises(InvalidArgumentError, match=expected):
        apart(stack, source)


def test_an_import_without_a_stream_is_refused(stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid source_table=.*table_stream_arn"):
        apart(stack, dynamodb.Table.from_table_name(stack, "Orders", "orders"))


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        (None, {}),
        (TableKeys("id"), {}),
        (TableKeys("key", ttl="expiresAt"), {}),
        (TableKeys("id", "at", ttl="expiresAt"), {}),
        (TableKeys("id", ttl="expiresAt"), {"sort_key": dynamodb.Attribute(name="at", type=STRING)}),
        (TableKeys("id", ttl="expiresAt"), {"time_to_live_attribute": None}),
    ],
)
def test_synth_says_how_the_keys_are_named(keys: TableKeys | None, changes: dict[str, Any], stack: Stack) -> None:
    orders = Aggregate("orders", Items("order", keys=keys), pk="SHOP", sk="ORDERS", measures={"n": Count()})
    apart(stack, table_v1(stack, **changes), aggregates=[orders])
    assert "those of the source table 'Test/Orders': keys=TableKeys(partition_key='id'" in problem(stack)


def test_keys_of_a_source_table_need_one(stack: Stack) -> None:
    build(StreamAggregator, stack, aggregates=[ORDERS])
    assert "invalid keys=TableKeys(partition_key='id'" in (found := problem(stack))
    assert "source_table= of the StreamAggregator" in found


def test_a_source_table_of_which_nothing_is_counted_is_an_error(stack: Stack) -> None:
    apart(stack, table_v1(stack), aggregates=[VIEWS])
    assert "nothing of source_table is counted" in problem(stack)


def test_a_window_alone_may_count_it(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    apart(stack, table_v1(stack), table=counters, aggregates=[])
    WindowedCounter(stack, "Window", table=counters, window=Window("w", ORDER, pk="SHOP", time="at"))
    synthesized(stack)


def test_the_table_of_the_counts_is_no_source_table(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters")
    with pytest.raises(InvalidArgumentError, match=r"^invalid source_table=.*another table than table"):
        apart(stack, counters.table, table=counters)
    own = DedupCounterTable(new_stack(), "Counters", table=imported(new_stack()))
    with pytest.raises(InvalidArgumentError, match=r"^invalid source_table=.*another table than table"):
        apart(Stack.of(own), imported(Stack.of(own)), table=own)
    with pytest.raises(InvalidArgumentError, match=r"^invalid source_table=.*a TableV2 or Table"):
        build(StreamAggregator, new_stack(), source_table=counters)


def test_two_aggregators_may_read_one_stream_and_no_third(stack: Stack) -> None:
    source = table_v1(stack)
    for number in range(2):
        StreamAggregator(
            stack, f"A{number}", table=DedupCounterTable(stack, f"C{number}"), source_table=source, aggregates=[ORDERS]
        )
    with pytest.raises(InvalidArgumentError, match=r"2 readers per stream, which are 'Test/A0' and 'Test/A1'"):
        StreamAggregator(stack, "A2", table=DedupCounterTable(stack, "C2"), source_table=source)


def test_the_documentation_shows_what_the_example_deploys() -> None:
    page = (PROJECT / "docs" / "existing-tables.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:3]
    example = PROJECT / "infra" / "examples"
    code = {line.strip() for name in ("orders", "stacks") for line in (example / f"{name}.py").read_text().split("\n")}
    assert len(blocks) == 3
    assert [line for block in blocks for line in block.split("\n") if line.strip() not in code] == []


def test_counts_may_lie_in_a_table_of_the_first_version(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", table=own_table(stack, dynamodb.Table))
    build(StreamAggregator, stack, table=counters)
    template: Template = synthesized(stack)
    [logical_id] = template.find_resources("AWS::DynamoDB::Table")
    [mapping] = each(template, "AWS::Lambda::EventSourceMapping")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [logical_id, "StreamArn"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition_key": dynamodb.Attribute(name="id", type=STRING)}, "by source_table of StreamAggregator"),
        ({"time_to_live_attribute": "expiresAt"}, "time_to_live_attribute='ttl'"),
        ({"stream": None}, r"stream=StreamViewType\.NEW_AND_OLD_IMAGES"),
    ],
)
def test_refuses_one_that_cannot_hold_counters(changes: dict[str, Any], message: str, stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^invalid table='Test/Given': .*{message}"):
        DedupCounterTable(stack, "Counters", table=own_table(stack, dynamodb.Table, **changes))


def test_a_scheduled_verification_reads_the_source_table(stack: Stack) -> None:
    apart(stack, table_v1(stack), verify_every=Duration.days(1))
    of_source = [
        set(actions(statement))
        for statement in statements(synthesized(stack))
        if "Orders" in str(statement["Resource"]) and "dynamodb:Scan" in actions(statement)
    ]
    assert of_source == [{"dynamodb:DescribeTable", "dynamodb:Scan"}]
