"""Constructs that do not fit together, or to their table, are refused where they are made, or at synth; others fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import Any, Final

import pytest
from aws_cdk import Aws, CfnOutput, CfnParameter, Duration, PhysicalName, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_lambda import FunctionOptions

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, ThresholdEvents
from cdk_dynamodb_counters._functions import VARIABLES
from cdk_dynamodb_counters.stream_aggregator import WindowedCounter
from dynamodb_counters import Attr, Extremes, Items, Percentiles, Ranks, TableKeys
from dynamodb_counters._declarations import ActiveMembers, Aggregate, Count, Distinct, Event, Packed, Threshold, Window
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.declared import ACTIVE, JOB, JOBS, MEMO, PACKED, PAGE, POPULAR, ROLLING, SITE, TOP, VIEW, VIEWS
from tests.unit.infra.place import ARN, AUTHORIZERS, HERE, ORDERS, OURS, STREAM_ARN, THEIRS, THERE, Place, imported
from tests.unit.infra.support import NUMBER, ORDER, STRING, new_role, problem, synthesized

Build = Callable[[Place], object]

ANY_STREAM: Final = STREAM_ARN.rpartition("/")[0] + "/*"
KEPT: Final = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
AT_ONCE: Final = Duration.seconds(0)

OTHERS = replace(ORDERS, source=Items("order", keys=TableKeys("pk", "sk", ttl="ttl")))
# Names that do not compress.
NAMES = [f"a{sha256(str(index).encode()).hexdigest()[:16]}" for index in range(300)]
MANY = [Aggregate(name, VIEW, pk=f"{name}#{{url}}", sk="S", measures={"n": Count()}) for name in NAMES]
HASHES = [sha256(bytes([number])).hexdigest() for number in range(80)]
# With the id STATISTICS, a note has the key of a group of VIEWS, and its attribute `views` is that group's measure.
NOTE = Event("note", pk="URL#{url}", sk="{id}")
LATEST = Extremes("latest", VIEW, by="url", attribute="time", show="count")
LOUD = Threshold("busy", SITE, at=[1], direction="both")

TOTAL = Aggregate("total", JOB, pk="ALL", sk="STATISTICS", measures={"jobs": Count()})
DAY = Window("all_day", JOB, pk="ALL", time="time")
SEEN = Distinct("seen", JOB, pk="ALL", sk="SEEN", member="customer")
BOARD = Ranks("board", Aggregate("done", JOB, by=("customer", "id")), by="id", score="done", least=0, most=999)
BY_DAY = Event("by_day", pk="DAY#{day}", sk="CUSTOMER#{customer}#JOB#{id}")
BOUND = {"customer": "iam.userId"}


def shared_bucket(*constructs: Any, apart: bool = False) -> Build:
    def make(at: Place) -> None:
        bucket = s3.Bucket(at.stack, "Failures")
        for number, construct in enumerate(constructs):
            if apart:
                at.counters = DedupCounterTable(at.stack, f"C{number}")
            at(construct, f"Reader{number}", on_failure_bucket=bucket)

    return make


def _implicit(_: Place) -> None:
    """Build in a stack whose app is implicit."""
    stack = Stack()
    counters = DedupCounterTable(stack, "Counters")
    WindowedCounter(stack, "Rolling", table=counters, window=ROLLING)
    for construct_id in ("Aggregator", "Second"):
        StreamAggregator(stack, construct_id, table=counters)


def _counted_by_import(at: Place) -> None:
    at.counters = DedupCounterTable(at.stack, "Counters", table=imported(at.stack))
    at.counting(imported(at.elsewhere().stack))


def _three_readers(is_imported: bool) -> Build:
    def make(at: Place) -> None:
        at.counters = DedupCounterTable(at.stack, "Counters", table=imported(at.stack) if is_imported else None)
        other = DedupCounterTable(at.stack, "Other")
        at(StreamAggregator)
        at(StreamAggregator, "Copy", table=other, source_table=at.counters.table, aggregates=[OTHERS])
        at(ThresholdEvents)

    return make


def _three_aggregators(at: Place) -> None:
    source = at.source()
    for number in range(3):
        at.counters = DedupCounterTable(at.stack, f"C{number}")
        at(StreamAggregator, f"A{number}", source_table=source, aggregates=[ORDERS])


def _routes(path: str) -> Build:
    def make(at: Place) -> None:
        api = at(CounterApi).http_api
        at(EventIngest, http_api=api)
        at(EventIngest, "Another", http_api=api, path=path)

    return make


def _in_another_place(construct: Any, **place: str | None) -> Build:
    return lambda at: at.elsewhere(**place)(construct, table=at.counters)


def _unreadable(construct: Any, *, replica: bool) -> Build:
    """CDK gives a replica's stream an ARN for policies, which no event source mapping takes."""

    def make(at: Place) -> None:
        table = at.replica(table_name="orders")[1] if replica else at
        if not replica:
            own = imported(at.stack, table_stream_arn=ANY_STREAM)
            at.counters = DedupCounterTable(at.stack, "Counters", table=own)
        table(EventIngest)
        table(construct)

    return make


