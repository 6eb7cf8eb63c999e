"""Thresholds reach the aggregator, crossings EventBridge, and rules only what can happen."""

from __future__ import annotations

import base64
import hmac
import io
import json
import re
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_s3 as s3

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, ThresholdEvents
from dynamodb_counters import Aggregate, Items, TableKeys, Threshold
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._fold.crossings import event_entry
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.handlers.test_notifier import ARN, BUSY, crossed
from tests.unit.infra.support import (
    POPULAR,
    PROJECT,
    SITE,
    VIEWS,
    build,
    each,
    imported,
    new_app,
    new_stack,
    own_table,
    problem,
    synthesized,
)

LOUD = Threshold("busy", SITE, at=[Decimal("0.8"), 1], direction="both", once=True)
RARE = Threshold("rare", SITE, at=[1])


def functions(stack: Stack) -> dict[str, dict[str, Any]]:
    return {one["Handler"].split(".")[-2]: one for one in each(synthesized(stack), "AWS::Lambda::Function")}


@pytest.mark.parametrize("is_first", [True, False])
def test_the_aggregator_knows_the_thresholds_whichever_comes_first(stack: Stack, is_first: bool) -> None:
    counters = build(DedupCounterTable, stack)
    steps: list[Callable[[], object]] = [
        lambda: build(ThresholdEvents, stack, table=counters, thresholds=[LOUD, POPULAR]),
        lambda: build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, SITE]),
    ]
    for step in steps if is_first else reversed(steps):
        step()
    variables = functions(stack)["aggregator"]["Environment"]["Variables"]
    found = {one.name: getattr(one, "_thresholds", ()) for one in decode(variables["DECLARATIONS"])}
    assert {name: [one.name for one in armed] for name, armed in found.items()} == {
        "views": ["popular"],
        "site": ["busy"],
    }


def test_a_threshold_of_what_is_not_declared_is_an_error(stack: Stack) -> None:
    counters = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=counters)
    build(ThresholdEvents, stack, table=counters, thresholds=[LOUD])
    assert "invalid aggregate='site': expected a declared aggregate; declare it together with 'busy'" in problem(stack)


def test_thresholds_that_nothing_judges_are_an_error(stack: Stack) -> None:
    build(ThresholdEvents, stack)
    assert "thresholds are never crossed: the table at 'Test/Counters' has no aggregator" in problem(stack)


def test_a_second_one_is_refused_with_the_way_out(stack: Stack, counters: DedupCounterTable) -> None:
    build(ThresholdEvents, stack, table=counters)
    with pytest.raises(InvalidArgumentError, match=r"^invalid table='Test/Two': expected one ThresholdEvents per t"):
        build(ThresholdEvents, stack, table=counters, construct_id="Two")


def test_a_replica_has_none_of_its_own() -> None:
    """Items of the outbox reach it, too: each crossing would be sent twice."""
    app = new_app()
    home, away = (Stack(app, region, env=Environment(region=f"{region}-1")) for region in ("us-east", "eu-west"))
    table = own_table(home, replicas=[dynamodb.ReplicaTableProps(region="eu-west-1")])
    build(ThresholdEvents, home, table=DedupCounterTable(home, "Counters", table=table))
    replica = DedupCounterTable(away, "Counters", table=table.replica("eu-west-1"))
    with pytest.raises(InvalidArgumentError, match=r"one ThresholdEvents per table and all of its replicas"):
        build(ThresholdEvents, away, table=replica)


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_stream_has_two_readers(stack: Stack, is_imported: bool) -> None:
    counters = DedupCounterTable(stack, "Counters", table=imported(stack) if is_imported else None)
    orders = Aggregate("orders", Items("order", keys=TableKeys("pk", "sk", ttl="ttl")), pk="SHOP", sk="ORDERS")
    other = DedupCounterTable(stack, "Other")
    build(StreamAggregator, stack, table=counters)
    build(
        StreamAggregator,
        stack,
        construct_id="Copy",
        table=other,
        source_table=counters.table,
        aggregates=[orders],
    )
    expected = r"^invalid table=.*at most 2 readers per stream, which are 'Test/Aggregator' and 'Test/Copy'"
    with pytest.raises(InvalidArgumentError, match=expected):
        build(ThresholdEvents, stack, table=counters)


def test_a_bus_of_another_region_is_refused() -> None:
    stack = new_stack(region="us-east-1")
    bus = events.EventBus.from_event_bus_arn(stack, "Bus", "arn:aws:events:eu-west-1:123456789012:event-bus/far")
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid event_bus='Test/Bus': expected a bus of region us-east-1"
    ):
        build(ThresholdEvents, stack, event_bus=bus)


def test_a_rule_of_another_account_s_bus_is_refused() -> None:
    """CloudFormation would make it of the own bus of that name."""
    stack = Stack(new_app(), "Test", env=Environment(account="111111111111", region="us-east-1"))
    arn = "arn:aws:events:us-east-1:{}:event-bus/sales"
    made = [
        build(
            ThresholdEvents,
            stack,
            construct_id=account,
            table=DedupCounterTable(stack, f"Counters{account}"),
            event_bus=events.EventBus.from_event_bus_arn(stack, f"Bus{account}", arn.format(account)),
        )
        for account in ("111111111111", "222222222222")
    ]
    made[0].on_crossed("All")
    with pytest.raises(InvalidArgumentError, match=r"^invalid event_bus=.*: expected a bus of account 1{12}; one"):
        made[1].on_crossed("All")


