"""A takeover changes what counts from its time on; records created before are folded as before, whoever has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._assumptions import FRESH, LONGEST_INVOCATION, SKEW
from dynamodb_counters._control.deployment_items import deployment_id, deployment_key, read_deployment
from tests.integration.stores import Store
from tests.unit.fold.streams import NOW
from tests.unit.writes.clients import no_fault

_SALE = Event("sale", pk="SALE#{id}", sk="SALE")
_COUNT = Aggregate("sales", _SALE, pk="SALES", sk="ALL", measures={"n": Count()})
_SUM = Aggregate("sums", _SALE, pk="SUMS", sk="ALL", measures={"sum": Sum("amount")})
_MOST = Aggregate("large", _SALE, pk="LARGE", sk="ALL", measures={"n": Count()})


def _calls(store: Store) -> list[str]:
    return [name for name, _ in store.client.calls]


def _deployed(store: Store) -> list[str]:
    return [era.deployment for era in store.history().eras]


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
    assert "new: sums; removed: sales" in report.takeover


def _interrupted(store: Store, other: Aggregate, declared: Aggregate) -> None:
    """Take over, while another process does so between the read of the history and its write."""

    def race(name: str, _: Mapping[str, Any]) -> None:
        if name == "transact_write_items":
            store.client.before = no_fault
            store.aggregator(other).handle({})

    store.client.before = race
    store.aggregator(declared).handle({})
    assert store.client.before is no_fault


def test_the_second_of_two_takeovers_at_once_is_appended_to_the_first(store: Store) -> None:
    store.deploy(_COUNT)
    _interrupted(store, _SUM, _MOST)

    first, last = store.history().eras
    assert (first.deployment, last.deployment) == (deployment_id((_COUNT,)), deployment_id((_MOST,)))
    # It has read the other's entry, which began at the same time and so never holds.
    assert store.client.called("transact_write_items") == 4


def test_a_takeover_refused_because_another_process_did_the_same_is_done(store: Store) -> None:
    store.deploy(_COUNT)
    _interrupted(store, _SUM, _SUM)

    assert _deployed(store) == [deployment_id((each,)) for each in (_COUNT, _SUM)]