def _crossed(**arguments: Any) -> Build:
    return lambda at: at(ThresholdEvents, thresholds=[POPULAR, LOUD]).on_crossed("Rule", **arguments)


def _far(level: Any, *, is_named: bool = True) -> Build:
    rule = {"level": level} if is_named else {}
    return lambda at: at(ThresholdEvents, thresholds=[replace(POPULAR, at=[level])]).on_crossed("Far", **rule)


ENTRANCES: Final[tuple[Callable[[Place, Event], object], ...]] = (
    lambda at, event: at(EventIngest, event.name, event=event),
    lambda at, event: at(CounterApi, event.name, shown=[SITE], events=[event]),
    lambda at, event: at.counters.grant_accept(new_role(at.stack, event.name), event),
    lambda at, event: at.counters.grant_record_once(new_role(at.stack, event.name), event),
)


def _entering(enter: Callable[[Place, Event], object], *, first: bool) -> Build:
    if first:
        return lambda at: (enter(at, NOTE), at(StreamAggregator))
    return lambda at: (at(StreamAggregator), enter(at, MEMO), enter(at, NOTE))


def _bound(authorizer: str, path: str) -> list[Build]:
    def make(construct: Any, **more: Any) -> Build:
        return lambda at: at(construct, authorizer=AUTHORIZERS[authorizer](at), tenant={"customer": path}, **more)

    return [make(CounterApi, shown=[JOBS]), make(EventIngest, event=JOB)]


def _packed(packed: Packed) -> Event:
    return Event("packed", pk="DAY#{day}", sk="CUSTOMER#{customer}#T#{time}", packed=packed)


def _options(construct: Any, **options: Any) -> Build:
    return lambda at: at(construct, function_options=FunctionOptions(**options))


def _granting(name: str) -> Build:
    return lambda at: getattr(at.counters, name)("role", *([VIEW] if name == "grant_accept" else []))


def _bus(at: Place, region: str, account: str) -> Any:
    return events.EventBus.from_event_bus_arn(at.stack, "Bus", f"arn:aws:events:{region}:{account}:event-bus/sales")


def _far_import(at: Place) -> Any:
    return imported(at.elsewhere(region=THERE).stack, table_name=None, table_arn=ARN)


def _counted_far(at: Place) -> None:
    there = at.elsewhere(region=THERE)
    there.counting(imported(there.stack, table_name=None, table_arn=ARN), aggregates=[OTHERS])


def _import(by: str, value: Any) -> Build:
    return lambda at: getattr(DedupCounterTable, f"from_table_{by}")(at.stack, "Known", value)


def _handles(at: Place) -> tuple[DedupCounterTable, DedupCounterTable]:
    return (
        DedupCounterTable.from_table_name(at.stack, "Named", "events"),
        DedupCounterTable.from_table_arn(at.stack, "Known", ARN),
    )


