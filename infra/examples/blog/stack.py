"""Counts the views of a blog."""

from __future__ import annotations

from aws_cdk import Acknowledgment, CfnOutput, RemovalPolicy, Stack, Validations
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_events_targets import SqsQueue
from aws_cdk.aws_sqs import Queue
from constructs import Construct

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    LivePage,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from examples.blog.declarations import ACTIVE, LATEST, POPULAR, ROLLING, SITE, SIZES, VIEW, VIEW_SCHEMA, VIEWS, VISITORS


class BlogStack(Stack):
    """Views per url, of the site and in 24 hours, visitors, response sizes; a public API, a live page, thresholds."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact view counts of a blog on DynamoDB")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[VIEWS, SITE, VISITORS])
        aggregator.add_aggregate(ACTIVE, SIZES, LATEST)
        WindowedCounter(self, "Rolling", table=counters, window=ROLLING)
        crossed = ThresholdEvents(self, "Crossed", table=counters, thresholds=[POPULAR])
        inbox = Queue(self, "Inbox", enforce_ssl=True, removal_policy=RemovalPolicy.RETAIN)
        Validations.of(inbox).acknowledge(
            Acknowledgment(id="AwsSolutions::AwsSolutions-SQS3", reason="The demo reads it; no function does.")
        )
        crossed.on_crossed("Popular", target=SqsQueue(inbox))
        view = {"url": "{page}", "time": "{time}", "clientId": "{client}"}
        page = LivePage(
            title="Views of the blog",
            total=SITE,
            top=VIEWS,
            window=ROLLING,
            threshold=POPULAR,
            active=ACTIVE,
            beacon=view,
        )
        api = CounterApi(
            self,
            "Api",
            table=counters,
            shown=[VIEWS, SITE, ROLLING, ACTIVE],
            authorizer=HttpNoneAuthorizer(),
            page=page,
        )
        ingest = EventIngest(
            self,
            "Ingest",
            table=counters,
            event=VIEW,
            schema=VIEW_SCHEMA,
            http_api=api.http_api,
            authorizer=HttpNoneAuthorizer(),
        )
        for public in (api, ingest):
            Validations.of(public).acknowledge(
                Acknowledgment(
                    id="Annotation::dynamodb-counters:publicEndpoint",
                    reason="A public blog: readers post views and see the page without credentials, throttled.",
                )
            )

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
        CfnOutput(self, "InboxUrl", value=inbox.queue_url)
        CfnOutput(self, "ApiId", value=api.http_api.api_id)
