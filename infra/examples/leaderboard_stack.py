"""Counts the paths that players of a game find."""

from __future__ import annotations

from typing import Final

from aws_cdk import Acknowledgment, CfnOutput, Stack, Validations
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from examples.leaderboard_declarations import LEADERBOARD, PLAYERS

# As cdk-nag names the finding: the table's logical ID is made of its path, "Counters/Table".
_INDEXES: Final = "AwsSolutions::AwsSolutions-IAM5[Resource::<CountersTable751C54B9.Arn>/index/*]"


class LeaderboardStack(Stack):
    """Paths per player and in all, players per number of paths, active players, top players.

    Parameters
    ----------
    scope : Construct
        The app.
    construct_id : str
        The stack's name.

    Examples
    --------
    >>> LeaderboardStack(app, "CountersLeaderboard")  # doctest: +SKIP
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id, description="Exact leaderboard of a game on DynamoDB")
        counters = DedupCounterTable(self, "Counters", ranking_index=True)
        aggregator = StreamAggregator(self, "Aggregator", table=counters, aggregates=[PLAYERS, LEADERBOARD])
        Validations.of(aggregator).acknowledge(
            Acknowledgment(
                id=_INDEXES, reason="The only index holds keys of this table, which the role may read anyway."
            )
        )

        CfnOutput(self, "TableName", value=counters.table_name)
        CfnOutput(self, "AggregatorName", value=aggregator.function.function_name)
        CfnOutput(self, "AggregatorLogGroup", value=aggregator.log_group.log_group_name)
