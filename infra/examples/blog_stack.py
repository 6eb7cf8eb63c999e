"""Counts the views of a blog."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from examples.blog_declarations import ROLLING, SITE, VIEWS, VISITORS


class BlogStack(Stack):
    """Views per url, of the site, per visitor, and per url in the last 24 hours.

    Parameters
    ----------
    scope : Construct
        The app.
    construct_id : str
        The stack's name.

    Examples
    --------
    >>> BlogStack(app, "CountersBlog")  # doctest: +SKIP
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact view counts of a blog on DynamoDB")
        counters = DedupCounterTable(self, "Counters")
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[VIEWS, SITE, VISITORS])
        WindowedCounter(self, "Rolling", table=counters, window=ROLLING)

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
