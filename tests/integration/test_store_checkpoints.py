"""Checkpoints make a redelivery cheap and let watermarks go; the switch to them from a version without is safe."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._assumptions import GUARANTEE, SETTLED_AFTER
from dynamodb_counters._stream.batch import Report
from dynamodb_counters._stream.checkpoint_items import checkpoint_key
from dynamodb_counters._stream.pruning import PRUNED_AT
from dynamodb_counters._stream.upgrade import STILL_RUNNING
from dynamodb_counters._stream.watermarks import Watermark, shard_digest
from dynamodb_counters.errors import CheckpointError
from tests.integration.stores import SHARD, Store
from tests.unit.fold.streams import NOW, Record, image, record
from tests.unit.writes.clients import no_fault

_URL = "x" * 800  # With the watermarks of some shards nearly a write unit.
_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_DAY = 86_400.0


def _view(sequence: int, url: str = _URL, created: float = NOW) -> Record:
    return record(sequence, image("view", url=url, id=str(sequence)), created=created)


def _shard(number: int) -> str:
    return f"shardId-{number:020}-aaaaaaaa"


def _count(store: Store, url: str = _URL) -> Any:
    return store.counters.get(_VIEWS, {"url": url}, consistent=True).measures["n"]


def _watermarks(store: Store) -> list[str]:
    return [name for name in store.item(f"URL#{_URL}", "STATISTICS") if name.startswith("_w")]


def _end_window(store: Store, shard: str, applied_through: int) -> None:
    """The empty last invocation of a window, in a process of its own."""
    state = {"applied_through": f"{applied_through:040}"}
    store.aggregator(_VIEWS).handle({"shardId": shard, "isFinalInvokeForWindow": True, "state": state, "Records": []})


def _calls(store: Store) -> list[str]:
    """The operations called from now on."""
    names: list[str] = []
    store.client.before = lambda name, _: names.append(name)
    return names


@pytest.mark.parametrize("warm", [True, False])
def test_a_committed_batch_of_100_items_again_costs_one_read_at_most_and_no_write(store: Store, warm: bool) -> None:
    batch = [_view(n, f"u{n}") for n in range(1, 101)]
    aggregator = store.aggregator(_VIEWS)
    event = {"shardId": SHARD, "Records": batch}
    assert aggregator.handle(event).updated == 100
    calls = _calls(store)

    report = (aggregator if warm else store.aggregator(_VIEWS)).handle(event)

    assert calls == ([] if warm else ["get_item"])
    assert report == Report(records=100, redelivered=100)
    assert _count(store, "u7") == 1


def test_a_smaller_batch_again_costs_a_write_unit_per_item_until_its_window_ends(store: Store) -> None:
    batch = [_view(1, "a"), _view(2, "b")]
    store.deliver(batch, _VIEWS)
    again = store.deliver(batch, _VIEWS)
    assert (again.skipped, again.write_units, again.redelivered) == (2, 2.0, 0)

    _end_window(store, SHARD, 2)

    assert store.deliver([*batch, _view(3, "a")], _VIEWS).redelivered == 2
    assert (_count(store, "a"), _count(store, "b")) == (2, 1)


def _feed(store: Store, shards: range) -> None:
    for number in shards:
        store.deliver([_view(number)], _VIEWS, shard=_shard(number))
        _end_window(store, _shard(number), number)


def test_watermarks_go_once_the_checkpoints_of_their_shards_have_settled(store: Store) -> None:
    _feed(store, range(1, 12))
    store.deliver([_view(50)], _VIEWS, shard=_shard(50))
    assert len(_watermarks(store)) == 12

    store.clock.now += SETTLED_AFTER + 16 * 60
    store.deliver([_view(60)], _VIEWS, shard=_shard(60))

    # Shard 50 has no checkpoint: its window has not ended.
    kept = {"_w" + shard_digest(_shard(number)) for number in (50, 60)}
    assert set(_watermarks(store)) == kept
    for number in (3, 50, 60):
        store.deliver([_view(number)], _VIEWS, shard=_shard(number))
    assert _count(store) == 13


def test_no_watermark_goes_before_its_checkpoint_has_settled(store: Store) -> None:
    _feed(store, range(1, 12))
    store.clock.now += SETTLED_AFTER + 14 * 60  # The writers' deadline was 15 minutes ahead.
    store.deliver([_view(60)], _VIEWS, shard=_shard(60))

    assert len(_watermarks(store)) == 12


def test_a_few_watermarks_and_a_small_item_are_not_worth_a_write(store: Store) -> None:
    for number in range(1, 12):
        store.deliver([_view(number, "small")], _VIEWS, shard=_shard(number))
        _end_window(store, _shard(number), number)
    _feed(store, range(21, 21 + PRUNED_AT - 1))
    store.clock.now += _DAY
    calls = _calls(store)

    store.deliver([_view(60), _view(61, "small")], _VIEWS, shard=_shard(60))

    assert "batch_get_item" not in calls


def test_a_watermark_that_moved_meanwhile_is_not_removed(store: Store) -> None:
    _feed(store, range(1, 12))
    store.clock.now += _DAY
    late = [_view(1), _view(2)]

    def race(name: str, arguments: Mapping[str, Any]) -> None:
        if name == "update_item" and arguments["UpdateExpression"].startswith("REMOVE"):
            store.client.before = no_fault
            store.deliver(late, _VIEWS, shard=_shard(1))

    store.client.before = race
    store.deliver([_view(60)], _VIEWS, shard=_shard(60))

    assert store.client.before is no_fault
    assert store.deliver(late, _VIEWS, shard=_shard(1)).updated == 0
    assert _count(store) == 13


def test_a_busy_shard_settles_although_its_checkpoint_never_stands_still(store: Store) -> None:
    aggregator = store.aggregator(_VIEWS)
    for minute in range(0, 120, 5):
        store.clock.now = NOW + minute * 60
        batch = [_view(1000 * (minute + 1) + n, f"u{n}", store.clock.now) for n in range(40)]
        aggregator.handle({"shardId": SHARD, "Records": batch})

    item = store.item(*(value["S"] for value in checkpoint_key(shard_digest(SHARD)).values()))
    assert item["settled"]["S"] >= f"{1000:040}"
    assert item["applied_through"]["S"] > item["mark"]["S"] > item["settled"]["S"]


def test_a_lost_checkpoint_is_noticed_and_what_may_have_been_counted_waits_in_quarantine(store: Store) -> None:
    _feed(store, range(1, 12))
    store.clock.now += _DAY
    store.deliver([_view(60, created=store.clock.now)], _VIEWS, shard=_shard(60))
    assert len(_watermarks(store)) == 1
    key = checkpoint_key(shard_digest(_shard(1)))
    store.client.delete_item(TableName=store.name, Key=key)

    again = [_view(1), _view(70, created=store.clock.now)]
    reports = [store.deliver(again, _VIEWS, shard=_shard(1)) for _ in range(2)]

    assert [report.checkpoint_lost for report in reports] == [True, False]
    assert [report.quarantined for report in reports] == [1, 0]
    assert _count(store) == 13
    [entry] = store.counters.quarantined()
    assert "may have been counted" in entry.reason


def test_a_record_older_than_the_guarantee_is_not_counted_but_listed(store: Store) -> None:
    store.clock.now += GUARANTEE + 1
    fresh = store.clock.now
    records = [_view(1), record(2, image("other")), _view(3, created=fresh)]

    assert store.deliver(records, _VIEWS).quarantined == 1
    assert _count(store) == 1
    [entry] = store.counters.quarantined()
    assert entry.sequence == f"{1:040}"


def test_a_shard_silent_for_long_says_that_it_lives_before_it_commits(store: Store) -> None:
    _feed(store, range(1, 12))
    store.deliver([_view(50)], _VIEWS, shard=_shard(50))  # Never ends its window.
    store.clock.now += 8 * _DAY
    store.deliver([_view(51, "other", store.clock.now)], _VIEWS, shard=_shard(50))

    store.deliver([_view(60, created=store.clock.now)], _VIEWS, shard=_shard(60))

    assert set(_watermarks(store)) == {"_w" + shard_digest(_shard(number)) for number in (50, 60)}


def test_two_shards_of_one_digest_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("checkpoints", "checkpoint_items"):
        monkeypatch.setattr(f"dynamodb_counters._stream.{module}.shard_digest", lambda _: "same")
    store.deliver([_view(1)], _VIEWS)

    with pytest.raises(CheckpointError, match="have the same digest"):
        store.deliver([_view(2)], _VIEWS, shard=_shard(1))


def _serve_without_checkpoints(store: Store, shard: str) -> None:
    """What a version without checkpoints leaves: its token, and the watermark in the item it wrote."""
    store.meet_old_version(shard)
    watermark = Watermark(shard, old_format=True, now=store.clock())
    item = {"pk": {"S": f"URL#{_URL}"}, "sk": {"S": "STATISTICS"}, "_type": {"S": "views"}, "n": {"N": "2"}}
    store.client.put_item(TableName=store.name, Item={**item, watermark.name: watermark.value(f"{2:040}")})


def test_what_a_version_without_checkpoints_counted_is_not_counted_again(store: Store) -> None:
    _serve_without_checkpoints(store, SHARD)

    store.deliver([_view(1), _view(2), _view(3)], _VIEWS)

    assert _count(store) == 3
    assert _watermarks(store) == [Watermark(SHARD, old_format=True, now=0).name]


def test_a_shard_that_comes_up_while_such_a_version_may_run_keeps_its_format(store: Store) -> None:
    _serve_without_checkpoints(store, SHARD)
    store.deliver([_view(3)], _VIEWS)
    store.deliver([_view(4)], _VIEWS, shard=_shard(4))
    store.clock.now += STILL_RUNNING
    store.deliver([_view(5)], _VIEWS, shard=_shard(5))

    old = {Watermark(shard, old_format=True, now=0).name for shard in (SHARD, _shard(4))}
    assert set(_watermarks(store)) == {*old, "_w" + shard_digest(_shard(5))}


def test_watermarks_in_the_old_format_go_when_their_records_are_too_old_to_be_counted(store: Store) -> None:
    _serve_without_checkpoints(store, SHARD)
    for number in range(1, 12):
        store.meet_old_version(_shard(number))
        store.deliver([_view(number)], _VIEWS, shard=_shard(number))
    store.clock.now += 71 * 3600
    store.deliver([_view(61, created=store.clock.now)], _VIEWS, shard=_shard(61))
    assert len(_watermarks(store)) == 13

    store.clock.now += 2 * 3600
    store.deliver([_view(62, created=store.clock.now)], _VIEWS, shard=_shard(62))

    assert set(_watermarks(store)) == {"_w" + shard_digest(_shard(number)) for number in (61, 62)}


def test_a_mapping_that_starts_over_reads_once_per_shard_and_counts_nothing_twice(store: Store) -> None:
    batches = {_shard(number): [_view(100 * number + n, f"u{n}") for n in range(100)] for number in range(1, 4)}
    for shard, batch in batches.items():
        store.deliver(batch, _VIEWS, shard=shard)
    calls, again = _calls(store), store.aggregator(_VIEWS)

    for shard, batch in batches.items():
        for start in range(0, 100, 10):
            again.handle({"shardId": shard, "Records": batch[start : start + 10]})

    assert calls == ["get_item"] * 3
    assert _count(store, "u5") == 3


def test_what_an_older_version_left_to_quarantine_is_counted_by_no_declaration_until_it_is_redriven(
    store: Store,
) -> None:
    names = Aggregate("names", _VIEW, pk="NAME#{name}", sk="STATISTICS", measures={"n": Count()})
    _serve_without_checkpoints(store, SHARD)
    bad = _view(3)  # Has no name, but a url.
    key = {"pk": {"S": f"QUARANTINE#{zlib.crc32(SHARD.encode()) % 8}"}, "sk": {"S": f"{SHARD}#{3:040}#NewImage"}}
    entry = {"_type": {"S": "quarantine"}, "state": {"S": "waiting"}, "reason": {"S": "?"}, "ttl": {"N": str(10**10)}}
    content = {"record": {"S": json.dumps(bad)}}
    store.client.put_item(TableName=store.name, Item={**key, **entry, **content})

    reports = [store.deliver([_view(2), bad, _view(4)], _VIEWS, names) for _ in range(2)]

    assert [report.quarantined for report in reports] == [2, 0]  # Records 2 and 4, for names alone.
    assert _count(store) == 3
    [older] = [entry for entry in store.counters.quarantined() if not entry.names]
    assert store.counters.redrive(older)
    item = store.item(*older.key)
    change = record(9, item, {**item, "state": {"S": "waiting"}})
    for _ in range(2):
        store.deliver([change], _VIEWS, names, shard=_shard(9))
    assert _count(store) == 4


def test_an_older_version_cannot_quarantine_any_more(store: Store) -> None:
    _serve_without_checkpoints(store, SHARD)
    key = {"pk": {"S": f"QUARANTINE#{zlib.crc32(SHARD.encode()) % 8}"}, "sk": {"S": f"FENCE#{SHARD}"}}
    before = store.item(key["pk"]["S"], key["sk"]["S"])["deployment"]

    store.deliver([_view(3)], _VIEWS)

    after = store.item(key["pk"]["S"], key["sk"]["S"])["deployment"]
    assert before != after == {"S": "superseded"}