USERS_OF_TABLES: Final = (CounterApi, EventIngest, StreamAggregator, ThresholdEvents, WindowedCounter)
ELSEWHERE: Final = ({"account": THEIRS}, {"region": THERE}, {"account": None, "region": None})
STREAM_OF_ANOTHER: Final = (
    {"table_stream_arn": STREAM_ARN.replace("/events/", "/orders/")},
    {"table_name": None, "table_arn": ARN.replace(HERE, THERE)},
    {"table_name": None, "table_arn": ARN.replace(OURS, THEIRS)},
)
ID: Final = dynamodb.Attribute(name="id", type=STRING)
STRONG: Final = {
    "replicas": [dynamodb.ReplicaTableProps(region=region) for region in ("us-east-2", "us-west-2")],
    "multi_region_consistency": dynamodb.MultiRegionConsistency.STRONG,
}
UNFIT: Final[list[tuple[Any, dict[str, Any], str]]] = [
    (dynamodb.TableV2, {"partition_key": ID}, "partition key 'pk' and sort key"),
    (dynamodb.TableV2, {"sort_key": None}, "partition key 'pk' and sort key 'sk'"),
    (dynamodb.TableV2, {"sort_key": dynamodb.Attribute(name="sk", type=NUMBER)}, "both strings"),
    (dynamodb.TableV2, {"stream": None}, "dynamo_stream=StreamViewType.NEW_AND_OLD_IMAGES"),
    (dynamodb.TableV2, {"stream": dynamodb.StreamViewType.NEW_IMAGE}, "StreamViewType.NEW_AND_OLD_IMAGES"),
    (dynamodb.TableV2, {"time_to_live_attribute": None}, "time_to_live_attribute='ttl'"),
    (dynamodb.TableV2, {"time_to_live_attribute": "expires"}, "time_to_live_attribute='ttl'"),
    (dynamodb.Table, {"partition_key": ID}, "by source_table of StreamAggr"),
    (dynamodb.Table, {"time_to_live_attribute": "expiresAt"}, "time_to_live_attribute='ttl'"),
    (dynamodb.Table, {"stream": None}, ": stream=StreamViewType.NEW_AND_OLD_IMAGES"),
]
OF_OWN_TABLES: Final[dict[str, Any]] = {
    "removal_policy": RemovalPolicy.RETAIN,
    "deletion_protection": False,
    "point_in_time_recovery": True,
    "encryption": dynamodb.TableEncryptionV2.dynamo_owned_key(),
    "warm_throughput": dynamodb.WarmThroughput(write_units_per_second=5000),
    "ranking_index": True,
}
CHOSEN: Final[dict[str, Any]] = {
    "function_name": "counter",
    "events": [],
    "log_retention": logs.RetentionDays.ONE_WEEK,
    "logging_format": lambda_.LoggingFormat.TEXT,
    "system_log_level": "INFO",
}


def _unfit(kind: Any, changes: dict[str, Any], role: str = "table") -> Build:
    if role == "source":
        return lambda at: at.counting(at.source(kind, **changes))
    return lambda at: at(DedupCounterTable, table=at.table(kind, **changes))


def _given_table(argument: str) -> Build:
    return lambda at: at(DedupCounterTable, table=at.table(), **{argument: OF_OWN_TABLES[argument]})


def _given_api(**own: Any) -> Build:
    return lambda at: at(EventIngest, http_api=at(CounterApi).http_api, **own)


def _another_stream(changes: dict[str, Any], *, source: bool) -> Build:
    if source:
        return lambda at: at.counting(imported(at.stack, **changes), aggregates=[OTHERS])
    return lambda at: at(DedupCounterTable, table=imported(at.stack, **changes))


def _named(construct: Any, number: int) -> Build:
    return lambda at: at(construct, table=_handles(at)[number])


