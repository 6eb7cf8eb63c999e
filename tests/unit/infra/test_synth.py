"""What is missing when all is declared is said at synth; what fits is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from aws_cdk import Aws, CfnOutput, CfnParameter, Duration, PhysicalName
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_lambda import FunctionOptions

from cdk_dynamodb_counters import (
    CounterApi,
    DedupCounterTable,
    EventIngest,
    StreamAggregator,
    ThresholdEvents,
    WindowedCounter,
)
from dynamodb_counters import Items, TableKeys
from dynamodb_counters._declarations import (
    Event,
    Packed,
    Window,
)
from tests.unit.infra.places import (
    ACTIVE,
    AT_ONCE,
    BOUND,
    HASHES,
    JOBS,
    LATEST,
    LOUD,
    MANY,
    ORDER,
    ORDERS,
    STRING,
    THEIRS,
    THERE,
    Build,
    Place,
    shared_bucket,
)
from tests.unit.infra.support import (
    PACKED,
    POPULAR,
    TOP,
    VIEW,
    VIEWS,
    problem,
    synthesized,
)


def _no_more_than(*aggregates: Any) -> Build:
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
    principal = iam.ServicePrincipal("lambda.amazonaws.com")
    role = iam.Role(
        at.elsewhere(**place).stack, "Role", assumed_by=principal, role_name=PhysicalName.GENERATE_IF_NEEDED
    )
    at(StreamAggregator)
    at.counters.grant_accept(role, VIEW)


def _output_elsewhere(at: Place, **place: str) -> None:
    at(StreamAggregator)
    CfnOutput(at.elsewhere(**place).stack, "Name", value=at.counters.table_name)


REFERENCES: Final[tuple[Callable[..., None], ...]] = (_role_elsewhere, _output_elsewhere)
PROBLEMS: Final[list[tuple[str, Build]]] = [
    ("nothing is counted", _no_more_than()),
    ("invalid source='players': expected an aggregate that is declared with 'active'", _no_more_than(ACTIVE)),
    ("the table has no 'ranking' index, which 'top' needs", _no_more_than(TOP)),
    ("invalid number of names, 300: expected at most 90", _no_more_than(*MANY)),
    ("of them for DECLARATIONS, but Lambda allows 4096: declare less", _no_more_than(*MANY)),
    (
        "of them for AGGREGATES, but Lambda allows 4096",
        lambda at: (at(EventIngest), at(StreamAggregator, aggregates=MANY)),
    ),
    ("of them for SCHEMA, but Lambda allows 4096", lambda at: at(EventIngest, schema={"enum": HASHES})),
    (
        "window 'rolling' is never counted: the table at 'Test/Counters' has no aggregator",
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
            (None, dict[str, Any]()),
            (TableKeys("id"), {}),
            (TableKeys("key", ttl="expiresAt"), {}),
            (TableKeys("id", "at", ttl="expiresAt"), {}),
            (TableKeys("id", ttl="expiresAt"), {"sort_key": dynamodb.Attribute(name="at", type=STRING)}),
            (TableKeys("id", ttl="expiresAt"), {"time_to_live_attribute": None}),
        ]
    ),
    ("source_table= of the StreamAggregator", _no_more_than(ORDERS)),
    ("nothing of source_table is counted", lambda at: at.counting(at.source(), aggregates=[VIEWS])),
    *(
        ("in one of Other: the name", partial(refers, **place))
        for refers in REFERENCES
        for place in ({"account": THEIRS}, {"region": THERE})
    ),
]
"""What is said at synth, when all is declared."""


@pytest.mark.parametrize(("expected", "made"), PROBLEMS, ids=[expected for expected, _ in PROBLEMS])
def test_what_is_missing_is_a_problem_at_synth(expected: str, made: Build) -> None:
    place = Place()
    made(place)
    assert expected in problem(place.stack)


FITTING: Final[dict[str, Build]] = {
    "a batch of ten needs no window": lambda at: (
        at(EventIngest, batch_size=10, max_batching_window=AT_ONCE),
        at(StreamAggregator, batch_size=10, max_batching_window=AT_ONCE),
    ),
    "a reservation is for packed events alone": lambda at: at(
        EventIngest, function_options=FunctionOptions(reserved_concurrent_executions=1)
    ),
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
    "events are limited by any field of their key": lambda at: at(
        CounterApi,
        shown=[JOBS],
        events=[
            Event("packed", pk="DAY#{day}", sk="CUSTOMER#{customer}#T#{time}", packed=Packed("time", tenant="customer"))
        ],
        tenant=BOUND,
    ),
    "a field that is only shown may have any name": lambda at: at(CounterApi, shown=[LATEST]),
    "a level that eventbridge cannot compare, in no rule": lambda at: at(
        ThresholdEvents, thresholds=[replace(POPULAR, at=[10**10])]
    ).on_crossed("All"),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_is_built(name: str) -> None:
    FITTING[name](Place())
