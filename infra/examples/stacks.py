"""The stacks of the examples; each one's declarations are in a module of its name."""

from __future__ import annotations

from aws_cdk import Acknowledgment, CfnOutput, RemovalPolicy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_events_targets import SqsQueue
from aws_cdk.aws_sqs import Queue
from constructs import Construct, IConstruct

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    LivePage,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from examples import blog, jobs, leaderboard, packed, pages
from examples.orders import BY_STATUS, CUSTOMERS, LAST_DAY, ORDERS


def _output(scope: Construct, **outputs: str) -> None:
    for name, value in outputs.items():
        CfnOutput(scope, name, value=value)


def _output_names(counters: DedupCounterTable, aggregator: StreamAggregator) -> None:
    names = {"AggregatorName": aggregator.function.function_name, "TableName": counters.table_name}
    _output(Stack.of(counters), **names, AggregatorLogGroup=aggregator.log_group.log_group_name)


def _acknowledge(construct: IConstruct, finding: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=finding, reason=reason))


class BlogStack(Stack):
    """Views per url, of the site and in 24 hours, visitors, response sizes; a public API, a live page, thresholds."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact view counts of a blog on DynamoDB")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        counted = [blog.VIEWS, blog.SITE, blog.VISITORS]
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=counted)
        aggregator.add_aggregate(blog.ACTIVE, blog.SIZES, blog.LATEST, blog.BOARD)
        WindowedCounter(self, "Rolling", table=counters, window=blog.ROLLING)
        crossed = ThresholdEvents(self, "Crossed", table=counters, thresholds=[blog.POPULAR])
        inbox = Queue(self, "Inbox", enforce_ssl=True, removal_policy=RemovalPolicy.RETAIN)
        _acknowledge(inbox, "AwsSolutions::AwsSolutions-SQS3", "The demo reads it; no function does.")
        crossed.on_crossed("Popular", target=SqsQueue(inbox))
        page = LivePage(
            title="Views of the blog",
            total=blog.SITE,
            top=blog.VIEWS,
            window=blog.ROLLING,
            threshold=blog.POPULAR,
            active=blog.ACTIVE,
            beacon={"url": "{page}", "time": "{time}", "clientId": "{client}"},
        )
        api = CounterApi(
            self,
            "Api",
            table=counters,
            shown=[blog.VIEWS, blog.SITE, blog.ROLLING, blog.ACTIVE],
            authorizer=HttpNoneAuthorizer(),
            page=page,
        )
        ingest = EventIngest(
            self,
            "Ingest",
            table=counters,
            event=blog.VIEW,
            schema=blog.VIEW_SCHEMA,
            http_api=api.http_api,
            authorizer=HttpNoneAuthorizer(),
        )
        reason = "A public blog: readers post views and see the page without credentials, throttled."
        for public in (api, ingest):
            _acknowledge(public, "Annotation::dynamodb-counters:publicEndpoint", reason)
        _output_names(counters, aggregator)
        _output(self, InboxUrl=inbox.queue_url, ApiId=api.http_api.api_id)


class JobsStack(Stack):
    """Jobs per customer, in all and in the last 24 hours."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact job counts per customer on DynamoDB")
        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[jobs.JOBS])
        WindowedCounter(self, "LastDay", table=counters, window=jobs.JOBS_24H)
        _output_names(counters, aggregator)


class LeaderboardStack(Stack):
    """Paths per player and in all, players per number of paths, active players, top players."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact leaderboard of a game on DynamoDB")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        counted = [leaderboard.PLAYERS, leaderboard.LEADERBOARD]
        _output_names(counters, StreamAggregator(self, "Aggregator", table=counters, aggregates=counted))


class OrdersStack(Stack):
    """The shop's own table, as it is; and a table of counts, which its stream feeds."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact counts of an existing DynamoDB table")
        orders = dynamodb.Table(
            self,
            "Orders",
            partition_key=dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="SK", type=dynamodb.AttributeType.STRING),
            time_to_live_attribute="expiresAt",
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=RemovalPolicy.RETAIN,
            # All that the table needs for being counted.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        )

        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(
            self, "Aggregator", table=counters, source_table=orders, aggregates=[ORDERS, BY_STATUS, CUSTOMERS]
        )
        WindowedCounter(self, "LastDay", table=counters, window=LAST_DAY)
        _output_names(counters, aggregator)
        _output(self, SourceTableName=orders.table_name)


class PackedStack(Stack):
    """The counts of `BlogStack`, of views that share items."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact view counts of a blog on DynamoDB, of packed views")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        counted = [packed.VIEWS, packed.SITE, packed.VISITORS]
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=counted)
        aggregator.add_aggregate(packed.VIEWS_IN_PAGES, packed.VISITORS_IN_PAGES)
        aggregator.add_aggregate(packed.ACTIVE, packed.SIZES, packed.LATEST, packed.BOARD)
        WindowedCounter(self, "Rolling", table=counters, window=packed.ROLLING)
        _output_names(counters, aggregator)


class PagesStack(Stack):
    """Pages, and their views by different users: per page and in all."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact counts of pages and their views on DynamoDB")
        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(
            self, "Aggregator", table=counters, aggregates=[pages.VIEWS, pages.PAGES, pages.TOTAL, pages.VISITORS]
        )
        _output_names(counters, aggregator)


def stacks() -> dict[str, type[Stack]]:
    """Return the stacks by name: `BlogStack` is deployed as `CountersBlog`."""
    kinds = (BlogStack, JobsStack, LeaderboardStack, OrdersStack, PackedStack, PagesStack)
    return {f"Counters{kind.__name__.removesuffix('Stack')}": kind for kind in kinds}