def _api(*declared: Any, **more: Any) -> Build:
    return lambda at: at(CounterApi, shown=[*declared], **more)


def _posted(event: Event, **more: Any) -> Build:
    return lambda at: at(EventIngest, event=event, **more)


def _both(first: Build, second: Build) -> list[Build]:
    return [lambda at: (first(at), second(at)), lambda at: (second(at), first(at))]


PUBLIC: Final = HttpNoneAuthorizer()
GRANTS: Final = [name for name in dir(DedupCounterTable) if name.startswith("grant_")]
RESERVED: Final = (
    Percentiles("sizes", VIEW, by="p", attribute="bytes"),
    Extremes("latest", VIEW, by="order", attribute="time"),
    ActiveMembers("users", VIEW, by="last", member="clientId", time="time"),
    Ranks("board", Aggregate("seen", VIEW, by=("url", "rank")), by="url", score="seen", least=0, most=9),
    replace(SITE, pk="NEXT#{next}"),
    replace(ROLLING, pk="LAST#{last}"),
)
UNKNOWN_CLAIMS: Final = (
    *(("jwt", path, "claims.NAME") for path in ("iam.accountId", "lambda.customer", "claims.", "sub")),
    ("pool", "lambda.customer", "claims.NAME"),
    ("own", "claims.sub", "lambda.NAME"),
    ("iam", "claims.sub", "iam.NAME"),
    # A key of the caller changes with every session.
    ("iam", "iam.accessKey", "iam.accountId"),
    ("none", "claims.sub", "identifies no caller"),
)
TIMEOUTS: Final = {StreamAggregator: 29, ThresholdEvents: 29, EventIngest: 4, CounterApi: 30}
SHARING: Final = (
    *map(_packed, (Packed("time"), Packed("time", partition_by="customer"), Packed("time", tenant="day"))),
)
SHARED: Final[dict[str, Any]] = {"throttle_rate": 10, "throttle_burst": 10, "allow_origins": ["*"], "access_log": True}
STREAMS: Final = [{"stream": view} for view in (None, *map(dynamodb.StreamViewType, ("NEW_IMAGE", "KEYS_ONLY")))]
REFUSED: Final[dict[tuple[str, str], list[Build]]] = {
    # Readers of a stream, and what only one may have.
    ("table", "one ThresholdEvents per table"): [lambda at: (at(ThresholdEvents), at(ThresholdEvents, "Two"))],
    ("table", "the one at 'Test/Aggregator' with"): [lambda at: (at(StreamAggregator), at(StreamAggregator, "Two"))],
    ("table", "the one at 'Default/Aggregator'"): [_implicit],
    ("table", "2 readers per stream, which are 'Test/Aggregator' and 'Test/Copy'"): [
        _three_readers(is_imported) for is_imported in (True, False)
    ],
    ("source_table", "2 readers per stream, which are 'Test/A0' and 'Test/A1'"): [_three_aggregators],
    ("table", "one ThresholdEvents"): [lambda at: [place(ThresholdEvents) for place in (at, at.replica()[1])]],
    ("table", "one StreamAggregator per table"): [
        lambda at: [place(StreamAggregator) for place in (at, at.replica()[1])]
    ],
    ("on_failure_bucket", "another bucket than"): [
        shared_bucket(StreamAggregator, ThresholdEvents),
        shared_bucket(ThresholdEvents, StreamAggregator),
        shared_bucket(StreamAggregator, StreamAggregator, apart=True),
    ],
    ("path", "a path that no other construct"): [_routes("/events"), _routes("/v1/batch")],
    # Tables that cannot hold counts, or be counted.
    ("table", "table_stream_arn"): [
        lambda at: at(DedupCounterTable, table=dynamodb.TableV2.from_table_name(at.stack, "T", "t"))
    ],
    ("deletion_protection", "False with RETAIN_ON"): [
        lambda at: at(DedupCounterTable, removal_policy=KEPT, deletion_protection=True)
    ],
    ("source_table", "stream=StreamViewType.NEW_AND_OLD"): [_unfit(dynamodb.Table, view, "source") for view in STREAMS],
    ("source_table", "dynamo_stream=StreamViewType."): [_unfit(dynamodb.TableV2, view, "source") for view in STREAMS],
    ("source_table", "table_stream_arn"): [
        lambda at: at.counting(dynamodb.Table.from_table_name(at.stack, "Orders", "orders"))
    ],
    ("source_table", "another table than table"): [lambda at: at.counting(at.counters.table), _counted_by_import],
    ("source_table", "a TableV2 or Table"): [lambda at: at.counting(at.counters)],
    ("table_name", "a table's name"): [_import("name", name) for name in ("", "ab", "a/b", ARN, 1)],
    ("table_arn", "a table's ARN"): [_import("arn", arn) for arn in ("events", STREAM_ARN, "arn:aws:s3:::events", 1)],
    ("table", "a table with a stream"): [
        *(_named(kind, at) for kind in (StreamAggregator, WindowedCounter) for at in (0, 1)),
        lambda at: [handle.table_stream_arn for handle in _handles(at)],
    ],
    # Places.
    ("table", "expected a table of account"): [
        _in_another_place(construct, **place) for construct in USERS_OF_TABLES for place in ELSEWHERE
    ],
    ("table", "and region eu-west-1"): [
        lambda at: at.elsewhere(region=THERE)(
            CounterApi, table=DedupCounterTable(at.stack, "C", table=at.table(table_name="events"))
        ),
        lambda at: DedupCounterTable.from_table_arn(at.elsewhere(region=THERE).stack, "Far", ARN),
        lambda at: DedupCounterTable((own := _far_import(at)).stack, "Far", table=own),
    ],
    ("source_table", "and region eu-west-1"): [_counted_far],
    ("table", "expected the stream of that table"): [_another_stream(args, source=False) for args in STREAM_OF_ANOTHER],
    ("source_table", "expected the stream of that table"): [
        _another_stream(args, source=True) for args in STREAM_OF_ANOTHER
    ],
    ("table", "whose stream has a known ARN"): [
        _unreadable(kind, replica=replica) for kind in (StreamAggregator, ThresholdEvents) for replica in (True, False)
    ],
    ("source_table", "whose stream has a known ARN"): [
        lambda at: at.counting(imported(at.stack, table_stream_arn=ANY_STREAM), aggregates=[OTHERS])
    ],
    # It refuses transactions, with which names are registered.
    ("table", "a table without multi-Region strong"): [_unfit(dynamodb.TableV2, STRONG)],
    ("event_bus", "a bus of region us-east-1"): [lambda at: at(ThresholdEvents, event_bus=_bus(at, THERE, OURS))],
    ("event_bus", "a bus of account 123456789012; one"): [
        lambda at: at(ThresholdEvents, event_bus=_bus(at, HERE, THEIRS)).on_crossed("All")
    ],
    # Declarations that contradict each other, whichever comes first.
    ("name", "'views'"): [
        lambda at: (at(StreamAggregator), at(WindowedCounter, window=replace(ROLLING, name="views")))
    ],
    ("name", "'view'"): [
        lambda at: at(StreamAggregator).add_aggregate(replace(SITE, source=replace(VIEW, pk="ELSE#{url}")))
    ],
    ("aggregates", "WindowedCounter"): [lambda at: at(StreamAggregator).add_aggregate(ROLLING)],
    ("pk", "expected keys that cannot match"): [_entering(enter, first=False) for enter in ENTRANCES],
    ("pk", "cannot match items of 'views'"): [_entering(enter, first=True) for enter in ENTRANCES],
    ("pk", "cannot match items of 'letter'"): [
        lambda at: at(DedupCounterTable, events=[MEMO, Event("letter", pk="URL#{page}", sk="MEMO#{letter}")])
    ],
    ("pk", "keys that cannot match"): [lambda at: (at(StreamAggregator), _api(replace(VIEWS, name="visits"))(at))],
    ("name", "one declaration per name"): [
        lambda at: at(DedupCounterTable, events=[MEMO]).grant_accept(new_role(at.stack), replace(MEMO, pk="M#{url}")),
        *_both(lambda at: at(StreamAggregator), _api(replace(VIEWS, where=Attr("url").ne("/")))),
        lambda at: (at(CounterApi), at(CounterApi, "Again"), at(CounterApi, "B", shown=[replace(VIEWS, sk="OTHER")])),
        lambda at: (at(EventIngest, event=replace(VIEW, retention=timedelta(days=1))), at(StreamAggregator)),
    ],
    # Rules that nothing could match.
    ("threshold", ""): [_crossed(threshold=value) for value in ("popular", replace(LOUD, name="rare"), 1)],
    ("level", ""): [_crossed(level=value) for value in (99, "100", 100.0, True, Decimal("0.81"))],
    ("direction", ""): [_crossed(direction=value) for value in ("both", "UP", True)],
    ("target", ""): [_crossed(target=value) for value in ("queue", 1, targets.SqsQueue)],
    ("direction", "expected one of up"): [_crossed(threshold=POPULAR, direction="down")],
    ("level", "expected one of 100, 1000"): [_crossed(threshold=POPULAR, level=1)],
    ("level", "detail.level"): [_far(level) for level in (Decimal("0.0000001"), 10**10, Decimal(10) ** 40)],
    # Functions.
    ("function_options.application_log_level_v2", "INFO or DEBUG"): [
        _options(CounterApi, application_log_level_v2=lambda_.ApplicationLogLevel.WARN)
    ],
    ("timeout", "expected a Duration from"): [
        _options(construct, timeout=Duration.seconds(seconds)) for construct, seconds in TIMEOUTS.items()
    ],
    ("timeout", "a Duration known at synth"): [
        lambda at: _options(EventIngest, timeout=Duration.seconds(at.parameter))(at)
    ],
    ("reserved_concurrent_executions", "at least max_concurrency"): [
        _posted(PACKED, function_options=FunctionOptions(reserved_concurrent_executions=1))
    ],
    ("max_batching_window", "at least 1 second"): [
        lambda at: at(EventIngest, batch_size=11, max_batching_window=AT_ONCE),
        lambda at: at(StreamAggregator, max_batching_window=AT_ONCE),
        lambda at: at(StreamAggregator, batch_size=11, max_batching_window=AT_ONCE),
    ],
    ("schema", "direct"): [lambda at: at(EventIngest, mode="direct", schema={})],
    # What an API serves, and to whom.
    ("page", "None unless authorizer=HttpNoneAuthorizer()"): [
        _api(SITE, TOP, ROLLING, page=replace(PAGE, active=None))
    ],
    ("page", "only declarations listed in shown"): [_api(SITE, TOP, ROLLING, authorizer=PUBLIC, page=PAGE)],
    ("shown", "which are request parameters"): [_api(declaration) for declaration in RESERVED],
    ("tenant", "expected a field of 'latest'"): [
        _api(replace(LATEST, by=(), show="url"), tenant={"url": "iam.userId"})
    ],
    ("tenant", "a field of 'job', which has customer"): [_posted(JOB, tenant=BOUND | {"owner": "iam.userId"})],
    ("tenant", "None in direct mode"): [_posted(JOB, mode="direct", tenant=BOUND)],
    ("tenant", "a field of 'total'"): [_api(JOBS, TOTAL, tenant=BOUND)],
    ("tenant", "a field of 'all_day'"): [_api(DAY, JOBS, tenant=BOUND)],
    # The members of a distinct have the field, their number has not.
    ("tenant", "a field of 'seen'"): [_api(JOBS, SEEN, tenant=BOUND)],
    # A member of the board has the field, the board has not.
    ("tenant", "a field of 'board'"): [_api(JOBS, BOARD, tenant=BOUND)],
    ("tenant", "a field of 'by_day'"): [_api(JOBS, events=[BY_DAY], tenant=BOUND)],
    ("tenant", "a field of 'job'"): [_api(JOBS, events=[replace(JOB, pk="JOB#{id}", sk="JOB")], tenant=BOUND)],
    ("tenant", "as Packed.tenant of 'packed'"): [
        *(_api(JOBS, events=[event], tenant=BOUND) for event in SHARING),
        *(_posted(event, tenant=BOUND) for event in SHARING),
    ],
    # Grants.
    ("grantee", "something with an IAM identity"): [_granting(name) for name in GRANTS],
    ("events", "at least one Event"): [lambda at: at.counters.grant_accept(new_role(at.stack))],
}
"""Argument and what is expected of it, with builds of which the last step is refused."""
OF_EACH: Final[list[tuple[str, str, Build]]] = [
    *((*about, builder) for about, builds in REFUSED.items() for builder in builds),
    *(("table", expected, _unfit(kind, changes)) for kind, changes, expected in UNFIT),
    *((name, "None when table is given", _given_table(name)) for name in OF_OWN_TABLES),
    *(
        (f"function_options.{name}", "None: the construct chooses it", _options(CounterApi, **{name: CHOSEN[name]}))
        for name in CHOSEN
    ),
    *(
        ("function_options.environment", name, _options(CounterApi, environment={"MORE": "yes", name: "other"}))
        for name in VARIABLES
    ),
    *((name, "http_api is given", _given_api(**{name: SHARED[name]})) for name in SHARED),
    *(("tenant", expected, builder) for kind, path, expected in UNKNOWN_CLAIMS for builder in _bound(kind, path)),
]


