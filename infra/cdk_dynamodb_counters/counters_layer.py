"""The runtime as a Lambda layer."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_dynamodb_counters._arguments import require_place
from cdk_dynamodb_counters._staging import staged_code
from cdk_dynamodb_counters.function_options import RUNTIMES


class CountersLayer(lambda_.LayerVersion):
    """A layer with the runtime, for functions of your own that ``import dynamodb_counters``.

    Parameters
    ----------
    scope, construct_id
        Parent construct, and id within it.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid.

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
            code=staged_code(prefix="python"),
            compatible_runtimes=list(RUNTIMES),
            compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
            description="dynamodb_counters and AWS Lambda Powertools",
        )
