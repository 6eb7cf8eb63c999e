"""Events listed by the counter API: each once, in order, page by page, whatever is written meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

import pytest

from counters_lambda.handlers import api
from counters_lambda.http_api.requests import read_json
from counters_lambda.http_api.resources import MAX_PAGE_SECONDS, CountResources
from dynamodb_counters import Counters
from dynamodb_counters._reads.question import Position
from dynamodb_counters._tiers import utc
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.memory_table import MemoryTable
from tests.unit.http_api.handlers import HIT, NOW, VIEW, counters_of, environment, pages, refusal, request, resources_of

_ALL: dict[str, Any] = {"start": "2026-09-01T00:00:00Z", "end": "2026-10-01T00:00:00Z"}
Values = dict[str, Any]


def hit(number: int, minutes: float = 0, url: str = "/", **more: Any) -> Values:
    moment = datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=minutes)
    return {"url": url, "time": moment.isoformat(), "clientId": f"c{number}", **more}


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable(lambda: NOW)


@pytest.fixture
def counters(table: MemoryTable) -> Counters:
    return counters_of(table)


@pytest.fixture
def serve(table: MemoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, resources_of(table))


def in_order(events: list[Values]) -> list[Values]:
    return sorted(events, key=itemgetter("time", "url", "clientId"))


@pytest.mark.usefixtures("serve")
@pytest.mark.parametrize("seed", range(5))
def test_no_event_is_lost_or_repeated_by_what_is_written_between_pages(seed: int, counters: Counters) -> None:
    generator = random.Random(seed)
    numbers = iter(range(10**6))

    def fresh(count: int) -> list[Values]:
        return [hit(next(numbers), generator.randrange(40)) for _ in range(count)]

    stays, goes = fresh(80), fresh(20)
    counters.accept_many(HIT, generator.sample(stays + goes, 100))

    def write() -> None:
        counters.accept_many(HIT, fresh(3))
        if goes:
            counters.retract(HIT, goes.pop())

    listed = list(pages("/v1/hit/events", "events", write, limit=9, **_ALL))
    events = [event for page in listed for event in page]

    assert {len(page) for page in listed[:-1]} == {9}
    assert events == in_order(events)
    assert len({event["clientId"] for event in events}) == len(events), f"seed {seed}"
    assert [event for event in events if event in stays] == in_order(stays), f"seed {seed}"


@pytest.mark.usefixtures("serve")
def test_plain_events_come_by_their_partition_in_the_order_of_their_sort_key(counters: Counters) -> None:
    views = [hit(number, 3 * number) for number in range(25)]
    counters.accept_many(VIEW, [*views, hit(0, url="/other")])

    listing = list(pages("/v1/view/events", "events", lambda: counters.retract(VIEW, views[0]), url="/", limit=10))

    assert [len(page) for page in listing] == [10, 10, 4]
    assert [event for page in listing for event in page] == in_order(views)[:-1]


@pytest.mark.usefixtures("serve")
def test_every_value_that_dynamodb_holds_is_written_without_loss(counters: Counters) -> None:
    values: Values = {
        "sum": Decimal("12345678901234567890.123456789012345678"),
        "huge": Decimal("1E+100"),
        "count": 3,
        "flag": True,
        "nothing": None,
        "raw": b"\x00\xff",
        "map": {"list": [1, Decimal("0.5"), {"a", "b"}]},
        "sizes": {Decimal("2.5"), 1},
        "blobs": {b"\x01", b"\x00"},
    }
    for event, path in ((HIT, "hit"), (VIEW, "view")):
        counters.accept(event, hit(0, **values))
        query = urlencode(_ALL if event is HIT else {"url": "/"})
        body = api.handler(request("GET", f"/v1/{path}/events", query), LAMBDA_CONTEXT)["body"]
        for part in (
            *('"sum":12345678901234567890.123456789012345678', '"raw":"AP8="', '"map":{"list":[1,0.5,["a","b"]]}'),
            *('"sizes":[1,2.5]', '"blobs":["AA==","AQ=="]', '"flag":true,"nothing":null'),
        ):
            assert part in body
        assert read_json(body)["events"][0]["huge"] == 10**100


@pytest.mark.usefixtures("serve")
def test_a_page_is_no_longer_than_a_response_may_be(counters: Counters) -> None:
    hits = [hit(number, number, text="x" * 300_000) for number in range(7)]
    for event in hits:
        assert counters.accept(HIT, event).status == "accepted"
    assert [len(page) for page in pages("/v1/hit/events", "events", limit=1000, **_ALL)] == [3, 3, 1]


def test_a_page_ends_in_time_where_a_filter_finds_nothing(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = [hit(number, 50 * number) for number in range(60)]
    counters.accept_many(HIT, hits)
    now = NOW

    def clock() -> float:
        nonlocal now
        now += 0.3
        return now

    counters._table = replace(counters._table, clock=clock)
    environment(monkeypatch, CountResources(counters, [HIT]))
    moments = [now]
    listed = [*pages("/v1/hit/events", "events", lambda: moments.append(now), clientId="c7", **_ALL)]
    assert all(later - earlier < MAX_PAGE_SECONDS + 1 for earlier, later in pairwise([*moments, now]))
    assert [event for page in listed for event in page] == [hits[7]]
    assert len(listed) > 10


def test_buckets_without_events_are_passed_over_many_at_a_time(
    table: MemoryTable, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.accept_many(HIT, [hit(0), hit(1, 60 * 24 * 10)])
    spans: list[timedelta] = []
    events = counters.events

    def noted(*arguments: Any, start: datetime, end: datetime, **more: Any) -> Iterator[Mapping[str, Any]]:
        spans.append(end - start)
        return events(*arguments, start=start, end=end, **more)

    monkeypatch.setattr(counters, "events", noted)
    page = CountResources(counters, [HIT]).read("hit", urlencode(_ALL), resource="events")
    assert [event["clientId"] for event in page["events"]] == ["c1", "c0"]
    assert sum(spans, timedelta()) == timedelta(days=30)
    assert len(spans) == 13  # 1, 2, 4, … of 4,320 buckets


@pytest.mark.usefixtures("serve")
@pytest.mark.parametrize(
    ("parameters", "detail"),
    [
        ({**_ALL, "limit": 0}, "invalid limit='0': expected an int from 1 to 1000"),
        ({**_ALL, "bytes": 1}, "invalid bytes='1': expected a field of 'hit': url, time, clientId"),
        ({**_ALL, "end": _ALL["start"], "consistent": ""}, "invalid consistent='': expected one of 'true', 'false'"),
        ({**_ALL, "next": Position(10**12, "", "").token}, "invalid next="),
        ({**_ALL, "next": "WzEsMiwzXQ"}, "invalid next='WzEsMiwzXQ': expected the 'next' of a response"),
    ],
)
def test_a_wrong_parameter_of_packed_events_is_refused(parameters: dict[str, object], detail: str) -> None:
    assert detail in refusal("/v1/hit/events", **parameters)


@pytest.mark.usefixtures("serve")
def test_plain_events_are_listed_by_partition_only() -> None:
    assert "invalid url=None: expected a value" in refusal("/v1/view/events")
    assert "invalid start=" in refusal("/v1/view/events", url="/", start=_ALL["start"])
    assert "expected a field of 'view': url; or of limit" in refusal("/v1/view/events", url="/", clientId="c")


def test_only_declared_events_are_listed(table: MemoryTable, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, resources_of(table, [VIEW]))
    assert refusal("/v1/hit/events", 404, **_ALL) == "no events 'hit'; available: view"


def test_expired_events_are_left_out_though_they_are_not_deleted_yet(table: MemoryTable) -> None:
    now = NOW
    counters = Counters("counters", client=table, clock=lambda: now)  # type: ignore[arg-type]
    event = replace(HIT, retention=timedelta(hours=1))
    counters.accept(event, hit(0))
    last = utc(NOW)
    now = (NOW // 600 + 1) * 600 + 3599
    assert len([*counters.events(event)]) == 1
    now += 1
    assert [*counters.events(event)] == [*counters.events(event, end=last)] == []


def test_a_span_that_ends_with_a_bucket_reads_no_other(
    table: MemoryTable, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = utc(NOW // 600 * 600)
    hits = [hit(number, url="/") | {"time": (end + timedelta(seconds=number)).isoformat()} for number in (-1, 0, 599)]
    counters.accept_many(HIT, hits)
    read, query = list[Values](), table.query

    def noted(**request: Any) -> Any:
        page = query(**request)
        read.extend(page["Items"])
        return page

    monkeypatch.setattr(table, "query", noted)
    assert [*counters.events(HIT, start=end - timedelta(minutes=10), end=end)] == hits[:1]
    chunks = [item["sk"]["S"] for item in read if "_chunk" in item]
    assert chunks == [f"{end - timedelta(minutes=10):%Y-%m-%dT%H:%M:%S}Z#000000"]


def test_values_are_those_of_whole_names(counters: Counters) -> None:
    counters.accept(HIT, hit(0) | {"a.b": "x", "a": {"b": "y"}, "tags[]": "t"})
    for values, count in (({"a.b": "x"}, 1), ({"a.b": "y"}, 0), ({"tags[]": "t"}, 1), ({"x:day": "x"}, 0)):
        assert len([*counters.events(HIT, values)]) == count
