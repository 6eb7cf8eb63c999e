"""Counts the paths that players of a game find."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from examples.leaderboard.declarations import LEADERBOARD, PLAYERS


class LeaderboardStack(Stack):
    """Paths per player and in all, players per number of paths, active players, top players."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact leaderboard of a game on DynamoDB")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[PLAYERS, LEADERBOARD])

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
