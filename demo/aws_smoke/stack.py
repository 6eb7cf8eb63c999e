"""A copy of the blog's stack under another name: `python -m demo.aws_smoke.stack NAME` is its app."""

from __future__ import annotations

import sys
from pathlib import Path

# A clone is enough, as for app.py: the two source roots need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / root) for root in ("infra", "lambdas")]

from aws_cdk import App, CfnOutput, Environment, Stack  # noqa: E402
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer  # noqa: E402

from cdk_dynamodb_counters import (  # noqa: E402
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
    WindowedCounter,
)
from examples.blog import ROLLING, SITE, VIEW, VIEW_SCHEMA, VIEWS  # noqa: E402


def build(app: App, name: str, environment: Environment | None = None) -> Stack:
    """Add the stack to an app; what its constructs retain is removed by name."""
    stack = Stack(app, name, env=environment, description="A smoke test of exact counting; may be deleted")
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    StreamAggregator(stack, "Aggregator", table=counters, aggregates=[VIEWS, SITE])
    WindowedCounter(stack, "Rolling", table=counters, window=ROLLING)
    api = CounterApi(stack, "Api", table=counters, shown=[VIEWS, SITE, ROLLING])
    common = {"table": counters, "event": VIEW, "http_api": api.http_api, "authorizer": HttpIamAuthorizer()}
    EventIngest(stack, "Validated", schema=VIEW_SCHEMA, **common)  # type: ignore[arg-type]
    direct = EventIngest(stack, "Direct", mode="direct", path="/direct", **common)  # type: ignore[arg-type]
    for output, value in {
        "TableName": counters.table_name,
        "ApiId": api.http_api.api_id,
        "DeadLetterQueue": direct.dead_letter_queue.queue_url,
    }.items():
        CfnOutput(stack, output, value=value)
    return stack


if __name__ == "__main__":
    app = App()
    build(app, sys.argv[1])
    app.synth()