@pytest.mark.parametrize(("argument", "expected", "builder"), OF_EACH)
def test_what_does_not_fit_is_refused(argument: str, expected: str, builder: Build) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        builder(Place())
    assert refused.value.argument == argument
    assert expected in str(refused.value)


def _counting(*aggregates: Any) -> Build:
    return lambda at: at(StreamAggregator, aggregates=[*aggregates])


def _second_mapping(at: Place) -> None:
    aggregator = at(StreamAggregator)
    aggregator.function.add_event_source_mapping(
        "Again", event_source_arn=at.counters.table.table_stream_arn, starting_position=lambda_.StartingPosition.LATEST
    )


def _keyed(keys: TableKeys | None, **changes: Any) -> Build:
    items = Items("order", keys=keys)
    return lambda at: at.counting(at.source(**changes), aggregates=[replace(ORDERS, source=items)])


def _role_elsewhere(at: Place, **place: str) -> None:
    role = new_role(at.elsewhere(**place).stack, role_name=PhysicalName.GENERATE_IF_NEEDED)
    at(StreamAggregator)
    at.counters.grant_accept(role, VIEW)


def _output_elsewhere(at: Place, **place: str) -> None:
    at(StreamAggregator)
    CfnOutput(at.elsewhere(**place).stack, "Name", value=at.counters.table_name)


