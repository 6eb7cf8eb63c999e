"""CloudWatch metrics of the runtime and of what the constructs are made of, and dashboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

NAMESPACE: Final = "DynamoDBCounters"
"""CloudWatch namespace of the runtime's own metrics."""


def new_metric(namespace: str, name: str, dimensions: dict[str, str], **props: Any) -> cloudwatch.Metric:
    """Return a metric of sums of 5 minutes, unless ``props`` say otherwise."""
    defaults = {"period": Duration.minutes(5), "statistic": "Sum"}
    return cloudwatch.Metric(namespace=namespace, metric_name=name, dimensions_map=dimensions, **{**defaults, **props})


def of_function(function: lambda_.IFunction, name: str, **props: Any) -> cloudwatch.Metric:
    return new_metric("AWS/Lambda", name, {"FunctionName": function.function_name}, **props)


def of_mapping(mapping: lambda_.EventSourceMapping, name: str, **props: Any) -> cloudwatch.Metric:
    return new_metric("AWS/Lambda", name, {"EventSourceMappingUUID": mapping.event_source_mapping_id}, **props)


def of_queue(queue: sqs.Queue, name: str, **props: Any) -> cloudwatch.Metric:
    return new_metric("AWS/SQS", name, {"QueueName": queue.queue_name}, **{"statistic": "Maximum", **props})


def of_api(http_api: apigateway.IHttpApi, name: str, **props: Any) -> cloudwatch.Metric:
    return new_metric("AWS/ApiGateway", name, {"ApiId": http_api.api_id}, **props)


def graphs_of_api(http_api: apigateway.IHttpApi) -> dict[str, list[cloudwatch.Metric]]:
    return {
        "Requests": [of_api(http_api, name) for name in ("Count", "4xx", "5xx")],
        "Latency (ms)": [of_api(http_api, "Latency", statistic=statistic) for statistic in ("p99", "p50")],
    }


def build_dashboard(
    scope: Construct, graphs: Mapping[str, Sequence[cloudwatch.Metric]], alarms: Sequence[cloudwatch.Alarm] = ()
) -> cloudwatch.Dashboard:
    """Build a dashboard: the states of alarms, then two graphs per row."""
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=Duration.hours(3))
    if alarms:
        dashboard.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=list(alarms)))
    widgets = [cloudwatch.GraphWidget(title=title, left=list(left), width=12) for title, left in graphs.items()]
    for start in range(0, len(widgets), 2):
        dashboard.add_widgets(*widgets[start : start + 2])
    return dashboard
