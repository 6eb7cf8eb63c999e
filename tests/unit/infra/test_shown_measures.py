"""Measures beyond sums behind the counter API: what it serves of them, to whom, and on the page."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk.aws_apigatewayv2 import HttpNoneAuthorizer

from cdk_dynamodb_counters import CounterApi, LivePage
from dynamodb_counters import ActiveMembers, Extremes, Percentiles
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters.errors import InvalidArgumentError
from tests.unit.infra.support import ROLLING, SITE, TOP, VIEW, build, new_stack, synthesized

USERS = ActiveMembers("users", VIEW, member="clientId", time="time")
PAGE = LivePage(title="Blog", total=SITE, top=TOP, window=ROLLING, active=USERS)


def variables(stack: Stack) -> dict[str, str]:
    functions = synthesized(stack).find_resources("AWS::Lambda::Function").values()
    settings = [one["Properties"].get("Environment", {}).get("Variables", {}) for one in functions]
    [found] = [one for one in settings if "CACHE_CONTROL" in one]
    return dict(found)


def test_the_items_of_each_member_are_not_served() -> None:
    build(CounterApi, stack := new_stack(), shown=[USERS])
    assert [one.name for one in decode(variables(stack)["DECLARATIONS"])] == ["users"]


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        ({}, {"last": "30d", "words": "30 days"}),
        ({"longest": timedelta(days=7)}, {"last": "7d", "words": "7 days"}),
        ({"precision": timedelta(hours=1), "longest": timedelta(hours=30)}, {"last": "30h", "words": "30 hours"}),
        ({"precision": timedelta(minutes=1)}, {"last": "30m", "words": "30 minutes"}),
    ],
)
def test_the_page_shows_members_of_thirty_days_or_of_the_longest_span(
    more: dict[str, Any], settings: dict[str, str]
) -> None:
    users = replace(USERS, **more)
    page, stack = replace(PAGE, active=users), new_stack()
    build(CounterApi, stack, shown=[SITE, TOP, ROLLING, users], authorizer=HttpNoneAuthorizer(), page=page)
    assert json.loads(variables(stack)["PAGE"])["active"] == {"name": "users", **settings}


def test_the_members_of_the_page_are_shown() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"^invalid page='users': expected only declarations listed in shown"
    ):
        build(CounterApi, new_stack(), shown=[SITE, TOP, ROLLING], authorizer=HttpNoneAuthorizer(), page=PAGE)


@pytest.mark.parametrize(
    "declared",
    [
        Percentiles("sizes", VIEW, by="p", attribute="bytes"),
        Extremes("latest", VIEW, by="order", attribute="time"),
        ActiveMembers("users", VIEW, by="last", member="clientId", time="time"),
    ],
    ids=["percentiles", "extremes", "members"],
)
def test_a_field_named_like_a_parameter_of_its_read_is_refused(declared: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^invalid shown=.*which are request parameters"):
        build(CounterApi, new_stack(), shown=[declared])


def test_a_field_that_is_only_shown_limits_no_tenant_and_may_have_any_name() -> None:
    latest = Extremes("latest", VIEW, by="url", attribute="time", show="count")
    build(CounterApi, new_stack(), shown=[latest])
    shown = replace(latest, by=(), show="url")
    with pytest.raises(InvalidArgumentError, match=r"^invalid tenant='url': expected a field of 'latest'"):
        build(CounterApi, new_stack(), shown=[shown], tenant={"url": "iam.userId"})
