"""Callers of their own: bound fields are what the authorizer knows, and limit all that is taken or shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_cognito as cognito
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer
from aws_cdk.aws_apigatewayv2_authorizers import (
    HttpIamAuthorizer,
    HttpJwtAuthorizer,
    HttpLambdaAuthorizer,
    HttpUserPoolAuthorizer,
)

from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest
from dynamodb_counters._declarations import Aggregate, Count, Distinct, Event, Packed, Ranking, Window
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import build, synthesized

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
JOBS = Aggregate("jobs", JOB, pk="CUSTOMER#{customer}", sk="STATISTICS", measures={"jobs": Count()})
DAY = Window("day", JOB, pk="CUSTOMER#{customer}", time="time")
TOTAL = Aggregate("total", JOB, pk="ALL", sk="STATISTICS", measures={"jobs": Count()})
ALL_DAY = Window("all_day", JOB, pk="ALL", time="time")
BY_DAY = Event("by_day", pk="DAY#{day}", sk="CUSTOMER#{customer}#JOB#{id}")
SEEN = Distinct("seen", JOB, pk="ALL", sk="SEEN", member="customer")


def jwt(_: Stack) -> Any:
    return HttpJwtAuthorizer("Jwt", "https://issuer.example.com", jwt_audience=["counters"])


def pool(stack: Stack) -> Any:
    return HttpUserPoolAuthorizer("Pool", cognito.UserPool(stack, "Pool"))


def own(stack: Stack) -> Any:
    code, runtime = lambda_.Code.from_inline("pass"), lambda_.Runtime.PYTHON_3_14
    return HttpLambdaAuthorizer(
        "Own", lambda_.Function(stack, "Own", code=code, handler="index.handler", runtime=runtime)
    )


AUTHORIZERS = {
    "jwt": (jwt, "claims.sub"),
    "jwt-namespaced": (jwt, "claims.https://example.com/tenant"),
    "user-pool": (pool, "claims.custom:tenant"),
    "lambda": (own, "lambda.customer"),
    "iam": (lambda _: HttpIamAuthorizer(), "iam.accountId"),
}


@pytest.mark.parametrize("kind", AUTHORIZERS)
def test_functions_know_which_field_is_which_claim(kind: str, stack: Stack, counters: DedupCounterTable) -> None:
    authorizer, path = AUTHORIZERS[kind]
    arguments = {"table": counters, "authorizer": authorizer(stack), "tenant": {"customer": path}}
    api = build(CounterApi, stack, shown=[JOBS, DAY], events=[JOB], **arguments)
    build(EventIngest, stack, event=JOB, http_api=api.http_api, **arguments)
    told = {
        function["Properties"]["Handler"].split(".")[-2]: function["Properties"]["Environment"]["Variables"]["TENANT"]
        for function in synthesized(stack).find_resources("AWS::Lambda::Function").values()
        if "TENANT" in function["Properties"].get("Environment", {}).get("Variables", {})
    }
    # The queue's consumer knows no caller.
    assert {name: json.loads(text) for name, text in told.items()} == {
        "api": {"customer": path},
        "ingest_http": {"customer": path},
    }


@pytest.mark.parametrize(
    ("authorizer", "path", "expected"),
    [
        (jwt, "iam.accountId", "claims.NAME"),
        (jwt, "lambda.customer", "claims.NAME"),
        (jwt, "claims.", "claims.NAME"),
        (jwt, "sub", "claims.NAME"),
        (pool, "lambda.customer", "claims.NAME"),
        (own, "claims.sub", "lambda.NAME"),
        (lambda _: HttpIamAuthorizer(), "claims.sub", "iam.NAME"),
        # A key of the caller changes with every session.
        (lambda _: HttpIamAuthorizer(), "iam.accessKey", "iam.accountId"),
        (lambda _: HttpNoneAuthorizer(), "claims.sub", "identifies no caller"),
    ],
)
@pytest.mark.parametrize("construct", [CounterApi, EventIngest])
def test_a_claim_that_the_authorizer_cannot_give_is_refused(
    construct: Any, authorizer: Any, path: str, expected: str, stack: Stack
) -> None:
    more = {"event": JOB} if construct is EventIngest else {"shown": [JOBS]}
    with pytest.raises(InvalidArgumentError, match=rf"^invalid tenant='{path}': expected .*{expected}"):
        build(construct, stack, authorizer=authorizer(stack), tenant={"customer": path}, **more)


def test_an_event_is_bound_by_its_key(stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid tenant='owner': expected a field of 'job', which has cu"):
        build(EventIngest, stack, event=JOB, tenant={"customer": "iam.userId", "owner": "iam.userId"})


def test_events_that_come_in_unchecked_cannot_be_bound(stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid tenant=.*None in direct mode"):
        build(EventIngest, stack, event=JOB, mode="direct", tenant={"customer": "iam.userId"})


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"shown": [JOBS, TOTAL]}, "total"),
        ({"shown": [ALL_DAY, JOBS]}, "all_day"),
        # The members of a distinct have the field, their number has not.
        ({"shown": [JOBS, SEEN]}, "seen"),
        ({"shown": [JOBS], "events": [BY_DAY]}, "by_day"),
        ({"shown": [JOBS], "events": [replace(JOB, pk="JOB#{id}", sk="JOB")]}, "job"),
    ],
    ids=["total", "window", "distinct", "listing", "event"],
)
def test_groups_that_no_field_limits_are_not_shown(more: dict[str, Any], named: str, stack: Stack) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^invalid tenant='customer': expected a field of '{named}'"):
        build(CounterApi, stack, tenant={"customer": "iam.userId"}, **more)


def test_packed_events_are_limited_by_any_field_of_their_key(stack: Stack) -> None:
    packed = Event(
        "packed", pk="DAY#{day}", sk="CUSTOMER#{customer}#T#{time}", packed=Packed("time", tenant="customer")
    )
    ranked = replace(JOBS, sk="TOP", ranking=Ranking(measure="jobs", leaderboard="CUSTOMERS"))
    counters = DedupCounterTable(stack, "Counters", ranking_index=True)
    tenant = {"customer": "iam.userId"}
    build(CounterApi, stack, table=counters, shown=[ranked], events=[packed], tenant=tenant)


@pytest.mark.parametrize("construct", [CounterApi, EventIngest])
@pytest.mark.parametrize(
    "packed", [Packed("time"), Packed("time", partition_by="customer"), Packed("time", tenant="day")]
)
def test_tenants_that_would_share_packed_logs_are_refused(construct: Any, packed: Packed, stack: Stack) -> None:
    event = Event("packed", pk="DAY#{day}", sk="CUSTOMER#{customer}#T#{time}", packed=packed)
    more = {"event": event} if construct is EventIngest else {"shown": [JOBS], "events": [event]}
    with pytest.raises(InvalidArgumentError, match=r"^invalid tenant=.*'customer', as Packed.tenant of 'packed'"):
        build(construct, stack, tenant={"customer": "iam.userId"}, **more)
