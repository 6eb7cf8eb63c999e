"""What an aggregator counts, wherever it is declared, of its own and other tables; what crosses, and what it meters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from aws_cdk.aws_sns import Topic

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from cdk_dynamodb_counters.stream_aggregator import WindowedCounter
from counters_lambda.http_api.resources import openapi
from dynamodb_counters._declarations import Aggregate, Count, Counter, Distinct, Threshold, Window
from dynamodb_counters._declarations.codec import decode, described
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.declared import ACTIVE, MEMO, PLAYERS, POPULAR, ROLLING, SITE, VIEW, VIEWS
from tests.unit.infra.place import ARN, ORDERS, STREAM_ARN, own_table
from tests.unit.infra.support import build, declared, environment, granted, new_app, new_stack, specs, synthesized


def test_window_of_another_stack_reaches_the_aggregator_whichever_comes_first() -> None:
    """It may stand in another stack than the table, too."""
    app = new_app()
    before, data, home, after = (Stack(app, name) for name in ("Before", "Data", "Home", "After"))
    for stack in (before, after):
        Topic(stack, "Something")  # CloudFormation refuses an empty stack
    counters = DedupCounterTable(data, "Counters")
    WindowedCounter(before, "Rolling", table=counters, window=ROLLING)
    aggregator = StreamAggregator(home, "Aggregator", table=counters, aggregates=[VIEWS])
    late = Window("late", VIEW, pk="CLIENT#{clientId}", time="time")
    WindowedCounter(after, "Late", table=counters, window=late)
    aggregator.add_aggregate(SITE)
    assert declared(synthesized(home)) == ["late", "rolling", "site", "views"]


def test_the_aggregator_knows_what_attributes_of_its_events_must_be() -> None:
    stack = new_stack()
    sale = replace(VIEWS, source=replace(VIEW, attributes={"url": str, "time": datetime, "clientId": str}))
    counters = DedupCounterTable(stack, "Counters")
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[sale])
    assert decode(environment(synthesized(stack))["DECLARATIONS"]) == (sale,)


@pytest.mark.usefixtures("aggregator")
def test_a_second_aggregator_of_a_class_of_its_own_is_refused(stack: Stack, counters: DedupCounterTable) -> None:
    class Own(StreamAggregator):
        pass

    with pytest.raises(InvalidArgumentError, match=r"one StreamAggregator per table.*'Test/Aggregator'"):
        Own(stack, "Second", table=counters)


def test_aggregates_of_several_parts_and_over_others_may_come_in_any_order(aggregator: StreamAggregator) -> None:
    aggregator.add_aggregate(ACTIVE)
    aggregator.add_aggregate(PLAYERS)
    aggregator.add_aggregate(Distinct("visitors", VIEW, pk="URL#{url}", sk="VISITORS", member="clientId"))
    assert declared(synthesized(aggregator)) == ["active", "players", "views", "visitors", "visitors-members"]


def test_declarations_over_an_event_are_known_where_it_comes_in(stack: Stack, counters: DedupCounterTable) -> None:
    build(EventIngest, stack, table=counters)
    other = Aggregate("notes", MEMO, pk="NOTES", sk="STATISTICS", measures={"notes": Count()})
    build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, PLAYERS, ACTIVE, other])
    build(WindowedCounter, stack, table=counters)
    assert _counting(stack) == [(PLAYERS, ROLLING, VIEWS)] * 2


def test_events_that_nothing_counts_have_no_declarations_to_fit(stack: Stack, counters: DedupCounterTable) -> None:
    build(StreamAggregator, stack, table=counters)
    build(EventIngest, stack, table=counters, event=MEMO)
    assert _counting(stack) == []


def _counting(stack: Stack) -> list[Any]:
    functions = specs(synthesized(stack), "AWS::Lambda::Function")
    variables = [function["Environment"]["Variables"] for function in functions]
    return [decode(values["AGGREGATES"]) for values in variables if "AGGREGATES" in values]


def test_declarations_that_an_api_shows_uncounted_are_a_warning(stack: Stack, counters: DedupCounterTable) -> None:
    # Any construct may come first: synth warns once everything is declared.
    build(CounterApi, stack, table=counters, shown=[VIEWS, ROLLING, SITE, PLAYERS])
    build(CounterApi, stack, table=counters, shown=[VIEWS, ROLLING], construct_id="Counted")
    incremented = build(CounterApi, stack, table=counters, shown=[SITE], construct_id="Incremented")
    build(EventIngest, stack, table=counters)
    build(EventIngest, stack, table=counters, event=MEMO, construct_id="Notes")
    build(WindowedCounter, stack, table=counters)
    build(StreamAggregator, stack, table=counters)
    id_ = "Annotation::dynamodb-counters:nothingCounts"
    Validations.of(incremented).acknowledge(Acknowledgment(id=id_, reason="It is incremented."))

    warnings = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("^Nothing in this app counts"))

    assert {message.id: str(message.entry.data).partition(":")[0] for message in warnings} == {
        "/Test/Api": "Nothing in this app counts 'players', 'site', which this API shows",
        "/Test/Notes": "Nothing in this app counts 'memo', which this ingest takes",
    }


def test_a_counter_is_all_that_a_deployment_needs_and_an_api_serves_it(stack: Stack) -> None:
    stock = Counter("stock", by=("shop", "sku"))
    table = build(DedupCounterTable, stack)
    build(StreamAggregator, stack, table=table, aggregates=[stock])
    build(CounterApi, stack, table=table, shown=[stock])
    functions = synthesized(stack).find_resources("AWS::Lambda::Function").values()
    assert {"Declarations": described([stock])} in [function.get("Metadata") for function in functions]
    assert openapi([stock])["paths"].keys() == {"/v1/stock", "/v1/batch"}


def test_the_order_of_declarations_does_not_show() -> None:
    assert list(described([VIEWS, ROLLING])) == list(described([ROLLING, VIEWS])) == ["rolling", "view", "views"]


def test_context_flag_for_emulators_adds_variables_and_leaves_out_what_they_do_not_send() -> None:
    plain, flagged = (
        synthesized(build(StreamAggregator, stack)).to_json()["Resources"]
        for stack in (new_stack(), new_stack(single_shard_stream="true"))
    )
    [name] = [name for name, resource in flagged.items() if resource["Type"] == "AWS::Lambda::Function"]
    variables = flagged[name]["Properties"]["Environment"]["Variables"]
    assert variables.pop("SINGLE_SHARD") == "true"
    assert flagged == {
        name: resource for name, resource in plain.items() if "Deployed" not in name and "Watch" not in name
    }


def kept_days(retentions: list[timedelta | None], **arguments: Any) -> int:
    """Return how many days the bucket of a table with such events keeps objects."""
    aggregator = build(StreamAggregator, new_stack(), aggregates=[], **arguments)
    for number, retention in enumerate(retentions):
        # Declared after the bucket was built.
        event = replace(VIEW, name=f"event{number}", sk=f"E{number}#{{time}}", retention=retention)
        aggregator.add_aggregate(replace(VIEWS, name=f"views{number}", sk=f"S{number}", source=event))
    return int(aggregator._kept_days(arguments.get("quarantine_retention", Duration.days(90))))


def test_the_bucket_keeps_objects_as_long_as_events_for_a_week_at_least_and_a_month_at_most() -> None:
    days = timedelta(days=1)
    assert kept_days([None]) == 30
    assert kept_days([None], quarantine_retention=Duration.days(20)) == 20
    assert kept_days([100 * days, 20.5 * days, None]) == 21
    assert kept_days([days, 30 * days]) == 7
    assert kept_days([None], quarantine_retention=Duration.days(2)) == 7


def test_metrics_take_what_those_of_cdk_take(stack: Stack, counters: DedupCounterTable) -> None:
    aggregator = build(StreamAggregator, stack, table=counters, service_name="blog")
    late = aggregator.metric("LateEvents", period=Duration.minutes(1), statistic="Maximum")
    named = late.metric_name, late.namespace, late.dimensions
    assert named == ("LateEvents", "DynamoDBCounters", {"service": "blog"})
    assert (late.period.to_seconds(), late.statistic) == (60, "Maximum")
    assert aggregator.metric_iterator_age(statistic="p99").statistic == "p99"
    assert aggregator.metric("Records").period.to_seconds() == 300
    with pytest.raises(TypeError, match="statistik"):
        aggregator.metric("LateEvents", statistik="Maximum")


@pytest.mark.parametrize("apart", [False, True])
def test_a_stream_that_nothing_polls_fires_an_alarm(stack: Stack, *, apart: bool) -> None:
    """The pulse of one stream would hide that nothing polls the other."""
    source = dynamodb.Table.from_table_attributes(stack, "Orders", table_name="events", table_stream_arn=STREAM_ARN)
    build(StreamAggregator, stack, **({"source_table": source, "aggregates": [ORDERS]} if apart else {}))
    alarms = [spec for spec in specs(synthesized(stack), "AWS::CloudWatch::Alarm") if "TreatMissingData" in spec]
    silent = [alarm["MetricName"] for alarm in alarms if alarm["TreatMissingData"] == "breaching"]
    assert sorted(silent) == ["Errors", "IteratorAge", *(["PolledEventCount"] * 2 if apart else [])]
    [lag] = [alarm for alarm in alarms if alarm["MetricName"] == "IteratorAge"]
    rules = [spec.get("ScheduleExpression") for spec in specs(synthesized(stack), "AWS::Events::Rule")]
    assert (lag["Period"], lag["EvaluationPeriods"], "rate(15 minutes)" in rules) == (2 * 15 * 60, 1, True)


KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012"


def test_an_import_is_known_by_its_stream_as_its_records_name_it(stack: Stack) -> None:
    source = dynamodb.Table.from_table_attributes(stack, "Orders", table_name="events", table_stream_arn=STREAM_ARN)
    build(StreamAggregator, stack, source_table=source, aggregates=[ORDERS])
    assert environment(synthesized(stack))["SOURCE_TABLE_ARN"] == ARN


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
    build(StreamAggregator, stack, source_table=source, aggregates=[ORDERS], table=table, on_failure_bucket=bucket)
    notes = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("encryption_key="))
    expected = ["/Test/Own"] if is_named else ["/Test/Own", "/Test/Orders", "/Test/Aggregator/Role"]
    assert sorted(message.id for message in notes) == sorted(expected)
    allowed = {action for action, resource in granted(synthesized(stack)) if resource == KEY_ARN}
    assert ({"kms:Decrypt", "kms:GenerateDataKey*"} <= allowed) == is_named


def test_counts_may_lie_in_a_table_of_the_first_version(stack: Stack) -> None:
    counters = DedupCounterTable(stack, "Counters", table=own_table(stack, dynamodb.Table))
    build(StreamAggregator, stack, table=counters)
    template = synthesized(stack)
    [logical_id] = template.find_resources("AWS::DynamoDB::Table")
    [mapping] = specs(template, "AWS::Lambda::EventSourceMapping")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [logical_id, "StreamArn"]}


LOUD = Threshold("busy", SITE, at=[Decimal("0.8"), 1], direction="both", once=True)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_aggregator_knows_the_thresholds_whichever_comes_first(stack: Stack, is_first: bool) -> None:
    counters = build(DedupCounterTable, stack)
    steps: list[Callable[[], object]] = [
        lambda: build(ThresholdEvents, stack, table=counters, thresholds=[LOUD, POPULAR]),
        lambda: build(StreamAggregator, stack, table=counters, aggregates=[VIEWS, SITE]),
    ]
    for step in steps if is_first else reversed(steps):
        step()
    functions = {spec["Handler"].split(".")[-2]: spec for spec in specs(synthesized(stack), "AWS::Lambda::Function")}
    entries = decode(functions["aggregator"]["Environment"]["Variables"]["DECLARATIONS"])
    armed = {entry.name: [threshold.name for threshold in getattr(entry, "_thresholds", ())] for entry in entries}
    assert armed == {"views": ["popular"], "site": ["busy"]}


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
    patterns = [rule.get("EventPattern", {}) for rule in specs(synthesized(stack), "AWS::Events::Rule")]
    [pattern] = [pattern for pattern in patterns if pattern.get("detail-type") == ["Threshold Crossed"]]
    assert pattern["source"] == ["dynamodb-counters"]
    [[table, attribute]] = [resource["Fn::GetAtt"] for resource in pattern["resources"]]
    assert (table[:13], attribute) == ("CountersTable", "Arn")
    assert pattern.get("detail") == detail
