"""Counts the orders of an existing table in another one."""

from __future__ import annotations

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from examples.orders.declarations import BY_STATUS, CUSTOMERS, LAST_DAY, ORDERS


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

        CfnOutput(self, "SourceTableName", value=orders.table_name)
        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
