"""Apps, declarations and template helpers for the tests of the constructs."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import (
    HttpIamAuthorizer,
    HttpJwtAuthorizer,
    HttpLambdaAuthorizer,
    HttpUserPoolAuthorizer,
)
from constructs import Construct

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    LivePage,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from dynamodb_counters import Items, TableKeys
from dynamodb_counters._declarations import ActiveMembers, Aggregate, Count, Event, Packed, Ranking, Threshold, Window
from dynamodb_counters._declarations.codec import decode

_Built = TypeVar("_Built")

PROJECT = Path(__file__).resolve().parents[3]

# A bare App() does not read cdk.json: tests and deployments would synthesize different templates.
CONTEXT: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
PACKED = Event("hit", pk="PAGE#{url}", sk="T#{time}", retention=timedelta(days=7), packed=Packed("time"))
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
TOP = Aggregate(
    "top",
    VIEW,
    pk="URL#{url}",
    sk="TOP",
    measures={"views": Count()},
    ranking=Ranking(measure="views", leaderboard="URLS"),
)
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))
POPULAR = Threshold("popular", VIEWS, at=[100, 1000])
PLAYERS = Aggregate("players", VIEW, pk="CLIENT#{clientId}", sk="VIEWS", measures={"n": Count()})
ACTIVE = Aggregate("active", PLAYERS, pk="SITE", sk="ACTIVE", measures={"players": Count()})
# A memo has the keys of groups of VIEWS, but for its own attributes.
MEMO = Event("memo", pk="URL#{url}", sk="MEMO#{id}")
USERS = ActiveMembers("users", VIEW, member="clientId", time="time")
PAGE = LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING, active=USERS)
ORDER = Items("order", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP", sk="ORDERS", measures={"n": Count()})
JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
JOBS = Aggregate("jobs", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS", measures={"jobs": Count()})

REQUIRED: dict[Any, tuple[str, dict[str, Any]]] = {
    DedupCounterTable: ("Counters", {}),
    StreamAggregator: ("Aggregator", {"aggregates": [VIEWS]}),
    ThresholdEvents: ("Crossed", {"thresholds": [POPULAR]}),
    WindowedCounter: ("Rolling", {"window": ROLLING}),
    EventIngest: ("Ingest", {"event": VIEW, "authorizer": HttpIamAuthorizer()}),
    CounterApi: ("Api", {"shown": [VIEWS]}),
}
"""Id and required arguments of each construct, but for its table."""

OURS, THEIRS = "123456789012", "222222222222"
HERE, THERE = "us-east-1", "eu-west-1"
ARN = f"arn:aws:dynamodb:{HERE}:{OURS}:table/events"
STREAM_ARN = f"{ARN}/stream/2026-01-01T00:00:00.000"
STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER


@cache
def _output() -> str:
    # All apps of a process share a directory, so the runtime asset is copied once, not by every test.
    output = tempfile.mkdtemp(prefix="dynamodb-counters-tests-")
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    return output


def new_app(**context: object) -> App:
    """Create an app with the project's feature flags and no version reporting."""
    return App(context=CONTEXT | context, analytics_reporting=False, outdir=_output())


def new_stack(name: str = "Test", *, region: str | None = None, **context: object) -> Stack:
    """Create a stack in its own app."""
    return Stack(new_app(**context), name, env=Environment(region=region))


def build(construct: Callable[..., _Built], scope: Construct, /, **arguments: Any) -> _Built:
    """Build a construct from what it requires, its table included unless it is given."""
    construct_id, required = REQUIRED[construct]
    if construct is not DedupCounterTable and "table" not in arguments:
        arguments["table"] = DedupCounterTable(scope, "Counters")
    return construct(**{"scope": scope, "construct_id": construct_id, **required, **arguments})


def new_role(scope: Stack, construct_id: str = "Role") -> iam.Role:
    return iam.Role(scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


def private_vpc(scope: Stack) -> ec2.Vpc:
    """Build a network without a way out."""
    isolated = ec2.SubnetConfiguration(name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    # CDK would restrict the default group by a function of its own.
    return ec2.Vpc(scope, "Vpc", subnet_configuration=[isolated], restrict_default_security_group=False)


def own_table(scope: Stack, kind: type[Any] = dynamodb.TableV2, **changes: Any) -> Any:
    """Build a table that can hold counters, but for the changes."""
    settings: dict[str, Any] = {
        "partition_key": dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
        "sort_key": dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
        "time_to_live_attribute": "ttl",
        "dynamo_stream" if kind is dynamodb.TableV2 else "stream": dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
    }
    return kind(scope, "Given", **settings | changes)


def imported(scope: Stack, **more: Any) -> dynamodb.ITableV2:
    return dynamodb.TableV2.from_table_attributes(
        scope, "Own", **{"table_name": "events", "table_stream_arn": STREAM_ARN, **more}
    )


def synthesized(scope: Construct) -> Template:
    """Return the template of the stack that ``scope`` is or is in."""
    return Template.from_stack(Stack.of(scope))


def problem(scope: Construct) -> str:
    """Return what synth refuses."""
    with pytest.raises(RuntimeError) as failed:
        synthesized(scope)
    return str(failed.value)


def each(template: Template, resource_type: str) -> list[dict[str, Any]]:
    """Return the properties of all resources of a type."""
    return [resource["Properties"] for resource in template.find_resources(resource_type).values()]


def properties(template: Template, resource_type: str) -> dict[str, Any]:
    """Return the properties of the only resource of a type."""
    [found] = each(template, resource_type)
    return found


def statements(template: Template) -> list[dict[str, Any]]:
    """Return all statements of all identity policies."""
    policies = each(template, "AWS::IAM::Policy")
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else list(action)


def environment(template: Template) -> dict[str, Any]:
    """Return the environment of the only function."""
    variables: dict[str, Any] = properties(template, "AWS::Lambda::Function")["Environment"]["Variables"]
    return variables


def declared(template: Template) -> list[str]:
    """Return the names of what the only function counts."""
    return [declaration.name for declaration in decode(environment(template)["DECLARATIONS"])]


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
        key, stream = (
            dynamodb.Attribute(name="id", type=NUMBER),
            "stream" if kind is dynamodb.Table else "dynamo_stream",
        )
        settings = {
            "partition_key": key,
            "time_to_live_attribute": "expiresAt",
            stream: dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        }
        return kind(self.stack, "Orders", **settings | changes)

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


def _jwt(_: Place) -> Any:
    return HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"])


def _own(at: Place) -> Any:
    code, runtime = lambda_.Code.from_inline("pass"), lambda_.Runtime.PYTHON_3_14
    function = lambda_.Function(at.stack, "Own", code=code, handler="index.handler", runtime=runtime)
    return HttpLambdaAuthorizer("Own", function)


AUTHORIZERS: Final[dict[str, Callable[[Place], Any]]] = {
    "jwt": _jwt,
    "pool": lambda at: HttpUserPoolAuthorizer("Pool", cognito.UserPool(at.stack, "Pool")),
    "own": _own,
    "iam": lambda _: HttpIamAuthorizer(),
    "none": lambda _: HttpNoneAuthorizer(),
}
