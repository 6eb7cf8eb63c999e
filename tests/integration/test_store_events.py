"""Events are accepted once and can be read back, packed or not; resets and deadlines let nothing pass that must not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamodb_counters import (
    Aggregate,
    Count,
    Counter,
    Event,
    InvalidArgumentError,
    Packed,
    Ranking,
    RejectedEventError,
    Sum,
    Window,
)
from dynamodb_counters._assumptions import LONGEST_REQUEST
from dynamodb_counters.errors import CommitError
from simulation.engines import Engine
from simulation.night import scaled
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import NOW, image, record
from tests.unit.writes.clients import no_fault

_KEY: dict[str, Any] = {"pk": "URL#{url}", "sk": "T#{at}#CID#{client}"}
_BUCKET = timedelta(minutes=10)
_PLAIN = Event("plain", **_KEY)
_PACKED = Event("packed", **_KEY, packed=Packed("at", bucket=_BUCKET))
_IN_PARTS = Event("parts", **_KEY, packed=Packed("at", bucket=_BUCKET, parts=4, partition_by="client"))
_EVENTS = pytest.mark.parametrize("event", [_PLAIN, _PACKED, _IN_PARTS], ids=lambda event: event.name)
_SITE = Counter("site", n=Count())
_SHOP = Counter("shop", n=Count(), sum=Count(), ranking=Ranking(measure="n", leaderboard="SHOPS"))
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_CLIENT_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")


def _views(number: int) -> list[dict[str, Any]]:
    return [{"url": "/ab"[: 1 + n % 2], "at": NOW - 100 * n, "client": f"c{n % 5}", "n": n} for n in range(number)]


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sorted(events: Any) -> list[dict[str, Any]]:
    return sorted(events, key=lambda view: view["n"])


def test_events_of_a_group_in_a_span_of_time(store: Store) -> None:
    views = _views(40)
    store.counters.accept_many(_PACKED, views)
    start, end = NOW - 2500, NOW - 300

    found = store.counters.events(_PACKED, {"url": "/"}, start=_at(start), end=_at(end), consistent=True)

    assert _sorted(found) == [view for view in views if view["url"] == "/" and start <= view["at"] < end]


@_EVENTS
def test_values_of_every_type_come_back(store: Store, event: Event) -> None:
    odd = {
        "text": "a\nb",
        "none": None,
        "yes": True,
        "bytes": b"\0\xff",
        "tags": {"a", "b"},
        "sizes": {1, Decimal("2.5")},
    }
    view = {"url": "/", "at": NOW, "client": "c", **odd, "nested": {"list": [1, {"deep": "x"}, b"b"]}}
    store.counters.accept_many(event, [view, {"url": "/", "at": NOW, "client": "d", "text": "b"}])

    [found, _] = sorted(store.counters.events(event, {"url": "/"}, consistent=True), key=lambda each: each["client"])

    assert found == view


@pytest.mark.parametrize("how", [{"packed": _PACKED.packed}, {"version": "n"}], ids=["packed", "versioned"])
def test_retracted_and_replaced_events_are_left_out(store: Store, how: dict[str, Any]) -> None:
    event = Event("sale", pk="URL#{url}", sk="T#{at}", **how)
    key = {"url": "/", "at": NOW}
    store.counters.accept_many(event, [{**key, "n": n} for n in (1, 3, 2)])
    store.counters.accept(event, {**key, "at": NOW - 1, "n": 1})
    store.counters.retract(event, {**key, "at": NOW - 1})

    left = {**key, "n": 1 if event.version is None else 3}
    assert list(store.counters.events(event, {"url": "/"}, consistent=True)) == [left]


def test_expired_events_are_left_out_though_they_are_not_deleted_yet(store: Store) -> None:
    event = Event("packed", **_KEY, retention=timedelta(hours=1), packed=_PACKED.packed)
    store.counters.accept_many(event, _views(1))
    end = (NOW // 600 + 1) * 600
    store.clock.now = end + 3599
    assert len(list(store.counters.events(event, consistent=True))) == 1
    store.clock.now = end + 3600

    assert list(store.counters.events(event, consistent=True)) == []
    assert list(store.counters.events(event, end=_at(NOW), consistent=True)) == []


_WRONG: list[tuple[Any, Any, dict[str, Any], str]] = [
    (_PLAIN, None, {}, "a value for each of url"),
    (_PLAIN, {"url": "/"}, {"start": datetime(2026, 1, 1)}, "invalid start="),  # noqa: DTZ001 - the mistake
    (_PACKED, {"url": 1 / 3}, {}, "invalid url=0.3333"),
    (_PACKED, "/", {}, "invalid values='/'"),
    (_PACKED, {3: "/"}, {}, "invalid values=3"),
    (_PACKED, {"_type": "view"}, {}, "invalid values='_type'"),
    ("packed", None, {}, "invalid event='packed'"),
]


@pytest.mark.parametrize(("event", "values", "arguments", "message"), _WRONG)
def test_wrong_arguments_are_refused_before_anything_is_read(
    store: Store, event: Any, values: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        store.counters.events(event, values, **arguments)


def test_a_span_that_ends_with_a_bucket_reads_no_other(store: Store) -> None:
    begin = NOW // 600 * 600
    views = [{"url": "/", "at": begin + second, "client": "c", "n": second} for second in (-1, 0, 599)]
    store.counters.accept_many(_PACKED, views)
    answers = store.answers_of_queries()

    found = list(store.counters.events(_PACKED, start=_at(begin - 600), end=_at(begin), consistent=True))

    assert found == views[:1]
    assert [item["sk"]["S"] for answer in answers for item in answer["Items"] if "_chunk" in item] == [
        f"{_at(begin - 600):%Y-%m-%dT%H:%M:%S}Z#000000"
    ]


def test_values_are_those_of_whole_names(store: Store) -> None:
    view = {"url": "/", "at": NOW, "client": "c", "a.b": "x", "a": {"b": "y"}, "tags[]": "t"}
    store.counters.accept(_PACKED, view)

    for wanted, there in (
        ({"a.b": "x"}, True),
        ({"a.b": "y"}, False),
        ({"tags[]": "t"}, True),
        ({"x:day": "x"}, False),
    ):
        assert bool(list(store.counters.events(_PACKED, wanted, consistent=True))) is there


def test_a_reset_returns_what_it_took_and_leaves_what_came_later(store: Store) -> None:
    store.counters.increment(_SHOP, {}, amount={"n": 100, "sum": -7})
    assert store.counters.reset(_SHOP, {}) == {"n": 100, "sum": -7}
    assert store.item("shop", "shop")["_score"] == {"N": "0"}

    store.counters.increment(_SHOP, {}, amount={"n": 1, "sum": 3})
    assert store.counters.get(_SHOP, {}, consistent=True).measures == {"n": 1, "sum": 3}
    assert store.item("shop", "shop")["_score"] == {"N": "1"}


def test_two_resets_at_once_share_what_there_is(store: Store) -> None:
    store.counters.increment(_SITE, {}, amount=100)
    others: list[Any] = []

    def other_first(name: str, _: Any) -> None:
        if name == "update_item" and not others:
            others.append(None)
            others[0] = store.counters.reset(_SITE, {})
            store.counters.increment(_SITE, {}, amount=1)

    store.client.before = other_first

    assert store.counters.reset(_SITE, {}) == {"n": 1}
    assert others == [{"n": 100}]
    assert store.counters.get(_SITE, {}, consistent=True).measures == {"n": 0}


def _view(sequence: int, url: str = "a") -> dict[str, Any]:
    return record(sequence, image("view", url=url, id=str(sequence), bytes=10))


def test_no_write_begins_when_time_is_nearly_up_and_what_was_written_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [_view(n, url) for n, url in enumerate("abcd", start=1)]
    aggregator = store.aggregator(_VIEWS)
    monkeypatch.setattr("dynamodb_counters._table.CONCURRENCY", 1)
    written: list[str] = []

    def slow(name: str, _: object) -> None:
        if name == "update_item":
            written.append(name)
            store.clock.now += LONGEST_REQUEST / 2

    store.client.after = slow
    with pytest.raises(CommitError, match=r"2 item.*time is nearly up"):
        aggregator.handle({"Records": batch, "shardId": SHARD}, lambda: 1.9 * LONGEST_REQUEST)
    store.client.after = no_fault

    assert len(written) == 2
    counted = store.counters.get_many([(_VIEWS, {"url": url}) for url in "abcd"], consistent=True)
    assert sum(group.measures["n"] for group in counted) == 2
    report = aggregator.handle({"Records": batch, "shardId": SHARD})
    assert (report.updated, report.skipped) == (2, 2)


def _client_view(url: str = "/", time: str = "1", client: str = "c") -> dict[str, Any]:
    return {"url": url, "time": time, "clientId": client}


def test_an_item_too_large_for_dynamodb_is_rejected_and_its_neighbours_are_not(store: Store, engine: Engine) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack has no limit of item size")
    events: list[Any] = [
        _client_view(time="1"),
        {**_client_view(time="2"), "note": "x" * 410_000},
        _client_view(time="3"),
    ]

    outcomes = store.counters.accept_many(_CLIENT_VIEW, events)

    assert [outcome.status for outcome in outcomes] == ["accepted", "rejected", "accepted"]
    assert "400" in str(outcomes[1].reason) or "size" in str(outcomes[1].reason)
    with pytest.raises(RejectedEventError):
        store.counters.accept(_CLIENT_VIEW, events[1])


def test_names_of_any_characters_are_stored(store: Store) -> None:
    texts = ["it's", 'a "b"', "select", "é\U0001f600", "x.y[0]", "?", "{}", ":v", "a,b"]
    names = {text: f"value of {text}" for text in texts}

    assert store.counters.accept_many(_CLIENT_VIEW, [{**_client_view(), **names}])[0].status == "accepted"

    [item] = store.items()
    assert {name: item[name]["S"] for name in names} == names


_RUNS = count()
"""Distinguishes the examples on one table."""

_HOSTILE = st.one_of(
    st.text(alphabet="#%~\0\x7f 2350CIDT/é\u0301\U0001f600", max_size=6),
    st.text(max_size=10),
    st.sampled_from(["", "#", "%", "%~", "%23", "e\u0301", "é", "a" * 3000, "a" * 2999 + "b", "\U0001f600" * 700]),
)


@settings(max_examples=scaled(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_HOSTILE, _HOSTILE, _HOSTILE), max_size=30, unique=True))
def test_hostile_values_are_counted_exactly(store: Store, events: list[tuple[str, str, str]]) -> None:
    run = f"run{next(_RUNS)}"
    hit = Event("hit", pk="RUN#{run}#URL#{url}", sk="T#{time}#CID#{clientId}")
    views = Aggregate("views", hit, pk="RUN#{run}#URL#{url}", sk="STATISTICS", measures={"n": Count()})
    visits = Aggregate("visits", hit, pk="RUN#{run}#CID#{clientId}#T#{time}", sk="N", measures={"n": Count()})
    recent = Window("recent", hit, pk="RUN#{run}#URL#{url}", time="at")
    store.deploy(views, visits, recent)
    now = int(store.clock())
    sent = [{"run": run, "url": url, "time": time, "clientId": client, "at": now} for url, time, client in events]

    assert {outcome.status for outcome in store.counters.accept_many(hit, sent)} <= {"accepted"}
    assert {outcome.status for outcome in store.counters.accept_many(hit, sent)} <= {"duplicate"}
    records = [entry for entry in store.inserts() if entry["dynamodb"]["NewImage"]["pk"]["S"].startswith(f"RUN#{run}#")]
    report = store.deliver(records, views, visits, recent, shard=f"shardId-{run}")

    assert len(records) == len(events)
    assert report.quarantined == 0
    pairs = [(views, {"run": run, "url": url}) for url, _, _ in events]
    pairs += [(visits, {"run": run, "clientId": client, "time": time}) for _, time, client in events]
    for (aggregate, group), found in zip(pairs, store.counters.get_many(pairs, consistent=True), strict=True):
        wanted = sum(all(event[name] == value for name, value in group.items()) for event in sent)
        assert (found.values, found.measures) == (group, {"n": wanted}), aggregate.name
    for url in {url for url, _, _ in events}:
        answer = store.counters.window(recent, run=run, url=url).last(timedelta(hours=1), consistent=True)
        assert answer.count == sum(event["url"] == url for event in sent)
