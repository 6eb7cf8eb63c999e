"""Each role allows what its function calls, and nothing else: the calls are noted while the handlers run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

from dynamodb_counters._declarations.codec import decode
from simulation.engines import Engine
from tests.gate import jobs, roles
from tests.gate.calls import Permission
from tests.gate.deployed import Deployed
from tests.gate.template import Resource, Template, variables
from tests.gate.templates import names, templates

_RUN_IN: Final = {
    "aggregator": "aggregator_minimal",
    "api": "api_everything",
    "ingest_http": "ingest_minimal",
    "ingest_queue": "ingest_minimal",
    "notifier": "thresholds_minimal",
    "ingest_queue, packed": "ingest_packed",
}
"""The template that each handler runs in."""

_LISTED: Final = {"verifier"}
"""Handlers that need minutes of DynamoDB's time: the snapshot aggregator_verified lists what their roles allow."""


def handler(function: Resource) -> str:
    """The handler, and whether its events are packed: other calls write them."""
    name = str(function["Handler"]).split(".")[-2]
    declared = decode(variables(function)["DECLARATIONS"]) if name == "ingest_queue" else ()
    packed = any(getattr(one, "packed", None) is not None for one in declared)
    return f"{name}, packed" if packed else name


def functions(template: Template) -> Iterator[Resource]:
    """The functions that run our handlers."""
    for function in template.each("Lambda::Function"):
        if str(function["Handler"]).startswith("dynamodb_counters."):
            yield function


@cache
def called(name: str, endpoint_url: str) -> frozenset[Permission]:
    """Permissions that a handler's calls need, by kind of resource."""
    template = templates()[_RUN_IN[name]]
    base = name.partition(",")[0]
    [function] = [one for one in functions(template) if handler(one).partition(",")[0] == base]
    deployed = Deployed(template, endpoint_url, uuid.uuid4().hex[:8])
    job = jobs.JOBS.get(name, jobs.JOBS[base])
    needed: set[Permission] = set()
    # The second process knows nothing of what the first one has done, and does some of it for that reason.
    for process in range(2):
        with deployed.running(function, **jobs.DECLARED.get(base, {})) as (invoke, calls):
            job(invoke, [*jobs.events_of_rules(template, function)], process)
            needed |= deployed.needs(calls)
    return frozenset(needed)


@pytest.fixture
def emulator(ministack_engine: Engine) -> str:
    assert ministack_engine.endpoint_url is not None
    return ministack_engine.endpoint_url


@pytest.mark.parametrize("template", names())
def test_each_role_fits_what_its_function_does(template: str, emulator: str) -> None:
    whole = templates()[template]
    for function in functions(whole):
        if handler(function) in _LISTED:
            continue
        granted = roles.allowed(whole, function)
        needed = {*called(handler(function), emulator), *roles.of_services(whole, function)}
        if "SOURCE_TABLE_ARN" in variables(function):
            # Once, before it registers the first names: tests/exactly_once/test_two_streams.py.
            needed.add(("dynamodb:DescribeTable", "source table"))
        if not any("GlobalSecondaryIndexes" in table.properties for table in whole.each("DynamoDB::GlobalTable")):
            needed = {one for one in needed if "/index/" not in one[1]}
        assert roles.denied(granted, needed) == set(), f"{function.id} may not"
        assert roles.unused(granted, needed) == set(), f"{function.id} may, and does not"
        usable, encrypted = roles.keys(whole, function)
        assert usable == encrypted, f"{function.id}: keys"


def test_missing_and_idle_permissions_are_both_found() -> None:
    granted, needed = (
        {("s3:PutObject", "bucket/*"), ("sqs:A", "queue")},
        {("s3:PutObject", "bucket/a"), ("sqs:B", "queue")},
    )
    assert roles.denied(granted, needed) == {("sqs:B", "queue")}
    assert roles.unused(granted, needed) == {("sqs:A", "queue")}
