"""How messages and records gather before a function is invoked."""

from __future__ import annotations

from typing import Final, NamedTuple

from aws_cdk import Duration, Token
from aws_cdk import aws_lambda as lambda_

from cdk_dynamodb_counters._arguments import require_duration, require_integer
from dynamodb_counters._declarations import Event
from dynamodb_counters.errors import InvalidArgumentError

MAX_WINDOW: Final = Duration.minutes(5)
_AT_ONCE: Final = 10
"""Messages or records that Lambda takes without a batching window; a token is a negative number, so it passes."""


class Batching(NamedTuple):
    """At most so many messages, gathered for so long, by at most so many consumers at a time."""

    size: int
    window: Duration
    concurrency: int | None


_PLAIN: Final = Batching(100, Duration.seconds(1), None)
# Few writers with large batches: they fill chunks, and seldom race for the next one.
_PACKED: Final = Batching(1000, Duration.seconds(5), 2)


def batching_of(
    event: Event, batch_size: int | None, max_batching_window: Duration | None, max_concurrency: int | None
) -> Batching:
    """Return what is given, and what suits the event for the rest; refuse what Lambda does."""
    default = _PLAIN if event.packed is None else _PACKED
    size = default.size if batch_size is None else batch_size
    window = default.window if max_batching_window is None else max_batching_window
    concurrency = default.concurrency if max_concurrency is None else max_concurrency
    require_integer("batch_size", size, 1, 10_000)
    require_duration("max_batching_window", window, Duration.seconds(0), MAX_WINDOW)
    require_gathering(size, window)
    if concurrency is not None:
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-eventsourcemapping-scalingconfig.html
        require_integer("max_concurrency", concurrency, 2, 1000)
    return Batching(size, window, concurrency)


def require_gathering(batch_size: float, window: Duration) -> None:
    """Refuse a large batch that has no time to gather; the API reference asks for this of queues and streams.

    https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
    """
    if batch_size > _AT_ONCE and not window.is_unresolved() and not window.to_seconds():
        allowed = f"at least 1 second for a batch_size above {_AT_ONCE}"
        raise InvalidArgumentError("max_batching_window", window.to_human_string(), allowed)


def require_enough(options: lambda_.FunctionOptions | None, batching: Batching) -> None:
    """Refuse a reservation that the consumers would exceed, which throttles them.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    """
    reserved_concurrency = None if options is None else options.reserved_concurrent_executions
    if reserved_concurrency is None or batching.concurrency is None or Token.is_unresolved(reserved_concurrency):
        return
    if batching.concurrency > reserved_concurrency:
        allowed = f"at least max_concurrency, which is {batching.concurrency}"
        raise InvalidArgumentError("reserved_concurrent_executions", reserved_concurrency, allowed)
