"""Places that stacks and tables are in, and stacks with what most of them have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from aws_cdk import App, CfnParameter, Environment, Stack
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator
from dynamodb_counters import Aggregate, Count
from tests.unit.infra.support import NUMBER, ORDER, STRING, build, new_app

OURS, THEIRS = "123456789012", "222222222222"
HERE, THERE = "us-east-1", "eu-west-1"
ARN = f"arn:aws:dynamodb:{HERE}:{OURS}:table/events"
STREAM_ARN = f"{ARN}/stream/2026-01-01T00:00:00.000"
ORDERS = Aggregate("orders", ORDER, pk="SHOP", sk="ORDERS", measures={"n": Count()})


def own_table(scope: Stack, kind: Any = dynamodb.TableV2, **changes: Any) -> Any:
    """Build a table that can hold counters, but for the changes."""
    keys = {f"{name}_key": dynamodb.Attribute(name=name[0] + "k", type=STRING) for name in ("partition", "sort")}
    return _streaming(scope, "Given", kind, **{**keys, "time_to_live_attribute": "ttl", **changes})


def _streaming(scope: Stack, construct_id: str, kind: Any, **settings: Any) -> Any:
    view = settings.pop("stream", dynamodb.StreamViewType.NEW_AND_OLD_IMAGES)
    return kind(scope, construct_id, **{"dynamo_stream" if kind is dynamodb.TableV2 else "stream": view, **settings})


def imported(scope: Stack, **more: Any) -> dynamodb.ITableV2:
    return dynamodb.TableV2.from_table_attributes(
        scope, "Own", **{"table_name": "events", "table_stream_arn": STREAM_ARN, **more}
    )


@dataclass
class Place:
    """A stack with a table, and others of its app."""

    app: App = field(default_factory=new_app)
    name: str = "Test"
    account: str | None = OURS
    region: str | None = HERE

    @cached_property
    def stack(self) -> Stack:
        return Stack(self.app, self.name, env=Environment(account=self.account, region=self.region))

    @cached_property
    def counters(self) -> DedupCounterTable:
        return DedupCounterTable(self.stack, "Counters")

    @cached_property
    def parameter(self) -> Any:
        """A number known only at deployment."""
        return CfnParameter(self.stack, "Number", type="Number").value_as_number

    def __call__(self, construct: Any, construct_id: str | None = None, /, **arguments: Any) -> Any:
        """Build a construct of what it requires; by default, of the one table."""
        named = {} if construct_id is None else {"construct_id": construct_id}
        own = {} if construct is DedupCounterTable or "table" in arguments else {"table": self.counters}
        return build(construct, self.stack, **own, **named, **arguments)

    def elsewhere(self, **place: str | None) -> Place:
        return Place(self.app, "Other", **{"account": self.account, "region": self.region, **place})

    def table(self, kind: Any = dynamodb.TableV2, **changes: Any) -> Any:
        """Build a table that can hold counters, but for the changes."""
        return own_table(self.stack, kind, **changes)

    def source(self, kind: Any = dynamodb.Table, **changes: Any) -> Any:
        """Build a source table."""
        settings = {"partition_key": dynamodb.Attribute(name="id", type=NUMBER), "time_to_live_attribute": "expiresAt"}
        return _streaming(self.stack, "Orders", kind, **settings | changes)

    def counting(self, source: Any, **arguments: Any) -> Any:
        """Build an aggregator of a source table."""
        return self(StreamAggregator, **{"source_table": source, "aggregates": [ORDERS], **arguments})

    def replica(self, **changes: Any) -> tuple[Any, Place]:
        """Build a table with a replica, and the place of that one's table."""
        table = self.table(replicas=[dynamodb.ReplicaTableProps(region=THERE)], **changes)
        there = self.elsewhere(region=THERE)
        there.counters = DedupCounterTable(there.stack, "Counters", table=table.replica(THERE))
        self.counters = DedupCounterTable(self.stack, "Counters", table=table)
        return table, there


def _own(at: Place) -> Any:
    code, runtime = lambda_.Code.from_inline("pass"), lambda_.Runtime.PYTHON_3_14
    function = lambda_.Function(at.stack, "Own", code=code, handler="index.handler", runtime=runtime)
    return authorizers.HttpLambdaAuthorizer("Own", function)


AUTHORIZERS: Final[dict[str, Callable[[Place], Any]]] = {
    "jwt": lambda _: authorizers.HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"]),
    "pool": lambda at: authorizers.HttpUserPoolAuthorizer("Pool", cognito.UserPool(at.stack, "Pool")),
    "own": _own,
    "iam": lambda _: authorizers.HttpIamAuthorizer(),
    "none": lambda _: HttpNoneAuthorizer(),
}