@pytest.mark.parametrize("is_first", [True, False])
def test_failures_of_crossings_and_of_counting_have_buckets_of_their_own(stack: Stack, is_first: bool) -> None:
    counters, bucket = build(DedupCounterTable, stack), s3.Bucket(stack, "Failures")
    made = [StreamAggregator, ThresholdEvents] if is_first else [ThresholdEvents, StreamAggregator]
    build(made[0], stack, table=counters, on_failure_bucket=bucket)
    other = DedupCounterTable(stack, "Other")
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid on_failure_bucket='Test/Failures': expected another buck"
    ):
        build(made[1], stack, table=counters, on_failure_bucket=bucket)
    if is_first:
        with pytest.raises(InvalidArgumentError, match=r"^invalid on_failure_bucket="):
            build(StreamAggregator, stack, construct_id="Two", table=other, on_failure_bucket=bucket)
    else:
        build(ThresholdEvents, stack, construct_id="Two", table=other, on_failure_bucket=bucket)


def rule(stack: Stack) -> dict[str, Any]:
    """The rule for crossings."""
    told = (one for one in each(synthesized(stack), "AWS::Events::Rule") if "EventPattern" in one)
    [found] = [one for one in told if one["EventPattern"]["detail-type"] == ["Threshold Crossed"]]
    return found


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({}, None),
        ({"threshold": POPULAR}, {"threshold": ["popular"]}),
        ({"level": 100}, {"level": [{"numeric": ["=", 100]}]}),
        (
            {"threshold": LOUD, "level": Decimal("0.8"), "direction": "down"},
            {"threshold": ["busy"], "level": [{"numeric": ["=", 0.8]}], "direction": ["down"]},
        ),
        ({"level": Decimal("1.0")}, {"level": [{"numeric": ["=", 1]}]}),
    ],
    ids=["all", "a threshold", "a level", "a level downwards", "a whole level"],
)
def test_a_rule_matches_crossings_of_this_table(stack: Stack, arguments: dict[str, Any], detail: object) -> None:
    counters = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, SITE])
    build(ThresholdEvents, stack, table=counters, thresholds=[POPULAR, LOUD]).on_crossed("Rule", **arguments)
    pattern = rule(stack)["EventPattern"]
    assert (pattern["source"], pattern["detail-type"]) == (["dynamodb-counters"], ["Threshold Crossed"])
    [[table, attribute]] = [one["Fn::GetAtt"] for one in pattern["resources"]]
    assert (table[:13], attribute) == ("CountersTable", "Arn")
    assert pattern.get("detail") == detail


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        *(("threshold", one) for one in ("popular", RARE, 1)),
        *(("level", one) for one in (99, "100", 100.0, True, Decimal("0.81"))),
        *(("direction", one) for one in ("both", "UP", True)),
        *(("target", one) for one in ("queue", 1, targets.SqsQueue)),
    ],
)
def test_a_rule_that_nothing_could_match_is_refused(argument: str, wrong: Any) -> None:
    made = build(ThresholdEvents, new_stack(), thresholds=[POPULAR, LOUD])
    with pytest.raises(InvalidArgumentError, match=rf"^invalid {argument}="):
        made.on_crossed(**{"construct_id": "Rule", argument: wrong})


def test_a_rule_for_a_direction_that_its_threshold_has_not_is_refused() -> None:
    made = build(ThresholdEvents, new_stack(), thresholds=[POPULAR, LOUD])
    with pytest.raises(InvalidArgumentError, match=r"^invalid direction='down': expected one of up"):
        made.on_crossed("Down", threshold=POPULAR, direction="down")
    with pytest.raises(InvalidArgumentError, match=r"^invalid level=1: expected one of 100, 1000"):
        made.on_crossed("Share", threshold=POPULAR, level=1)


@pytest.mark.parametrize("level", [Decimal("0.0000001"), 10**10, Decimal(10) ** 40])
def test_a_level_that_eventbridge_cannot_compare_is_refused_in_rules(level: Any) -> None:
    made = build(ThresholdEvents, new_stack(), thresholds=[Threshold("far", VIEWS, at=[level])])
    with pytest.raises(InvalidArgumentError, match=r"^invalid level=.*detail\.level"):
        made.on_crossed("Far", level=level)
    made.on_crossed("All")


def test_the_signer_of_the_documentation_sends_what_standard_webhooks_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md says how."""
    page = (PROJECT / "docs" / "constructs" / "threshold-events.md").read_text()
    [code] = re.findall(r'SIGNER = """(.*?)"""', page, re.DOTALL)
    key, sent = b"a key of any bytes", list[Any]()

    def send(request: Any, timeout: int) -> io.BytesIO:
        sent.append(request)
        return io.BytesIO()

    secret = "whsec_" + base64.b64encode(key).decode()
    client = SimpleNamespace(get_secret_value=lambda **_: {"SecretString": secret})
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=lambda _: client))
    monkeypatch.setenv("SECRET", "webhook")
    monkeypatch.setenv("URL", "https://example.com/hooks")
    monkeypatch.setattr("urllib.request.urlopen", send)
    function: dict[str, Any] = {}
    exec(code, function)
    [record] = crossed(BUSY)
    detail = json.loads(event_entry(record["dynamodb"]["NewImage"], ARN, "")["Detail"])
    function["handler"]({"detail": detail}, None)
    [request] = sent
    headers = {name.lower(): value for name, value in request.header_items()}
    assert (request.get_method(), request.full_url) == ("POST", "https://example.com/hooks")
    assert json.loads(request.data) == {"type": "threshold.crossed", "timestamp": detail["at"], "data": detail}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.data
    assert headers["webhook-id"] == detail["id"]
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert headers["webhook-signature"] == "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
