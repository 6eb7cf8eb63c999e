"""Counts the jobs of customers."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from examples.jobs.declarations import JOBS, JOBS_24H


class JobsStack(Stack):
    """Jobs per customer, in all and in the last 24 hours."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact job counts per customer on DynamoDB")
        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[JOBS])
        WindowedCounter(self, "LastDay", table=counters, window=JOBS_24H)

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