REFERENCES: Final[tuple[Callable[..., None], ...]] = (_role_elsewhere, _output_elsewhere)
PROBLEMS: Final[list[tuple[str, Build]]] = [
    ("nothing is counted", _counting()),
    ("invalid source='players': expected an aggregate that is declared with 'active'", _counting(ACTIVE)),
    ("the table has no 'ranking' index, which 'top' needs", _counting(TOP)),
    ("invalid number of names, 300: expected at most 90", _counting(*MANY)),
    ("of them for DECLARATIONS, but Lambda allows 4096: declare less", _counting(*MANY)),
    ("of them for AGGREGATES, but Lambda allows 4096", lambda at: (at(EventIngest), _counting(*MANY)(at))),
    ("of them for SCHEMA, but Lambda allows 4096", lambda at: at(EventIngest, schema={"enum": HASHES})),
    (
        "window 'rolling' is never counted: the table at 'Test/Counters' has no aggregator; create a StreamAggregator",
        lambda at: at(WindowedCounter),
    ),
    ("thresholds are never crossed: the table at 'Test/Counters' has no aggregator", lambda at: at(ThresholdEvents)),
    (
        "invalid aggregate='site': expected a declared aggregate; declare it together with 'busy'",
        lambda at: (at(StreamAggregator), at(ThresholdEvents, thresholds=[LOUD])),
    ),
    ("the function has another event source mapping, 'Again', and records", _second_mapping),
    *(
        ("those of the source table 'Test/Orders': keys=TableKeys(partition_key='id'", _keyed(keys, **changes))
        for keys, changes in [
            *((keys, dict[str, Any]()) for keys in (None, TableKeys("id"), TableKeys("key", ttl="expiresAt"))),
            (TableKeys("id", "at", ttl="expiresAt"), {}),
            (TableKeys("id", ttl="expiresAt"), {"sort_key": dynamodb.Attribute(name="at", type=STRING)}),
            (TableKeys("id", ttl="expiresAt"), {"time_to_live_attribute": None}),
        ]
    ),
    ("source_table= of the StreamAggregator", _counting(ORDERS)),
    ("nothing of source_table is counted", lambda at: at.counting(at.source(), aggregates=[VIEWS])),
    *(
        ("in one of Other: the name", partial(refers, **place))
        for refers in REFERENCES
        for place in ({"account": THEIRS}, {"region": THERE})
    ),
]
"""What is said at synth, when all is declared."""


