"""Reads give what was counted: groups in the order asked, windows over exactly the interval they state."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, InvalidArgumentError, Sum, Window, WindowCount
from simulation.engines import Engine
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW, Record, image, record

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count(), "bytes": Sum("bytes")})
_SITE = Aggregate("site", _VIEW, pk="SITE", sk="SITE", measures={"n": Count()})
_KEPT = Window("kept", _VIEW, pk="URL#{url}", time="at")
_SHORT = Window("short", _VIEW, pk="URL#{url}", time="at", measure=Sum("bytes"), retention=timedelta(hours=25))


def _views(times: list[int], url: str = "/", first: int = 1) -> list[Record]:
    """Make an event a time, created when it happened; they have 1, 2, 3, … bytes."""
    return [record(first + n, image("view", url=url, at=at, bytes=n + 1), created=at) for n, at in enumerate(times)]


def _window(store: Store, window: Window, url: str = "/", **asked: Any) -> WindowCount:
    return store.counters.window(window, {"url": url}, **asked, consistent=True)


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_what_was_never_counted_is_zero(store: Store) -> None:
    group = store.counters.get(_VIEWS, {"url": "/"})

    assert (group.values, group.measures) == ({"url": "/"}, {"n": 0, "bytes": 0})
    assert store.counters.window(_KEPT, {"url": "/"}, last=timedelta(hours=24)).count == 0


def test_more_groups_than_a_call_takes_come_in_the_order_asked(store: Store) -> None:
    counted = [record(n, image("view", url=str(n), bytes=n, at=NOW)) for n in range(1, 111)]
    store.deliver(counted, _VIEWS, _SITE)
    urls = [str(n) for n in range(1, 121)]
    random.Random(7).shuffle(urls)
    asked: list[tuple[Aggregate, dict[str, object]]] = [(_VIEWS, {"url": url}) for url in [*urls, *urls[:5]]]

    groups = store.counters.get_many([*asked, (_SITE, {})], consistent=True)

    assert [group.values.get("url") for group in groups] == [*urls, *urls[:5], None]
    assert [group.measures["n"] for group in groups[:-1]] == [int(int(url) <= 110) for url in [*urls, *urls[:5]]]
    assert groups[-1].measures == {"n": 110}


def test_numbers_and_equal_texts_name_the_same_group(store: Store) -> None:
    store.counters.increment(_VIEWS, {"url": 200}, {"n": 2})

    for url in (200, "200", Decimal("2E+2")):
        assert store.counters.get(_VIEWS, {"url": url}, consistent=True).measures["n"] == 2


def test_fractions_are_exact(store: Store) -> None:
    for part in ("0.1", "0.2", "1E-20"):
        store.counters.increment(_VIEWS, {"url": "/"}, {"bytes": Decimal(part)})

    found = store.counters.get(_VIEWS, {"url": "/"}, consistent=True)
    assert found.measures["bytes"] == Decimal("0.30000000000000000001")


@pytest.mark.parametrize("seed", range(3))
def test_a_window_counts_exactly_the_interval_it_states(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    times = sorted(NOW - chance.randrange(40 * 3600) for _ in range(150))
    times += [NOW, NOW - 24 * 3600, NOW // 3600 * 3600, NOW // 60 * 60 - 1]
    store.deliver(_views(times), _KEPT, _SHORT)

    for minutes in (1, 2, 59, 60, 61, 24 * 60, 24 * 60 + 1, chance.randrange(1, 40 * 60)):
        for as_of in (None, _at(NOW - chance.randrange(3600))):
            answer = _window(store, _KEPT, last=timedelta(minutes=minutes), as_of=as_of)
            start, end = answer.start.timestamp(), answer.end.timestamp()
            assert answer.count == sum(start <= at < end for at in times)
            assert end - start == minutes * 60
            assert 0 < end - (NOW if as_of is None else as_of.timestamp()) <= 60
    answer = _window(store, _SHORT, last=timedelta(hours=24))
    inside = [n + 1 for n, at in enumerate(times) if answer.start.timestamp() <= at < answer.end.timestamp()]
    assert answer.count == sum(inside)


def test_windows_of_groups_and_names_side_by_side_do_not_mix(store: Store) -> None:
    store.deliver(_views([NOW] * 3, "/a"), _KEPT, _SHORT)
    store.deliver(_views([NOW] * 5, "/a/b", 10), _KEPT, _SHORT)
    hour = timedelta(hours=1)

    assert [_window(store, _KEPT, url, last=hour).count for url in ("/a", "/a/b")] == [3, 5]
    assert _window(store, _SHORT, "/a", last=hour).count == 1 + 2 + 3


def test_a_window_is_read_by_one_query(store: Store) -> None:
    store.deliver(_views([NOW - 3600 * hour for hour in range(30, -1, -1)]), _KEPT)
    # A process asks once a minute which items hold the counts.
    store.counters.window(_KEPT, {"url": "/"}, last=timedelta(hours=24))
    before = len(store.client.calls)
    queries = store.answers_of_queries()

    assert store.counters.window(_KEPT, {"url": "/"}, last=timedelta(hours=24)).count >= 24
    assert len(queries) == 1
    assert len(store.client.calls) == before


def test_a_window_longer_than_a_page_is_read_whole(store: Store, engine: Engine) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack answers every Query in one page")
    hours = range(6)
    store.deliver(_views([NOW - 3600 * hour for hour in reversed(hours)]), _KEPT)
    # Another writer's attribute makes the buckets so large that a page of 1 MB holds but a few.
    for item in store.items():
        store.client.put_item(TableName=store.name, Item={**item, "note": {"S": "x" * 350_000}})
    queries = store.answers_of_queries()

    assert _window(store, _KEPT, last=timedelta(hours=7)).count == len(hours)
    assert len(queries) > 1


def test_a_window_cannot_reach_beyond_what_is_retained(store: Store) -> None:
    store.counters.window(_SHORT, {"url": "/"}, last=timedelta(hours=25))

    with pytest.raises(InvalidArgumentError, match="retains no more") as refused:
        store.counters.window(_SHORT, {"url": "/"}, last=timedelta(hours=25, minutes=1))
    assert refused.value.argument == "last"
    with pytest.raises(InvalidArgumentError, match="retains no more"):
        store.counters.window(_SHORT, {"url": "/"}, last=timedelta(hours=2), as_of=_at(NOW - 24 * 3600))


def test_what_is_retained_can_be_asked_about_as_of_then(store: Store) -> None:
    times = [NOW - 10 * 3600, NOW - 9 * 3600, NOW]
    store.deliver(_views(times), _SHORT)

    assert _window(store, _SHORT, last=timedelta(hours=2), as_of=_at(NOW - 9 * 3600)).count == 1 + 2


def test_buckets_that_have_expired_but_are_still_there_do_not_count(store: Store) -> None:
    store.deliver(_views([NOW, NOW + 24 * 3600]), _SHORT)
    assert len(store.items()) == 2
    store.clock.now = NOW + 26 * 3600 + 3600

    answer = _window(store, _SHORT, last=timedelta(hours=25))

    assert answer.count == 2
    assert answer.start.timestamp() > NOW


def test_buckets_carry_their_expiry_and_kept_ones_do_not(store: Store) -> None:
    store.deliver(_views([NOW]), _KEPT, _SHORT)
    expiries = {item["_type"]["S"]: item.get("ttl") for item in store.items()}

    assert expiries == {"kept": None, "short": {"N": str((NOW // 3600 + 1) * 3600 + 25 * 3600)}}


_NOT_WHOLE_MINUTES = [timedelta(0), timedelta(seconds=90), timedelta(minutes=-1), 60, None]
_NO_MOMENTS = [datetime(2026, 11, 20), "now", NOW]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("argument", "value"),
    [*(("last", value) for value in _NOT_WHOLE_MINUTES), *(("as_of", value) for value in _NO_MOMENTS)],
)
def test_a_length_of_no_whole_minutes_and_a_moment_without_a_time_zone_are_refused(
    store: Store, argument: str, value: Any
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        _window(store, _KEPT, **{"last": timedelta(hours=1), argument: value})

    assert refused.value.argument == argument
