"""Queries of reads are as consistent as asked, no longer than the answer needs, and read a partition at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from counters_lambda.http_api.resources import CountResources
from dynamodb_counters import Aggregate, Count, Counters, Distinct, Event, InvalidArgumentError, Packed, Window
from dynamodb_counters._items.schema import CHECKPOINT_PREFIX, LAYOUT
from dynamodb_counters._reads.group_reads import GroupReads
from dynamodb_counters._reads.question import Position
from dynamodb_counters._reads.span_reads import add_moments
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import HOURS, Interval, Span
from simulation.memory_table import MemoryTable
from simulation.world import World
from tests.unit.writes.clients import ScriptedClient, scripted_table

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)
VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
HIT = Event("hit", pk="PAGE#{url}", sk="T#{time}", packed=Packed("time"), retention=DAY)
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
USAGE = Window("usage", VIEW, pk="URL#{url}", time="time", retention=None)
URL = {"url": "/"}

Read = Callable[[Counters, bool], object]
READS: dict[str, Read] = {
    "get": lambda counters, consistent: counters.get(VIEWS, URL, consistent=consistent),
    "get_many": lambda counters, consistent: counters.get_many([(VIEWS, URL)] * 2, consistent=consistent),
    "groups": lambda counters, consistent: [*counters.groups(VIEWS, URL, consistent=consistent)],
    "events": lambda counters, consistent: [*counters.events(VIEW, URL, consistent=consistent)],
    "packed events": lambda counters, consistent: [*counters.events(HIT, consistent=consistent)],
    "last": lambda counters, consistent: counters.window(USAGE, URL).last(DAY, consistent=consistent),
    "series": lambda counters, consistent: counters.window(USAGE, URL).series(
        NOW - DAY, NOW, step="hour", consistent=consistent
    ),
    "calendar": lambda counters, consistent: counters.window(USAGE, URL).calendar("month", consistent=consistent),
}
PAGE_VIEW = Event("view", pk="PAGE#{page}", sk="PAGE_VIEW#{user}")


@pytest.fixture
def queries() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def counters(queries: list[dict[str, Any]]) -> Counters:
    table = MemoryTable(NOW.timestamp)
    for name in ("query", "get_item", "batch_get_item"):
        send = getattr(table, name)

        def noted(send: Any = send, **request: Any) -> Any:
            [keys] = request.get("RequestItems", {table.name: None}).values()
            queries.append(request if keys is None else {"Key": keys["Keys"][0], **keys})
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
    assert {request["ConsistentRead"] for request in queries if not _of_bookkeeping(request)} == {consistent}


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
    resources = CountResources(counters, [VIEWS, USAGE, VIEW, HIT])
    resources.read(name, f"{query}&consistent={str(consistent).lower()}", resource=resource)
    assert {request["ConsistentRead"] for request in queries if not _of_bookkeeping(request)} == {consistent}


def test_a_page_of_packed_events_begins_where_the_one_before_ended(
    counters: Counters, queries: list[dict[str, Any]]
) -> None:
    resources = CountResources(counters, [HIT])
    span = "start=2026-11-19T00:00:00Z&end=2026-11-20T00:00:00Z"
    resources.read("hit", span, resource="events")
    all_of_it = len(queries)
    queries.clear()
    resources.read("hit", f"{span}&next={Position(int(NOW.timestamp()) - 1, '', '').token}", resource="events")
    assert sum(not _of_bookkeeping(request) for request in queries) == 1 < all_of_it


def _aggregate(name: str, sk: str, pk: str = "PAGE#{page}", write_shards: int = 1) -> Aggregate:
    return Aggregate(name, PAGE_VIEW, pk=pk, sk=sk, measures={"n": Count()}, write_shards=write_shards)


def _viewed(*declared: Any, users: tuple[str, ...] = ("ann", "bob")) -> World:
    bench = World(*declared)
    bench.counters.accept_many(PAGE_VIEW, [{"page": "home", "user": user, "word": user} for user in users])
    bench.deliver_all()
    return bench


@pytest.mark.parametrize(("pk", "sk"), [("PAGE#{page}", "A#{word}"), ("BARE#{page}", "{word}")])
def test_all_keys_of_a_prefix_are_read_and_no_others(pk: str, sk: str) -> None:
    # No segment of another item's key can be equal to that of a key that begins with a field: it has a single segment.
    users = ("", " ", "!", "é", "\x00", "zoe", "\U0010ffff")
    aggregate, other = _aggregate("one", sk, pk), _aggregate("two", "A#M#{word}#{user}")
    bench = _viewed(aggregate, other, users=users)
    key = aggregate._pk_template.render({"page": "home"}), aggregate._sk_template.render({"word": "foreign"})
    bench.table.put_item(TableName=bench.table.name, Item={"pk": {"S": key[0]}, "sk": {"S": key[1]}})
    assert {group.values["word"] for group in bench.counters.groups(aggregate, {"page": "home"})} == {*users}


def test_members_of_a_distinct_count_are_not_read_with_it() -> None:
    visitors = Distinct("visitors", PAGE_VIEW, pk="PAGE#{page}", sk="VISITORS", member="user")
    bench = _viewed(visitors)
    items: list[Mapping[str, Any]] = []
    query = bench.table.query

    def noted(**request: Any) -> dict[str, Any]:
        page = query(**request)
        items.extend(page["Items"])
        return page

    bench.table.query = noted  # type: ignore[method-assign]
    assert [group["distinct"] for group in bench.counters.groups(visitors, {"page": "home"})] == [2]
    assert len(items) == 1


def test_groups_of_several_items_each_are_not_listed() -> None:
    spread = _aggregate("spread", "A", write_shards=2)
    with pytest.raises(InvalidArgumentError, match="an aggregate with write_shards=1"):
        _viewed(spread).counters.groups(spread, {"page": "home"})


def test_groups_of_all_partitions_take_a_scan_that_is_priced_first() -> None:
    views = Aggregate("views", PAGE_VIEW, by=("page", "user"))
    bench = World(views, _aggregate("others", "A"))
    counters = bench.counters
    counters.accept_many(PAGE_VIEW, [{"page": f"p{number % 2}", "user": f"u{number}"} for number in range(5)])
    bench.deliver_all()
    refusal = r"invalid scan=False: expected True, for a Scan that takes [\d,]+ read units, or values of page"
    with pytest.raises(InvalidArgumentError, match=refusal):
        counters.groups(views)
    listed = list(counters.groups(views, scan=True))
    assert sorted(group.values["user"] for group in listed) == [f"u{number}" for number in range(5)]
    assert {group["views"] for group in listed} == {1}
    assert {group.values["user"] for group in counters.groups(views, page="p1", scan=True)} == {"u1", "u3"}
    assert [group.values["page"] for group in counters.groups(views, user="u3", scan=True)] == ["p1"]
    # Other code has written what is no group: its key is another one, or hashed and shows no values.
    for pk in ("other", "p%~" + "x" * 43):
        item = {"pk": {"S": pk}, "sk": {"S": "views"}, "_type": {"S": "views"}, "views": {"N": "1"}}
        bench.table.put_item(TableName=bench.table.name, Item=item)
    assert len([*counters.groups(views, scan=True)]) == len(listed)


@pytest.mark.parametrize("end", ["start", "end"])
def test_a_listing_of_no_sort_key_or_of_a_span_of_events_that_are_not_packed_asks_nothing(
    counters: Counters, queries: list[dict[str, Any]], end: str
) -> None:
    span: dict[str, Any] = {end: NOW}
    with pytest.raises(InvalidArgumentError, match=f"^invalid {end}=.*: expected none: events that are not packed"):
        counters.events(VIEW, url="/", **span)
    assert (list(counters.events(VIEW, url="/", after="U")), queries) == ([], [])


# What DynamoDB leaves unprocessed is asked for again, and never taken for zero


class _Reads(GroupReads):
    def __init__(self, table: Table) -> None:
        self._table = table


def _answer(arguments: dict[str, Any], most: int) -> dict[str, Any]:
    """Answer for the first keys: the group 7 has the count 7."""
    keys = arguments["RequestItems"]["table"]["Keys"]
    items = [{**key, "n": {"N": key["pk"]["S"].removeprefix("URL#")}} for key in keys[:most]]
    rest = {"table": {"Keys": keys[most:]}} if keys[most:] else {}
    return {"Responses": {"table": items}, "UnprocessedKeys": rest}


def _groups(count: int) -> list[tuple[Aggregate, dict[str, object]]]:
    return [(VIEWS, {"url": str(number)}) for number in range(count)]


@pytest.mark.parametrize(
    ("pairs", "most", "keys", "pauses"),
    [
        (_groups(10), 4, [2, 6, 10], 2),
        (_groups(250), 100, [50, 100, 100], 0),
        ([*_groups(2), *_groups(2)], 100, [2], 0),
        ([], 100, [], 0),
    ],
    ids=["left unprocessed", "more than a call takes", "asked for twice", "none"],
)
def test_each_key_is_asked_for_until_it_is_read(pairs: list[Any], most: int, keys: list[int], pauses: int) -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, most)] * 3)
    noted: list[float] = []

    groups = _Reads(scripted_table(client, noted)).get_many(pairs, consistent=False)

    assert [str(group.measures["n"]) for group in groups] == [values["url"] for _, values in pairs]
    assert sorted(len(arguments["RequestItems"]["table"]["Keys"]) for _, arguments in client.calls) == keys
    assert len(noted) == pauses


def test_keys_that_stay_unprocessed_are_an_error_not_a_zero() -> None:
    client = ScriptedClient(batch_get_item=[lambda arguments: _answer(arguments, 0)] * 50)

    with pytest.raises(Exception, match="2 keys stayed unread"):
        _Reads(scripted_table(client)).get_many(_groups(2), consistent=False)
    assert len(client.calls) < 50


def test_moments_are_told_from_changes_in_whatever_order_an_item_has_them() -> None:
    span, numbers = Span(HOURS, Interval(7200, 10_800)), {"total": 2, "total.t": 5}
    answers = [add_moments(span, [(2, dict(pairs))]) for pairs in (numbers.items(), reversed(numbers.items()))]
    assert answers == [5 + 7200 * 2] * 2
