"""Alarms watch metrics that exist: AWS's own, or those that the template's functions emit.

The functions run with the template's environment variables on an in-memory table, and the tests read their logs.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_cdk import NestedStack, Stack, Stage
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from dynamodb_counters.handlers import _metering
from simulation.memory_table import MemoryTable
from tests.unit.handlers.test_notifier import BUSY, Bus, crossed
from tests.unit.http.functions import Function, Pipeline, message
from tests.unit.http.handlers import NOW, Queue, request
from tests.unit.infra.support import SITE, VIEWS, build, new_app, new_stack, synthesized
from tests.unit.quarantine.buckets import Bucket

_MAPPING = {"PolledEventCount", "OnFailureDestinationDeliveredEventCount"}
_FUNCTION = {"IteratorAge", "Errors", "Throttles", "DestinationDeliveryFailures"}
_QUEUE = {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"}
AWS_METRICS = {
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    ("AWS/Lambda", "FunctionName", "AWS::Lambda::Function"): _FUNCTION,
    ("AWS/Lambda", "EventSourceMappingUUID", "AWS::Lambda::EventSourceMapping"): _MAPPING,
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "QueueName", "AWS::SQS::Queue"): _QUEUE,
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
    ("AWS/ApiGateway", "ApiId", "AWS::ApiGatewayV2::Api"): {"Count", "4xx", "5xx", "Latency"},
}
"""Metrics that AWS emits, by namespace, dimension and the type of resource that the dimension names."""

TABLE = "counters"
Metric = tuple[str, str, tuple[tuple[str, str], ...]]
"""Namespace, name, and dimensions with their values."""


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    stack = new_stack()
    counters = build(DedupCounterTable, stack)
    watched = {"table": counters}
    build(StreamAggregator, stack, aggregates=[VIEWS, SITE], **watched)
    build(WindowedCounter, stack, table=counters)
    build(ThresholdEvents, stack, **watched)
    build(CounterApi, stack, shown=[VIEWS, SITE], **watched)
    build(EventIngest, stack, **watched)
    found: dict[str, Any] = synthesized(stack).to_json()["Resources"]
    return found


@pytest.fixture(scope="module")
def emitted(resources: dict[str, Any]) -> Counter[Metric]:
    """Run every function of the template and return the sums of the metrics it logs, zeros included."""
    table, queue = MemoryTable(lambda: NOW, name=TABLE), Queue()
    log = io.StringIO()
    with redirect_stdout(log), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_metering, "add_metrics", add_all)
        made = functions(resources, table)
        count(table, made)
        # The rule of the template invokes the function with this.
        made["aggregator"]({"source": "aws.events", "detail-type": "Scheduled Event"})
        assert made["notifier"]({"Records": crossed(BUSY, units=[1, 1])}) == {"batchItemFailures": []}
        api = functions(resources, table)["api"]
        assert api(request("GET", "/v1/site"))["statusCode"] == 200
        assert api(request("GET", "/v1/nothing"))["statusCode"] == 404
        receiver, headers = functions(resources, queue)["ingest_http"], {"content-type": "application/json"}
        assert receiver(request("POST", "/events", body=message(view(0)), headers=headers))["statusCode"] == 202
        assert receiver(request("POST", "/events", body="[]", headers=headers))["statusCode"] == 400
    return sums(log.getvalue())


def add_all(metrics: Metrics, values: Mapping[str, float], unit: MetricUnit = MetricUnit.Count) -> None:
    """Stand in for `add_metrics`, so that no situation need be made to see a metric's name."""
    for name, value in values.items():
        metrics.add_metric(name=name, unit=unit, value=value)


def functions(resources: dict[str, Any], client: object) -> dict[str, Function]:
    """Load the template's functions with their environment variables; references resolve to the one table or queue."""
    found = {}
    for resource in resources.values():
        if resource["Type"] == "AWS::Lambda::Function":
            given = resource["Properties"]["Environment"]["Variables"]
            variables = {name: value if isinstance(value, str) else TABLE for name, value in given.items()}
            handler = resource["Properties"]["Handler"]
            found[handler.split(".")[-2]] = Function(handler, variables, client, {"s3": Bucket(NOW), "events": Bus()})
    return found


def count(table: MemoryTable, made: dict[str, Function]) -> None:
    """Make events accepted, duplicate, rejected, counted, redelivered, quarantined and late."""
    pipeline = Pipeline(table, made["ingest_queue"], made["aggregator"])
    assert pipeline.accept(message(view(0), view(0), view(1)), "no JSON", message({"url": "/"})) == []
    table.put_item(TableName=TABLE, Item={"pk": {"S": "p"}, "sk": {"S": "s"}, "_type": {"S": "view"}})
    assert pipeline.accept(message(view(60 * 26))) == []
    records = pipeline.records()
    pipeline.count(records)
    pipeline.count(records)


