"""Events are accepted once, alone and in bulk, on every engine."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamodb_counters import Aggregate, Count, Event, RejectedEventError, Window
from simulation.engines import Engine
from simulation.night import scaled
from tests.integration.stores import Store

_VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")


def _view(url: str = "/", time: str = "1", client: str = "c") -> dict[str, Any]:
    return {"url": url, "time": time, "clientId": client}


def test_an_item_too_large_for_dynamodb_is_rejected_and_its_neighbours_are_not(store: Store, engine: Engine) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack has no limit of item size")
    events: list[Any] = [_view(time="1"), {**_view(time="2"), "note": "x" * 410_000}, _view(time="3")]

    outcomes = store.counters.accept_many(_VIEW, events)

    assert [outcome.status for outcome in outcomes] == ["accepted", "rejected", "accepted"]
    assert "400" in str(outcomes[1].reason) or "size" in str(outcomes[1].reason)
    with pytest.raises(RejectedEventError):
        store.counters.accept(_VIEW, events[1])


def test_names_of_any_characters_are_stored(store: Store, engine: Engine) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack's PartiQL does not read a quoted attribute name as a whole")
    texts = ["it's", 'a "b"', "select", "é\U0001f600", "x.y[0]", "?", "{}", ":v", "a,b"]
    names = {text: f"value of {text}" for text in texts}

    assert store.counters.accept_many(_VIEW, [{**_view(), **names}])[0].status == "accepted"

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
