"""Counts the packed views of a blog."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from examples.packed.declarations import (
    ACTIVE,
    LATEST,
    ROLLING,
    SITE,
    SIZES,
    VIEWS,
    VIEWS_IN_PAGES,
    VISITORS,
    VISITORS_IN_PAGES,
)


class PackedStack(Stack):
    """The counts of `BlogStack`, of views that share items."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact view counts of a blog on DynamoDB, of packed views")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[VIEWS, SITE, VISITORS])
        aggregator.add_aggregate(VIEWS_IN_PAGES, VISITORS_IN_PAGES, ACTIVE, SIZES, LATEST)
        WindowedCounter(self, "Rolling", table=counters, window=ROLLING)

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
