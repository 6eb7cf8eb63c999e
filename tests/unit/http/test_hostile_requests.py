"""Hostile requests among sensible ones: no 5xx, no exception, and every answer is as the OpenAPI document says.

``pytest -s`` prints the statuses; ``--hypothesis-seed=0`` repeats a run.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import fastjsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamodb_counters._http.openapi import openapi
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._reads.question import OPTIONS, SPAN, Position
from dynamodb_counters.handlers import api, ingest_queue
from simulation.hostile.__main__ import attack
from simulation.hostile.costly import BODIES as COSTLY
from simulation.hostile.doors import Door, all_doors
from simulation.night import scaled
from tests.unit.http.counted import URLS
from tests.unit.http.handlers import DECLARATIONS, EVENTS, Queue, call_api, call_ingest, request

# Many requests per example: Hypothesis's overhead per example exceeds the time of a request.
_REQUESTS = 20
_SETTINGS = settings(
    max_examples=scaled(15),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
TEXTS = st.text(max_size=30)
NAMES = st.sampled_from([declared.name for declared in (*DECLARATIONS, *EVENTS)]) | TEXTS.map(
    lambda text: quote(text, safe="")
)
TAILS = st.sampled_from(["", "/top", "/events", "/series", "/x"])
LENGTHS = st.from_regex(r"[0-9]{1,9}[mhdsw]", fullmatch=True) | st.sampled_from(["24h", "1h", "1m", "366d", "0m"])
MOMENTS = (
    st.sampled_from(
        ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "1970-01-01T00:00:00Z", "2026-09-21T14:13:20Z"]
    )
    | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
    | TEXTS
)
PARAMETERS = {
    "url": st.sampled_from(sorted(URLS)) | TEXTS,
    "clientId": st.sampled_from(["c0", "c1"]) | TEXTS,
    "last": LENGTHS | TEXTS,
    "step": LENGTHS | st.sampled_from(["hour", "month"]) | TEXTS,
    "as_of": MOMENTS,
    "tz": st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "..", "/etc/passwd"]) | TEXTS,
    "anchor": st.integers(-5, 40).map(str) | TEXTS,
    "p": st.sampled_from(["0.5", "0.5,0.95,1", "2", "0.5,", "x"]) | TEXTS,
    "order": st.sampled_from(["largest", "smallest", "first"]) | TEXTS,
    "rolling": LENGTHS | TEXTS,
    "start": MOMENTS,
    "end": MOMENTS,
    "time": MOMENTS,
    "limit": st.integers(-5, 2000).map(str) | TEXTS,
    "next": st.builds(lambda *parts: Position(*parts).token, st.integers(), TEXTS, TEXTS) | TEXTS,
    "consistent": st.sampled_from(["true", "false", "1"]) | TEXTS,
}
QUERIES = (
    st.lists(st.sampled_from(sorted(PARAMETERS)), unique=True, max_size=5)
    .flatmap(lambda names: st.fixed_dictionaries({name: PARAMETERS[name] for name in names}))
    .map(lambda pairs: urlencode(pairs, quote_via=quote_plus))
) | st.text(st.characters(max_codepoint=127), max_size=60)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
DOCUMENT = openapi((*DECLARATIONS, *EVENTS))
DOCUMENTED = [
    (path, [parameter["name"] for parameter in operations["get"]["parameters"]])
    for path, operations in DOCUMENT["paths"].items()
    if "get" in operations
]
KEYS = st.sampled_from(["url", "time", "clientId", "pk", "_type", "ttl", "groups", "aggregate", "values"]) | TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
VIEWS = st.fixed_dictionaries(
    {"url": st.text(max_size=120) | SCALARS, "time": TEXTS | SCALARS, "clientId": TEXTS | SCALARS},
    optional={"bytes": SCALARS, "more": JSON},
)
ACCEPTABLE = st.fixed_dictionaries(
    {name: st.text(min_size=1, max_size=40) for name in ("url", "time", "clientId")},
    optional={"bytes": st.integers(-(10**37), 10**37)},
)
GROUP = st.fixed_dictionaries(
    {
        "aggregate": st.sampled_from(["views", "site", "rolling"]) | SCALARS,
        "values": st.sampled_from([{}, *({"url": url} for url in URLS)]) | JSON,
    }
)
WINDOW = st.fixed_dictionaries(
    {"window": st.sampled_from(["rolling", "kept", "views"]) | SCALARS, "values": st.just({"url": "/"}) | JSON},
    optional={name: PARAMETERS[name] | SCALARS for name in SPAN},
)
BODIES = (
    (
        st.lists(ACCEPTABLE, min_size=1, max_size=6)
        | ACCEPTABLE
        | st.lists(VIEWS, max_size=6)
        | VIEWS
        | JSON
        | st.fixed_dictionaries(
            {}, optional={"groups": st.lists(GROUP, max_size=4), "windows": st.lists(WINDOW, max_size=4)}
        )
    ).map(json.dumps)
    | st.text(max_size=60)
    | st.just("[" * 100_000)
    | st.just("9" * 5000)
)
HEADERS = st.sampled_from(
    [{"content-type": "application/json"}] * 4
    + [{"Content-Type": "text/plain;charset=UTF-8"}, {}, {"content-type": "a/b"}]
)


@st.composite
def api_requests(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return draw(posts(st.just("/v1/batch")))
    if kind <= 3:
        path, names = draw(st.sampled_from(DOCUMENTED))
        chosen = [name for name in names if name not in OPTIONS or draw(st.booleans())]
        return request("GET", path, urlencode({name: draw(PARAMETERS[name]) for name in chosen}))
    path = draw(st.just(f"/v1/{draw(NAMES)}{draw(TAILS)}") | TEXTS.map(lambda text: "/" + text))
    return request(draw(st.sampled_from(["GET", "GET", "GET", "POST", "PUT"])), path, draw(QUERIES))


@st.composite
def posts(draw: st.DrawFn, paths: st.SearchStrategy[str]) -> dict[str, Any]:
    event = request("POST", draw(paths), draw(st.just("") | QUERIES), draw(BODIES | st.none()), draw(HEADERS))
    if "body" in event and draw(st.integers(0, 3)) == 0:
        data = draw(st.binary(max_size=40) | st.just(str(event["body"]).encode(errors="replace")))
        event |= {"isBase64Encoded": True, "body": base64.b64encode(data).decode()}
    return event


@pytest.fixture(scope="module")
def statuses() -> Iterator[dict[str, Counter[int]]]:
    """Responses of each API by status."""
    found: dict[str, Counter[int]] = {"counter API": Counter(), "ingest API": Counter()}
    yield found
    for name, counts in found.items():
        print(f"\n{name}: {counts.total():,} requests, by status {dict(sorted(counts.items()))}")


@pytest.fixture
def counts(queue: Queue, counted: CountResources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve a table that holds counts."""
    monkeypatch.setattr(api, "resources", lambda: counted)


