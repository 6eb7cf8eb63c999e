"""Counts pages and their views."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from examples.pages.declarations import PAGES, TOTAL, VIEWS, VISITORS


class PagesStack(Stack):
    """Pages, and their views by different users: per page and in all."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact counts of pages and their views on DynamoDB")
        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[VIEWS, PAGES, TOTAL, VISITORS])

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
