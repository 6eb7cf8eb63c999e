"""A table of other code that is counted: what is read, what is not touched, what synth notices."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match, Template

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from dynamodb_counters import Aggregate, Count, Items, TableKeys
from tests.unit.infra.support import (
    STREAM_ARN,
    actions,
    build,
    each,
    environment,
    own_table,
    statements,
    synthesized,
)

STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER
ORDER = Items("order", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP", sk="ORDERS", measures={"n": Count()})


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


def test_counts_may_lie_in_a_table_of_the_first_version(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", table=own_table(stack, dynamodb.Table))
    build(StreamAggregator, stack, table=counters)
    template: Template = synthesized(stack)
    [logical_id] = template.find_resources("AWS::DynamoDB::Table")
    [mapping] = each(template, "AWS::Lambda::EventSourceMapping")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [logical_id, "StreamArn"]}