def view(minutes_ago: int) -> dict[str, str]:
    moment = datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=minutes_ago)
    return {"url": "/", "time": moment.isoformat(), "clientId": "c"}


def sums(log: str) -> Counter[Metric]:
    """Read embedded metrics as CloudWatch does."""
    found: Counter[Metric] = Counter()
    for line in log.splitlines():
        document = json.loads(line)
        for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
            for names in directive["Dimensions"]:
                dimensions = tuple(sorted((name, document[name]) for name in names))
                for metric in directive["Metrics"]:
                    found[directive["Namespace"], metric["Name"], dimensions] += sum(document[metric["Name"]])
    return found


def of_alarms(resources: dict[str, Any]) -> Iterator[Metric]:
    for resource in resources.values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            alarm = resource["Properties"]
            dimensions = ((one["Name"], text(one["Value"])) for one in alarm["Dimensions"])
            yield alarm["Namespace"], alarm["MetricName"], tuple(sorted(dimensions))


def text(value: Any) -> str:
    """Replace a reference, or a queue's name attribute, by the logical id of the resource."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return "".join(map(text, value["Fn::Join"][1]))
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])


def exists(metric: Metric, resources: dict[str, Any], emitted: Counter[Metric]) -> bool:
    namespace, name, dimensions = metric
    if not namespace.startswith("AWS/"):
        return metric in emitted
    if len(dimensions) == 2:
        function, alias = dict(dimensions)["Resource"].split(":")
        aliases = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::Lambda::Alias"]
        dimensions, known = dimensions[:1], [(text(one["FunctionName"]), one["Name"]) for one in aliases]
        if (function, alias) not in known:
            return False
    [(dimension, of)] = dimensions
    resource = resources[of]
    # Lambda emits these only if the mapping asks for them.
    asked = dimension != "EventSourceMappingUUID" or "EventCount" in resource["Properties"]["MetricsConfig"]["Metrics"]
    return name in AWS_METRICS[namespace, dimension, resource["Type"]] and asked


def test_every_alarm_watches_a_metric_that_exists(resources: dict[str, Any], emitted: Counter[Metric]) -> None:
    watched = list(of_alarms(resources))
    assert len(watched) == 5 + 6 + 3
    assert [metric for metric in watched if not exists(metric, resources, emitted)] == []


def test_the_metrics_say_what_was_done(emitted: Counter[Metric]) -> None:
    by_service: dict[str, dict[str, float]] = {}
    for (namespace, name, dimensions), value in (+emitted).items():
        assert namespace == "DynamoDBCounters"
        [(dimension, service)] = dimensions
        assert dimension == "service"
        by_service.setdefault(service, {})[name] = value
    aggregator = by_service["Test/Aggregator"]
    assert aggregator.pop("WriteUnits") > 0
    assert by_service == {
        # Four records, each delivered twice; one is malformed, one too late for the window. Two aggregates, one bucket.
        "Test/Aggregator": {
            "Records": 8,
            "ItemsUpdated": 3,
            "AlreadyCounted": 3,
            "Quarantined": 1,
            "LateEvents": 2,
            # One was counted when it came; one in quarantine and two in the bucket, by the schedule.
            "Uncounted": 4,
        },
        "Test/Crossed": {"CrossingsDelivered": 2},
        "Test/Ingest": {
            "EventsAccepted": 3,
            "EventsDuplicate": 1,
            "EventsRejected": 2,
        },
    }


def test_a_stage_and_a_nested_stack_are_named_as_deployed() -> None:
    stack = Stack(Stage(new_app(), "Dev"), "Counters")
    nested = NestedStack(stack, "Nested")
    assert build(StreamAggregator, nested).service_name == "Dev-Counters/Nested/Aggregator"


@pytest.mark.parametrize("construct", [StreamAggregator, ThresholdEvents, EventIngest, CounterApi])
@pytest.mark.parametrize("names", [("Zähler", "Zöhler"), ("x" * 250 + "a", "x" * 250 + "b"), ("日本", "東京")])
def test_a_default_name_that_cloudwatch_would_refuse_is_made_one_it_takes(
    construct: Any, names: tuple[str, str], stack: Stack
) -> None:
    """It still differs from every other."""
    made = [
        build(construct, stack, construct_id=name, table=DedupCounterTable(stack, f"Table{name}")).service_name
        for name in names
    ]
    assert len({*made}) == 2
    for name in made:
        assert re.fullmatch(r"[\x20-\x7e]{1,255}", name)


def test_a_default_name_is_as_long_as_cloudwatch_takes(stack: Stack) -> None:
    longest = "x" * (255 - len("Test/"))
    assert build(CounterApi, stack, construct_id=longest).service_name == f"Test/{longest}"
