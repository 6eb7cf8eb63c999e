"""The runtime as a layer, for functions of the user's own."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_place
from cdk_dynamodb_counters._runtimes import RUNTIMES
from cdk_dynamodb_counters.runtime_code import runtime_code


class CountersLayer(lambda_.LayerVersion):
    """A layer with the files that the aggregator runs: ``import dynamodb_counters`` works in functions that use it.

    Parameters
    ----------
    scope : Construct
        Where it stands.
    construct_id : str
        Its name there.

    Raises
    ------
    InvalidArgumentError
        An argument is not allowed.

    Examples
    --------
    >>> layer = CountersLayer(stack, "CountersLayer")  # doctest: +SKIP
    >>> function.add_layers(layer)  # doctest: +SKIP
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        require_place(scope, construct_id)
        super().__init__(
            scope,
            construct_id,
            code=runtime_code(prefix="python"),
            compatible_runtimes=list(RUNTIMES),
            compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
            description="dynamodb_counters and AWS Lambda Powertools",
        )
