"""Places for constructs that do not fit: a stack with a table, others of its app, and what is declared there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from aws_cdk import App, CfnParameter, Duration, Environment, RemovalPolicy, Stack
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import (
    HttpIamAuthorizer,
    HttpJwtAuthorizer,
    HttpLambdaAuthorizer,
    HttpUserPoolAuthorizer,
)

from cdk_dynamodb_counters import (
    DedupCounterTable,
    LivePage,
    StreamAggregator,
)
from dynamodb_counters import Extremes, Items, TableKeys
from dynamodb_counters._declarations import (
    ActiveMembers,
    Aggregate,
    Count,
    Distinct,
    Event,
    Threshold,
    Window,
)
from tests.unit.infra.support import (
    ROLLING,
    SITE,
    STREAM_ARN,
    TOP,
    VIEW,
    build,
    new_app,
    own_table,
)

OURS, THEIRS = "123456789012", "222222222222"
HERE, THERE = "us-east-1", "eu-west-1"
ARN = STREAM_ARN.partition("/stream")[0]
STRING, NUMBER = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER
IMAGES, ANY_STREAM = dynamodb.StreamViewType.NEW_AND_OLD_IMAGES, STREAM_ARN.rpartition("/")[0] + "/*"
KEPT: Final = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
AT_ONCE: Final = Duration.seconds(0)

STREAM: Final[dict[Any, str]] = {dynamodb.Table: "stream", dynamodb.TableV2: "dynamo_stream"}

ORDER = Items("order", keys=TableKeys("id", ttl="expiresAt"))
ORDERS = Aggregate("orders", ORDER, pk="SHOP", sk="ORDERS", measures={"n": Count()})
OTHERS = replace(ORDERS, source=Items("order", keys=TableKeys("pk", "sk", ttl="ttl")))
PLAYERS = Aggregate("players", VIEW, pk="CLIENT#{clientId}", sk="VIEWS", measures={"n": Count()})
ACTIVE = Aggregate("active", PLAYERS, pk="SITE", sk="ACTIVE", measures={"players": Count()})
# Names that do not compress.
NAMES = [f"a{sha256(str(index).encode()).hexdigest()[:16]}" for index in range(300)]
MANY = [Aggregate(name, VIEW, pk=f"{name}#{{url}}", sk="S", measures={"n": Count()}) for name in NAMES]
HASHES = [sha256(bytes([number])).hexdigest() for number in range(80)]
# With the id STATISTICS, a note has the key of a group of VIEWS, and its attribute `views` is that group's measure.
NOTE = Event("note", pk="URL#{url}", sk="{id}")
MEMO = Event("memo", pk="URL#{url}", sk="MEMO#{id}")
USERS = ActiveMembers("users", VIEW, member="clientId", time="time")
PAGE = LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING, active=USERS)
LATEST = Extremes("latest", VIEW, by="url", attribute="time", show="count")
LOUD = Threshold("busy", SITE, at=[1], direction="both")

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
JOBS = Aggregate("jobs", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS", measures={"jobs": Count()})
TOTAL = Aggregate("total", JOB, pk="ALL", sk="STATISTICS", measures={"jobs": Count()})
DAY = Window("all_day", JOB, pk="ALL", time="time")
SEEN = Distinct("seen", JOB, pk="ALL", sk="SEEN", member="customer")
BY_DAY = Event("by_day", pk="DAY#{day}", sk="CUSTOMER#{customer}#JOB#{id}")
BOUND = {"customer": "iam.userId"}


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
        settings = {"partition_key": key, "time_to_live_attribute": "expiresAt", stream: IMAGES}
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


Build = Callable[[Place], object]


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


def shared_bucket(*constructs: Any, apart: bool = False) -> Build:
    def make(at: Place) -> None:
        bucket = s3.Bucket(at.stack, "Failures")
        for number, construct in enumerate(constructs):
            if apart:
                at.counters = DedupCounterTable(at.stack, f"C{number}")
            at(construct, f"Reader{number}", on_failure_bucket=bucket)

    return make
