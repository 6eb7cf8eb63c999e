"""Packed events are accepted once, whoever else writes, on every engine."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Counters, Event, Packed, Sum
from dynamodb_counters.errors import LayoutError
from simulation.engines import Engine
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW
from tests.unit.writes.clients import FaultyClient, failure

_BEGIN = NOW // 600 * 600
_PACKED = Packed("time", timedelta(minutes=10))
_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", packed=_PACKED)
_KEPT = Event("view", _VIEW.pk, _VIEW.sk, retention=timedelta(hours=1), packed=_PACKED)
_CORRECTED = Event("view", _VIEW.pk, _VIEW.sk, version="n", packed=_PACKED)


def _view(url: str = "/", time: Any = _BEGIN, client: Any = "c", **others: Any) -> dict[str, Any]:
    return {"url": url, "time": time, "clientId": client, **others}


def _views(*numbers: int) -> list[dict[str, Any]]:
    return [_view(client=str(number)) for number in numbers]


def _status(counters: Counters, views: list[dict[str, Any]], event: Event = _VIEW) -> list[str]:
    return [outcome.status for outcome in counters.accept_many(event, views)]


def _process(store: Store, client: Any = None) -> Counters:
    """A process that has read nothing yet."""
    return Counters(store.name, client=client or store.table.client, clock=store.clock)


def _chunks(store: Store) -> list[dict[str, Any]]:
    found = [item for item in store.items() if "_chunk" in item]
    return sorted(found, key=lambda item: str(item["pk"]["S"] + item["sk"]["S"]))


def _columns(chunk: dict[str, Any]) -> Any:
    return json.loads(zlib.decompress(bytes(chunk["_chunk"]["B"])))[3]


def test_an_event_is_accepted_once(store: Store) -> None:
    outcomes = [store.counters.accept(_VIEW, view).status for view in _views(1, 2, 1, 1)]

    assert outcomes == ["accepted", "accepted", "duplicate", "duplicate"]
    assert _status(_process(store), _views(2, 3, 1)) == ["duplicate", "accepted", "duplicate"]
    assert len(_chunks(store)) == 3


def test_the_first_of_equal_events_stays(store: Store) -> None:
    store.counters.accept(_VIEW, _view(note="first"))
    store.counters.accept_many(_VIEW, [_view(note="second")])
    store.counters.retract(_VIEW, _view(note="third"))

    assert [_columns(chunk)["note"] for chunk in _chunks(store)] == ["first", "first"]


def test_a_chunk_tells_its_type_its_place_and_when_it_may_go(store: Store) -> None:
    event = Event(
        "kept", pk="URL#{url}", sk="T#{time}", retention=timedelta(days=7), packed=Packed("time", timedelta(minutes=10))
    )
    values = {"url": "/#", "time": _BEGIN + 5, "price": Decimal("1.50"), "tags": {"a"}, "deep": {"x": [None, b"\0"]}}

    assert store.counters.accept(event, values).status == "accepted"

    [chunk] = _chunks(store)
    begin = datetime.fromtimestamp(_BEGIN, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (chunk["pk"], chunk["sk"], chunk["_type"]) == (
        {"S": "PACK#kept#0"},
        {"S": f"{begin}#000000"},
        {"S": "kept#pack"},
    )
    assert chunk["ttl"] == {"N": str(_BEGIN + 600 + 8 * 86_400)}
    assert _columns(chunk) == {
        "url": "/#",
        "time": ["N", str(_BEGIN + 5)],
        "price": ["N", "1.50"],
        "tags": ["", [{"SS": ["a"]}]],
        "deep": ["", [{"M": {"x": {"L": [{"NULL": True}, {"B": base64.b64encode(b"\0").decode()}]}}}]],
    }


def test_many_events_are_answered_in_their_order(store: Store) -> None:
    store.counters.accept(_VIEW, _views(7)[0])
    refused: list[Any] = [{"url": "/"}, _view(time="soon"), _view(time=_BEGIN + 86_400)]

    statuses = _status(store.counters, [*_views(0, 1, 1), *refused, *_views(*range(60))])

    expected = ["accepted"] * 60
    expected[0] = expected[1] = expected[7] = "duplicate"
    assert statuses == ["accepted", "accepted", "duplicate", "rejected", "rejected", "rejected", *expected]
    assert len(_chunks(store)) == 2


def test_sending_the_same_again_writes_nothing(store: Store) -> None:
    events = _views(*range(30))
    store.counters.accept_many(_VIEW, events)
    puts = store.client.called("put_item")

    for counters in (store.counters, _process(store)):
        assert set(_status(counters, events)) == {"duplicate"}
    assert store.client.called("put_item") == puts


def test_a_bucket_of_many_chunks(store: Store, engine: Engine) -> None:
    # More than a page of 1 MB on AWS's own engine; elsewhere a few hundred say as much, in seconds.
    many = 1200 if engine.name == "dynamodb_local" else 300
    writer = _process(store)
    noise = random.Random(1)
    # Each fills a chunk of the least size by itself.
    event = Event("view", _VIEW.pk, _VIEW.sk, packed=Packed("time", timedelta(minutes=10), chunk_bytes=1024))
    events = [{**view, "noise": noise.randbytes(500).hex()} for view in _views(*range(many))]

    assert Counter(_status(writer, events, event)) == {"accepted": many}

    assert len(_chunks(store)) == many
    cold = _process(store)
    some = [events[0], events[many // 2], events[-1], *_views(9999)]
    assert _status(cold, some, event) == ["duplicate", "duplicate", "duplicate", "accepted"]
    assert cold.retract(event, events[17])
    assert _chunks(store)[-1]["sk"]["S"].endswith(f"#{many + 1:06}")


def test_late_and_early_events_are_refused(store: Store) -> None:
    late, ahead = _BEGIN - 3600 - 600, NOW + 15 * 60
    views = [_view(time=time) for time in (late, late - 1 + 600, late + 600, ahead, ahead + 1)]

    outcomes = store.counters.accept_many(_KEPT, views)

    expected = ["too_late", "too_late" if late + 600 + 3600 <= NOW else "accepted", "accepted", "accepted", "rejected"]
    assert [outcome.status for outcome in outcomes] == expected
    assert "remembered" in str(outcomes[0].reason)
    assert "future" in str(outcomes[-1].reason)


def test_a_bucket_that_has_expired_in_part_is_not_written(store: Store) -> None:
    for view in _views(0, 1, 2):
        store.counters.accept(_KEPT, view)
    first, *left = _chunks(store)
    store.client.delete_item(TableName=store.name, Key={"pk": first["pk"], "sk": first["sk"]})

    assert _status(_process(store), _views(0, 1, 2, 3), _KEPT) == 4 * ["too_late"]
    # To one that has seen them they are duplicates.
    assert _status(store.counters, _views(1), _KEPT) == ["duplicate"]
    assert _chunks(store) == left


@pytest.mark.parametrize("lost", [1, 2])
def test_a_put_whose_answer_is_lost_counts_once(store: Store, lost: int) -> None:
    client, left = FaultyClient(store.table.client), [lost]

    def lose(name: str, arguments: Any) -> None:
        if name == "put_item" and "_chunk" in arguments["Item"] and left[0]:
            left[0] -= 1
            raise ReadTimeoutError(endpoint_url="http://lost")

    client.after = lose
    writer = _process(store, client)

    assert _status(writer, _views(1, 2)) == ["accepted", "accepted"]
    left[0] = lost
    assert writer.retract(_VIEW, _view(client="1"))
    assert not _process(store).retract(_VIEW, _view(client="1"))
    assert len(_chunks(store)) == 2


def test_a_put_that_the_client_sends_twice_counts_once(store: Store) -> None:
    client = FaultyClient(store.table.client)

    def send_before(name: str, arguments: Any) -> None:
        if name == "put_item" and "_chunk" in arguments["Item"]:
            # The answer to this one never arrives: what is sent again is refused.
            store.table.client.put_item(**arguments)

    client.before = send_before
    writer = _process(store, client)

    assert _status(writer, _views(1, 2)) == ["accepted", "accepted"]
    assert _status(writer, _views(2, 3)) == ["duplicate", "accepted"]
    assert writer.retract(_VIEW, _view(client="1"))
    assert len(_chunks(store)) == 3


def test_what_is_throttled_for_good_fails_and_can_be_sent_again(store: Store) -> None:
    client = FaultyClient(store.table.client)
    writer = _process(store, client)
    object.__setattr__(writer._table, "sleep", lambda _: None)
    assert _status(writer, _views(1)) == ["accepted"]

    def throttle(name: str, _: Any) -> None:
        if name == "put_item":
            raise failure("ThrottlingException")

    client.before = throttle
    assert _status(writer, _views(1, 2)) == ["duplicate", "failed"]
    client.before = lambda *_: None
    assert _status(writer, _views(1, 2)) == ["duplicate", "accepted"]


def test_writers_with_caches_of_their_own_accept_each_event_once(store: Store) -> None:
    events = _views(*range(200))

    def write(seed: int) -> Counter[str]:
        rng, counters, told = random.Random(seed), _process(store), Counter[str]()
        object.__setattr__(counters._table, "sleep", lambda _: None)
        mine = rng.sample(events, len(events))
        while mine:
            size = rng.randint(1, 30)
            outcomes = _status(counters, mine[:size])
            told.update(outcomes)
            # What kept failing is sent again.
            mine = [view for view, status in zip(mine, outcomes, strict=False) if status == "failed"] + mine[size:]
        return told

    with ThreadPoolExecutor(6) as pool:
        told = sum(pool.map(write, range(6)), Counter[str]())

    assert told["accepted"] == len(events)
    assert told["duplicate"] == 5 * len(events)
    rows = [client for chunk in _chunks(store) for client in _columns(chunk)["clientId"].split("\x7f")]
    assert sorted(rows) == sorted(view["clientId"] for view in events)


def test_threads_that_share_a_cache_accept_each_event_once(store: Store) -> None:
    batches = [_views(*range(first, first + 20)) for first in range(0, 100, 10)] * 3

    with ThreadPoolExecutor(6) as pool:
        told = Counter(status for found in pool.map(lambda b: _status(store.counters, b), batches) for status in found)

    assert told == {"accepted": 110, "duplicate": 600 - 110}


def test_a_layout_changes_from_a_date_on(store: Store) -> None:
    hour = 3600
    since = datetime.fromtimestamp(_BEGIN + 3 * hour, UTC)
    newer = Packed("time", timedelta(minutes=1), parts=3, since=since, before=_PACKED)
    changed = Event("view", _VIEW.pk, _VIEW.sk, packed=newer)
    undated = Event("view", _VIEW.pk, _VIEW.sk, packed=Packed("time", timedelta(minutes=1)))
    assert _status(store.counters, _views(1)) == ["accepted"]

    with pytest.raises(LayoutError):
        _process(store).accept(undated, _view(client="1"))
    after = _process(store)
    assert _status(after, _views(1, 2), changed) == ["duplicate", "accepted"]
    # Who knows the one before only does as the table says.
    store.clock.now = _BEGIN + 3 * hour + 60
    later = [_view(time=_BEGIN + 3 * hour, client=str(number)) for number in range(9)]
    assert set(_status(after, later, changed)) == {"accepted"}
    assert set(_status(_process(store), later)) == {"duplicate"}
    assert {chunk["pk"]["S"] for chunk in _chunks(store)} == {f"PACK#view#{part}" for part in range(3)}


def test_events_before_the_date_are_plain_items(store: Store) -> None:
    plain = Event("view", _VIEW.pk, _VIEW.sk)
    since = datetime.fromtimestamp(_BEGIN + 7200, UTC)
    mixed = Event("view", _VIEW.pk, _VIEW.sk, packed=Packed("time", since=since, future_tolerance=timedelta(0)))
    early, late = _view(client="1"), _view(time=_BEGIN + 7200, client="1")
    assert store.counters.accept(plain, early).status == "accepted"

    assert _status(store.counters, [early, _view(client="2"), late], mixed) == ["duplicate", "accepted", "rejected"]
    store.clock.now = _BEGIN + 7200
    assert _status(store.counters, [late, late], mixed) == ["accepted", "duplicate"]
    assert store.counters.retract(mixed, early)
    assert store.counters.retract(mixed, late)
    assert sorted(item["_type"]["S"] for item in store.items() if "layouts" not in item) == [
        "view",
        "view#pack",
        "view#pack",
    ]


_RUNS = count()
"""Distinguishes the examples on one table."""

_ACT = st.tuples(
    st.sampled_from(["accept", "accept", "accept", "retract", "other process"]),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["x", "", "\n", "y" * 500]),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(_ACT, min_size=1, max_size=6), max_size=8))
def test_any_history_comes_to_what_a_dict_comes_to(store: Store, history: list[list[Any]]) -> None:
    run = f"run{next(_RUNS)}"
    event = Event(run, pk=f"{run}#{{url}}", sk="T#{time}#CID#{clientId}", version="n", packed=_PACKED)
    total = Aggregate("total", event, pk=f"TOTAL#{run}", sk="ALL", measures={"views": Count(), "sum": Sum("n")})
    store.deploy(total)
    processes, current = [_process(store), _process(store)], 0
    there: dict[int, int | None] = {}
    for acts in history:
        batch: list[tuple[int, dict[str, Any]]] = []
        for act, number, version, note in acts:
            view = _view(client=str(number), n=version, note=note)
            if act == "accept":
                batch.append((number, view))
            elif act == "retract":
                assert processes[current].retract(event, {**view, "note": "?"}) == bool(there.get(number))
                there[number] = None
            else:
                current = 1 - current
        expected = []
        for number, view in batch:
            known = there.get(number, 0)
            is_new = known is not None and view["n"] > known
            expected.append("accepted" if is_new else "duplicate")
            there[number] = view["n"] if is_new else known
        told = _status(processes[current], [view for _, view in batch], event)
        # Other payloads of a version are told where both are in a batch.
        assert [status.replace("conflict", "duplicate") for status in told] == expected
    records = [
        entry for entry in store.inserts() if entry["dynamodb"]["NewImage"]["pk"]["S"].startswith(f"PACK#{run}#")
    ]
    if records:
        store.deliver(records, total, shard=f"shardId-{run}")
    live = [version for version in there.values() if version]
    found = store.counters.get(total, {}, consistent=True).measures
    assert found == {"views": len(live), "sum": sum(live)}