@pytest.mark.parametrize(("expected", "builder"), PROBLEMS, ids=[expected for expected, _ in PROBLEMS])
def test_what_is_missing_is_a_problem_at_synth(expected: str, builder: Build) -> None:
    place = Place()
    builder(place)
    assert expected in problem(place.stack)


FITTING: Final[dict[str, Build]] = {
    "a batch of ten needs no window": lambda at: (
        at(EventIngest, batch_size=10, max_batching_window=AT_ONCE),
        at(StreamAggregator, batch_size=10, max_batching_window=AT_ONCE),
    ),
    "a reservation is for packed events alone": _options(EventIngest, reserved_concurrent_executions=1),
    "numbers known at deployment": lambda at: (
        at(EventIngest, event=PACKED, function_options=FunctionOptions(reserved_concurrent_executions=at.parameter)),
        at(
            StreamAggregator,
            service_name=f"{Aws.REGION}-counters",
            batch_size=at.parameter,
            function_options=FunctionOptions(memory_size=at.parameter),
            verify_every=Duration.hours(at.parameter),
        ),
        DedupCounterTable(at.stack, "Late", billing=dynamodb.Billing.on_demand(max_write_request_units=at.parameter)),
        DedupCounterTable.from_table_name(at.stack, "Named", CfnParameter(at.stack, "Name").value_as_string),
        synthesized(at.stack),
    ),
    "a schema counts as it is deployed": lambda at: synthesized(
        at(EventIngest, schema={"enum": ["a repeated text"] * 1_000})
    ),
    "apis have the same routes": lambda at: [
        at(EventIngest, f"Ingest{number}", http_api=at(CounterApi, f"Api{number}").http_api) for number in range(2)
    ],
    "a window alone counts a source table": lambda at: (
        at.counting(at.source(), aggregates=[]),
        at(WindowedCounter, window=Window("w", ORDER, pk="SHOP", time="at")),
        synthesized(at.stack),
    ),
    "a bucket of two tables' crossings": shared_bucket(ThresholdEvents, apart=True),
    "events are limited by any field of their key": _api(
        JOBS, events=[_packed(Packed("time", tenant="customer"))], tenant=BOUND
    ),
    "a field that is only shown may have any name": _api(LATEST),
    "a level that eventbridge cannot compare, in no rule": _far(10**10, is_named=False),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_is_built(name: str) -> None:
    FITTING[name](Place())