def _draft07(schema: Any) -> Any:
    """A schema of OpenAPI 3.0 as JSON Schema has it."""
    if not isinstance(schema, dict):
        return [_draft07(part) for part in schema] if isinstance(schema, list) else schema
    found = {name: _draft07(part) for name, part in schema.items() if name not in ("nullable", "example", "default")}
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") is True else found


@cache
def _conforms(method: str, path: str, status: int) -> Callable[[Any], Any]:
    """Check of an answer; KeyError if the document does not have the operation or the status."""
    [content] = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"].values()
    schema = {**_draft07(content["schema"]), "components": _draft07(DOCUMENT["components"])}
    check: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return check


@_SETTINGS
@given(st.lists(api_requests(), min_size=_REQUESTS, max_size=_REQUESTS))
def test_the_counter_api_answers_or_says_why_not(
    counts: None, statuses: dict[str, Counter[int]], events: list[dict[str, Any]]
) -> None:
    for event in events:
        status, document = call_api(event)
        statuses["counter API"][status] += 1
        assert status < 500, event
        method, path = event["requestContext"]["http"]["method"].lower(), event["rawPath"]
        if method in DOCUMENT["paths"].get(path, ()) and status != 404:
            _conforms(method, path, status)(document)


@_SETTINGS
@given(st.lists(posts(st.just("/events") | TEXTS.map(quote)), min_size=_REQUESTS, max_size=_REQUESTS))
def test_the_ingest_api_takes_or_says_why_not(
    queue: Queue, statuses: dict[str, Counter[int]], events: list[dict[str, Any]]
) -> None:
    for event in events:
        queue.messages.clear()
        status, document = call_ingest(event)
        statuses["ingest API"][status] += 1
        assert status < 500, event
        queued = [view for message in queue.messages for view in json.loads(message)]
        assert len(queued) == (document["events"] if status == 202 else 0)


@pytest.fixture(autouse=True)
def _no_metrics_are_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions of a process share their metrics: what is left here would be written elsewhere."""
    monkeypatch.setattr(ingest_queue.metrics.provider, "namespace", "Counters")
    yield
    ingest_queue.metrics.clear_metrics()


@pytest.fixture(scope="module")
def doors() -> dict[str, Door]:
    """Build the doors once."""
    return {door.name: door for door in all_doors()}


def test_no_stranger_breaks_a_door(doors: dict[str, Door]) -> None:
    """``python -m simulation.hostile --requests 30000`` sends more, and bodies that cost as much as they can."""
    seed = int(os.environ.get("SEED") or 15)
    totals = attack([*doors.values()], scaled(80), seed, costly={})
    assert [f"seed {seed}: {text}" for one in totals.values() for text in one.wrong] == []
    taken = sum(one.statuses["202"] + one.statuses["200"] for one in totals.values())
    assert 0 < taken < sum(one.statuses.total() for one in totals.values())


@pytest.mark.parametrize("name", COSTLY)
def test_no_body_of_a_megabyte_takes_a_second(doors: dict[str, Door], name: str) -> None:
    for door in (doors["receiver with both"], doors["consumer, direct mode"], doors["API"]):
        [totals] = attack([door], 1, 0, costly={name: COSTLY[name]}).values()
        assert totals.wrong == []
