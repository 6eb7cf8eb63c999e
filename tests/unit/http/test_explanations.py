"""Explanations over HTTP: the lines that add up to a number, to those who may read it."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from dynamodb_counters import ActiveMembers, Aggregate, Count, Distinct, Event, Packed, Percentiles, Sum, Window
from dynamodb_counters._declarations import flatten
from dynamodb_counters._http import resources
from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters.testing import CountersInMemory, counters_in_memory
from tests.unit.http.handlers import call_api, environment, request

JOB = Event("job", pk="CUSTOMER#{customer}", sk="JOB#{id}")
HIT = Event("hit", pk="HIT#{customer}", sk="T#{at}#{id}", packed=Packed("at", tenant="customer"))
DAILY = Aggregate("daily", JOB, by=("customer", "at:day"), jobs=Count(), units=Sum("units"))
HITS = Aggregate("hits", HIT, by=("customer",), hits=Count(), pages=True)
RECENT = Window("recent", JOB, pk="RECENT#{customer}", time="at", retention=timedelta(days=30))
KINDS = Distinct("kinds", JOB, by="customer", member="kind")
SIZES = Percentiles("sizes", JOB, by="customer", attribute="units")
ACTIVE = ActiveMembers("active", JOB, by="customer", member="kind", time="at")
ALL = Aggregate("all", JOB, jobs=Count())
DECLARED = (DAILY, HITS, RECENT, KINDS, SIZES, ACTIVE, ALL)
SERVED = tuple(one for one in flatten(DECLARED) if isinstance(one, Window) or not one._longest)
EXPLAINED = [one.name for one in SERVED]
CUSTOMERS = ("ann", "bob", "cy")
NOW = "2026-01-01T00:00:00Z"
DAY = {"at:day": "2026-01-01"}
LAST = {"last": "24h"}


def job(customer: str, number: int) -> dict[str, Any]:
    return {"customer": customer, "id": f"{customer}-{number}", "at": NOW, "units": number, "kind": f"k{number % 3}"}


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountersInMemory]:
    with counters_in_memory(DECLARED) as counters:
        for number in range(7):
            for customer in CUSTOMERS:
                counters.accept(JOB, job(customer, number))
                counters.accept_many(HIT, [job(customer, number)])
        counters.clock.advance(timedelta(minutes=5))
        environment(monkeypatch, CountResources(counters, SERVED, counters.clock, (), EXPLAINED))
        yield counters


def get(path: str, claim: str | None = None, **parameters: object) -> tuple[int, Any]:
    event = request("GET", f"/v1/{path}", urlencode(parameters))
    if claim is not None:
        event["requestContext"]["authorizer"] = {"jwt": {"claims": {"sub": claim}}}
    return call_api(event)


@pytest.mark.usefixtures("counters")
@pytest.mark.parametrize(
    ("name", "more", "number"),
    [
        ("daily", DAY, {"jobs": 7, "units": 21}),
        ("hits", {}, {"hits": 7}),
        ("recent", LAST, {"total": 7}),
        ("kinds", {}, {"distinct": 3}),
    ],
)
def test_the_lines_add_up_to_the_number_that_is_read(name: str, more: Any, number: Any) -> None:
    status, found = get(f"explanations/{name}", customer="ann", **more)
    sums: Counter[str] = Counter()
    for line in found["lines"]:
        sums.update({measure: int(adds) for measure, adds in line["adds"].items()})
    assert (status, sums, found["numbers"]) == (200, Counter(number), number)
    assert (found["difference"], found["more"], bool(found["position"])) == ({}, False, True)
    assert {line["kind"] for line in found["lines"]} == {"counted"}


@pytest.mark.usefixtures("counters")
def test_an_answer_has_as_many_lines_as_its_limit_and_says_that_there_are_more() -> None:
    answers = [get("explanations/daily", customer="ann", **DAY, limit=limit)[1] for limit in (1, 6, 7)]
    assert [(len(found["lines"]), found["more"]) for found in answers] == [(1, True), (6, True), (7, False)]


@pytest.mark.usefixtures("counters")
@pytest.mark.parametrize("name", ["hits", "recent", "kinds", "sizes"])
def test_a_group_that_was_never_counted_has_no_lines(name: str) -> None:
    status, found = get(f"explanations/{name}", customer="dee")
    assert (status, found["numbers"], found["lines"], found["difference"]) == (200, {}, [], {})


@pytest.mark.usefixtures("counters")
def test_every_kind_that_is_shown_can_be_explained() -> None:
    document = openapi(SERVED, explained=EXPLAINED)
    found = {}
    for path, operations in document["paths"].items():
        if path.startswith("/v1/explanations/"):
            asked = [one["name"] for one in operations["get"]["parameters"]]
            named = {"customer": "ann", "kind": "k1", **DAY, **LAST}
            values = {name: text for name, text in named.items() if name in asked}
            found[path.rpartition("/")[2]] = get(path.removeprefix("/v1/"), **values)[0]
    # Only a Scan finds all jobs, or all groups of members.
    assert found == dict.fromkeys(EXPLAINED, 200) | {"all": 400, "active": 400}


@pytest.mark.usefixtures("counters")
def test_a_group_that_only_a_scan_reaches_is_refused_with_its_price() -> None:
    status, problem = get("explanations/all")
    assert status == 400
    assert problem["detail"].startswith("'all' is explained by a Scan, ")
    assert problem["detail"].endswith(" read units: use `counters explain`")


def test_a_scan_is_refused_while_the_size_of_the_table_is_not_known(counters: CountersInMemory) -> None:
    described = counters._memory.describe_table
    counters._memory.describe_table = lambda **request: {  # type: ignore[method-assign]
        "Table": described(**request)["Table"] | {"TableSizeBytes": 0}
    }
    assert get("explanations/all")[1]["detail"].startswith("'all' is explained by a Scan, 0 read units")


@pytest.mark.usefixtures("counters")
def test_a_group_of_too_many_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_EXPLAINED", 600)
    status, problem = get("explanations/daily", customer="ann", **DAY)
    assert (status, problem["detail"].partition("expected ")[2]) == (
        400,
        "a group that at most 600 bytes of items make; `counters explain` reads more",
    )


def test_a_group_that_was_changed_by_hand_has_a_difference(counters: CountersInMemory) -> None:
    counters.increment(DAILY, {"customer": "ann", **DAY}, amount={"jobs": 2})
    [key] = [
        {name: item[name] for name in ("pk", "sk")}
        for item in counters.client.scan(TableName=counters.table_name)["Items"]
        if item["_type"] == {"S": "daily"} and "ann" in item["pk"]["S"] + item["sk"]["S"]
    ]
    change = {"UpdateExpression": "ADD jobs :n", "ExpressionAttributeValues": {":n": {"N": "10"}}}
    counters.client.update_item(TableName=counters.table_name, Key=key, **change)
    found = get("explanations/daily", customer="ann", **DAY)[1]
    kinds = Counter(line["kind"] for line in found["lines"])
    assert (found["numbers"]["jobs"], found["difference"], kinds["tally"]) == (19, {"jobs": 10}, 1)


@pytest.mark.usefixtures("counters")
@pytest.mark.parametrize(
    ("path", "parameters", "status", "detail"),
    [
        ("explanations/other", {}, 404, "no explanation 'other'; available: daily"),
        ("explanations/daily", {}, 400, "missing parameter 'customer'"),
        ("explanations/daily", {"customer": "ann", **DAY, "last": "24h"}, 400, "unknown parameter 'last'"),
        ("explanations/daily", {"customer": "ann", **DAY, "limit": 0}, 400, "invalid limit='0'"),
        ("explanations/daily", {"customer": "ann", "at:day": "soon"}, 400, "invalid at:day='soon'"),
        ("explanations/recent", {"customer": "ann", "last": "400d"}, 400, "invalid last="),
        ("explanations/recent", {"customer": "ann", "start": NOW}, 400, "missing parameter 'end'"),
    ],
)
def test_a_bad_request_is_a_problem(path: str, parameters: Any, status: int, detail: str) -> None:
    got, problem = get(path, **parameters)
    assert (got, problem["detail"][: len(detail)]) == (status, detail)


def test_an_api_explains_no_declaration_that_is_not_explained(
    counters: CountersInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, CountResources(counters, SERVED, counters.clock))
    assert get("explanations/daily", customer="ann", **DAY)[0] == 404
    assert not [path for path in openapi(SERVED)["paths"] if "explain" in path]


@pytest.mark.usefixtures("counters")
def test_no_attempt_of_a_tenant_shows_a_line_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 attempts; ``ATTEMPTS=10000`` makes more."""
    monkeypatch.setenv("TENANT", json.dumps({"customer": "claims.sub"}))
    rng, statuses, lines = random.Random(20), Counter[int](), 0
    texts = [*CUSTOMERS, "", "an", "ann#2026-01-01", "ANN", "ann\x00", "*", "~", "customer", '{"S": "bob"}', "b%6Fb"]
    for _ in range(int(os.environ.get("ATTEMPTS", "1000"))):
        claim, name = rng.choice(CUSTOMERS), rng.choice(EXPLAINED)
        asked = [
            (key, rng.choice(values))
            for key, values in (
                ("customer", texts),
                ("at:day", ["2026-01-01", "2026-01-02", "2026-01-01#bob", *texts]),
                ("last", ["24h", "1h", "30d"]),
                ("limit", ["1", "100", "1000", "-1"]),
                ("kind", texts),
                ("id", texts),
                ("pk", [f"CUSTOMER#{text}" for text in texts]),
            )
            if rng.random() < (0.5 if key in ("customer", "at:day") else 0.15)
        ]
        if rng.random() < 0.5:
            asked = [(key, text) for key, text in asked if key in ("last", "limit")]
            asked += [("at:day", "2026-01-01")] if name == "daily" else []
        event = request("GET", f"/v1/explanations/{name}", urlencode(asked))
        event["requestContext"]["authorizer"] = {"jwt": {"claims": {"sub": claim}}}
        status, found = call_api(event)
        statuses[status] += 1
        assert status in (200, 400, 403), (claim, name, asked, found)
        foreign = [other for other in CUSTOMERS if other != claim]
        if status == 200:
            text, lines = json.dumps(found["lines"]), lines + len(found["lines"])
            assert found["values"]["customer"] == claim
            assert not [other for other in foreign if other in text], (claim, name, asked, found)
    print(f"seed 20: {dict(statuses)}, {lines:,} lines")
    assert lines > sum(statuses.values()) / 10
    assert statuses[200] > sum(statuses.values()) / 10
    assert statuses[403] > sum(statuses.values()) / 10
