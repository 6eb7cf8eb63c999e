"""Queries of reads are as consistent as asked, and no longer than the answer needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Window
from dynamodb_counters._http.resources import CountResources
from dynamodb_counters._items.table_schema import CHECKPOINT_PREFIX, LAYOUT
from dynamodb_counters._reads.question import Position
from simulation.memory_table import MemoryTable

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)
VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
HIT = Event("hit", pk="PAGE#{url}", sk="T#{time}", packed=Packed("time"), retention=DAY)
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
USAGE = Window("usage", VIEW, pk="URL#{url}", time="time", retention=None)
URL = {"url": "/"}

Read = Callable[[Counters, bool], object]
READS: dict[str, Read] = {
    "partition": lambda counters, consistent: counters.partition([VIEWS], URL, consistent=consistent),
    "scan": lambda counters, consistent: [*counters.scan(VIEWS, URL, consistent=consistent)],
    "events": lambda counters, consistent: [*counters.events(VIEW, URL, consistent=consistent)],
    "packed events": lambda counters, consistent: [*counters.events(HIT, consistent=consistent)],
    "last": lambda counters, consistent: counters.window(USAGE, URL).last(DAY, consistent=consistent),
    "series": lambda counters, consistent: counters.window(USAGE, URL).series(
        NOW - DAY, NOW, step="hour", consistent=consistent
    ),
    "calendar": lambda counters, consistent: counters.window(USAGE, URL).calendar("month", consistent=consistent),
}


@pytest.fixture
def queries() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def counters(queries: list[dict[str, Any]]) -> Counters:
    table = MemoryTable(NOW.timestamp)
    for name in ("query", "get_item"):
        send = getattr(table, name)

        def noted(send: Any = send, **request: Any) -> Any:
            queries.append(request)
            return send(**request)

        setattr(table, name, noted)
    return Counters(table.name, client=cast("Any", table), clock=NOW.timestamp)


def _of_bookkeeping(request: dict[str, Any]) -> bool:
    """Checkpoints and layouts."""
    values = request.get("ExpressionAttributeValues") or {":pk": request["Key"]["pk"]}
    return values[":pk"]["S"].startswith(CHECKPOINT_PREFIX) or values.get(":prefix") == {"S": LAYOUT}


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("read", READS)
def test_queries_are_as_consistent_as_asked(
    counters: Counters, queries: list[dict[str, Any]], read: str, consistent: bool
) -> None:
    READS[read](counters, consistent)
    assert {one["ConsistentRead"] for one in queries if not _of_bookkeeping(one)} == {consistent}


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize(
    ("resource", "name", "query"),
    [
        ("get", "views", "url=/"),
        ("get", "usage", "url=/&last=1h"),
        ("events", "view", "url=/"),
        ("events", "hit", "start=2026-11-19T00:00:00Z&end=2026-11-20T00:00:00Z"),
    ],
)
def test_answers_over_http_are_as_consistent_as_asked(
    counters: Counters, queries: list[dict[str, Any]], resource: str, name: str, query: str, consistent: bool
) -> None:
    resources = CountResources(counters, [VIEWS, USAGE, VIEW, HIT], NOW.timestamp)
    resources.read(name, f"{query}&consistent={str(consistent).lower()}", resource=resource)
    assert {one["ConsistentRead"] for one in queries if not _of_bookkeeping(one)} == {consistent}


def test_a_page_of_packed_events_begins_where_the_one_before_ended(
    counters: Counters, queries: list[dict[str, Any]]
) -> None:
    resources = CountResources(counters, [HIT], NOW.timestamp)
    span = "start=2026-11-19T00:00:00Z&end=2026-11-20T00:00:00Z"
    resources.read("hit", span, resource="events")
    all_of_it = len(queries)
    queries.clear()
    resources.read("hit", f"{span}&next={Position(int(NOW.timestamp()) - 1, '', '').token}", resource="events")
    assert sum(not _of_bookkeeping(one) for one in queries) == 1 < all_of_it
