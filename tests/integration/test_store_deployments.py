"""A takeover changes what counts from its time on; records created before are folded as before, whoever has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._assumptions import FRESH, LONGEST_INVOCATION, SKEW
from dynamodb_counters._statuses import deployment_key
from dynamodb_counters._stream.deployment_items import deployment_id, read_deployment
from tests.integration.stores import OTHER_SHARD, SHARD, Store
from tests.unit.fold.streams import NOW, Record, image, record
from tests.unit.writes.clients import no_fault

_SALE = Event("sale", pk="SALE#{id}", sk="SALE")
_COUNT = Aggregate("sales", _SALE, pk="SALES", sk="ALL", measures={"n": Count()})
_SUM = Aggregate("sums", _SALE, pk="SUMS", sk="ALL", measures={"sum": Sum("amount")})
_MOST = Aggregate("large", _SALE, pk="LARGE", sk="ALL", measures={"n": Count()})


def _sale(sequence: int, created: float, **values: int) -> Record:
    return record(sequence, image("sale", id=str(sequence), amount=10**sequence, **values), created=created)


def _calls(store: Store) -> list[str]:
    return [name for name, _ in store.client.calls]


def _measures(store: Store, *aggregates: Aggregate) -> list[Mapping[str, Any]]:
    return [store.counters.get(aggregate, {}, consistent=True).measures for aggregate in aggregates]


def _deployed(store: Store) -> list[str]:
    return [era.deployment for era in store.history().eras]


def test_the_first_deployment_holds_for_every_record_and_the_next_process_of_it_writes_nothing(store: Store) -> None:
    assert store.aggregator(_COUNT, _SUM).handle({}).takeover
    assert store.history().text() == f"0:{deployment_id((_SUM, _COUNT))}"
    store.client.calls.clear()

    # The order of declarations makes no difference.
    assert store.aggregator(_SUM, _COUNT).handle({}).takeover == ""
    assert _calls(store) == ["get_item"]


def test_a_takeover_writes_history_and_declarations_in_one_transaction(store: Store) -> None:
    store.aggregator(_COUNT).handle({})
    store.client.calls.clear()

    report = store.aggregator(_SUM).handle({})

    assert [name for name in _calls(store) if name not in ("get_item", "query")] == ["transact_write_items"]
    first, second = store.history().eras
    assert second.valid_from == NOW + LONGEST_INVOCATION + FRESH + SKEW
    assert (first.deployment, second.deployment) == (deployment_id((_COUNT,)), deployment_id((_SUM,)))
    for era, declared in ((first, _COUNT), (second, _SUM)):
        keys = (key["S"] for key in deployment_key(era.deployment).values())
        assert read_deployment(store.item(*keys)) == (declared,)
    assert datetime.fromtimestamp(second.valid_from, UTC).isoformat() in report.takeover
    assert "adds sums; removes sales" in report.takeover


def test_a_record_is_folded_by_the_declarations_of_its_time_whoever_delivers_it(store: Store) -> None:
    store.deploy(_COUNT)
    store.deploy(_SUM)
    begins = store.clock.now
    batch = [_sale(1, NOW), _sale(2, begins - 1), _sale(3, begins), _sale(4, begins + 1)]
    stale = store.aggregator(_COUNT)

    for aggregator, records in ((stale, batch[:3]), (store.aggregator(_SUM), batch), (stale, batch[1:])):
        aggregator.handle({"Records": records, "shardId": SHARD})

    assert _measures(store, _COUNT, _SUM) == [{"n": 2}, {"sum": 10**3 + 10**4}]
    # Each of those processes had found that it is not the last; eras of no length are dropped.
    assert _deployed(store) == [deployment_id((each,)) for each in (_COUNT, _SUM, _SUM)]


def test_what_one_deployment_could_not_count_is_quarantined_once_by_all(store: Store) -> None:
    bad = record(1, image("sale", id="1"), created=NOW)
    store.deliver([bad, _sale(2, NOW)], _SUM)
    store.deploy(_COUNT)

    reports = [store.deliver([bad, _sale(2, NOW), _sale(3, NOW)], *declared) for declared in ((_COUNT,), (_SUM,))]

    assert [report.quarantined for report in reports] == [0, 0]
    assert [entry.names for entry in store.counters.quarantined()] == [("sums",)]
    assert _measures(store, _COUNT, _SUM) == [{"n": 0}, {"sum": 10**2 + 10**3}]


def _interrupted(store: Store, other: Aggregate, declared: Aggregate) -> None:
    """Take over, while another process does so between the read of the history and its write."""

    def race(name: str, _: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            store.client.before = no_fault
            store.aggregator(other).handle({})

    store.client.before = race
    store.aggregator(declared).handle({})
    assert store.client.before is no_fault


def test_of_two_takeovers_at_once_the_second_is_appended_to_the_first(store: Store) -> None:
    store.deploy(_COUNT)
    _interrupted(store, _SUM, _MOST)

    first, last = store.history().eras
    assert (first.deployment, last.deployment) == (deployment_id((_COUNT,)), deployment_id((_MOST,)))
    # It has read the other's entry, which began at the same time and so never holds.
    assert store.client.called("transact_write_items") == 4


def test_of_two_first_deployments_at_once_one_comes_second(store: Store) -> None:
    _interrupted(store, _SUM, _COUNT)

    assert _deployed(store) == [deployment_id((each,)) for each in (_SUM, _COUNT)]
    assert [era.valid_from for era in store.history().eras] == [0, NOW + LONGEST_INVOCATION + FRESH + SKEW]


def test_a_takeover_refused_because_another_process_did_the_same_is_done(store: Store) -> None:
    store.deploy(_COUNT)
    _interrupted(store, _SUM, _SUM)

    assert _deployed(store) == [deployment_id((each,)) for each in (_COUNT, _SUM)]


def test_a_process_learns_of_a_takeover_within_a_minute_and_before_it_holds(store: Store) -> None:
    before = store.aggregator(_COUNT)
    before.handle({"Records": [_sale(1, NOW)], "shardId": SHARD})
    store.aggregator(_SUM).handle({})
    store.clock.now += FRESH
    before.handle({"Records": [_sale(2, store.clock.now)], "shardId": SHARD})
    store.clock.now = store.history().last.valid_from
    before.handle({"Records": [_sale(3, store.clock.now)], "shardId": OTHER_SHARD})

    # It has taken over again, for a time a minute later.
    assert _deployed(store) == [deployment_id((each,)) for each in (_COUNT, _SUM, _COUNT)]
    assert _measures(store, _COUNT, _SUM) == [{"n": 3}, {"sum": 0}]
