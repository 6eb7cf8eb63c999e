"""The history of deployments: what it holds, who may append to it, and what happens when it is spoiled."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Sum
from dynamodb_counters._assumptions import FRESH, GUARANTEE, LONGEST_INVOCATION, SKEW
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.control import (
    UNKNOWN,
    Control,
    Era,
    History,
    changes_between,
    deployment_id,
    deployment_item,
    deployment_key,
    history_key,
    read_control,
    read_counted,
    read_declarations,
    read_deployment,
    read_history,
    write_control,
)
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import HOUR
from dynamodb_counters.errors import CheckpointError
from simulation.aws.strong_consistency import StronglyConsistent
from simulation.workbench import QUARANTINE_SECONDS, Workbench

_SALE = Event("sale", pk="SALE#{id}", sk="SALE", retention=timedelta(days=30))
_SALES = Aggregate("sales", _SALE, pk="SALES", sk="ALL", measures={"n": Count()})
_SUMS = Aggregate("sums", _SALE, pk="SUMS", sk="ALL", measures={"amount": Sum("amount")})
_A, _B = "a" * 16, "b" * 16
_MARGIN = LONGEST_INVOCATION + FRESH + SKEW


def _history(bench: Workbench) -> History:
    history = read_history(bench.table.get_item(TableName="counters", Key=history_key())["Item"])
    assert history is not None
    return history


def _spoil(bench: Workbench, **attributes: Any) -> None:
    item = bench.table.get_item(TableName="counters", Key=history_key())["Item"]
    bench.table.put_item(TableName="counters", Item={**item, **attributes})


def _aggregator(bench: Workbench, *declarations: Aggregate, skew: float = 0.0) -> Aggregator:
    client: Any = bench.table
    table = Table("counters", client, clock=lambda: bench.clock() + skew, sleep=bench.clock.advance)
    return Aggregator(table, declarations, quarantine_retention_seconds=QUARANTINE_SECONDS)


def _sell(bench: Workbench, number: int) -> None:
    bench.counters.accept(_SALE, {"id": number, "amount": 1})


def test_a_record_belongs_to_the_last_era_that_had_begun() -> None:
    history = History((Era(0, _A), Era(100, _B), Era(100, _A), Era(200, _B)))

    assert [history.at(created) for created in (50, 99.9, 100, 199, 200)] == [history.eras[i] for i in (0, 0, 2, 2, 3)]
    assert history.since(150).eras == history.eras[2:]
    assert read_history({"history": {"S": history.text()}}) == history


@pytest.mark.parametrize("spoiled", [{"S": ""}, {"S": "0:x"}, {"S": f"0:{_A} "}, {"N": "0"}])
def test_a_spoiled_history_is_none(spoiled: dict[str, str]) -> None:
    assert read_history({"history": spoiled}) is None
    assert read_history({}) is None


def test_a_deployment_is_what_it_counts_in_whatever_order() -> None:
    assert deployment_id((_SALES, _SUMS)) == deployment_id((_SUMS, _SALES))
    assert deployment_id((_SALES,)) != deployment_id((replace(_SALES, name="other"),))
    assert read_deployment(deployment_item((_SUMS, _SALES))) == (_SALES, _SUMS)


@pytest.mark.parametrize(
    "spoiled", [{"version": {"N": "0"}}, {"declarations": {"S": "?"}}, {"declarations": {"N": "1"}}]
)
def test_declarations_that_cannot_be_read_are_none(spoiled: dict[str, Any]) -> None:
    assert read_deployment({**deployment_item((_SALES,)), **spoiled}) is None
    assert read_deployment({}) is None


def test_a_deployment_says_what_it_changes() -> None:
    changed = replace(_SALES, measures={"n": Count(), "amount": Sum("amount")})

    assert changes_between((_SALES,), (changed, _SUMS)) == "adds sums, changes sales"
    assert changes_between((_SALES, _SUMS), (_SUMS,)) == "removes sales"
    assert changes_between((), ()) == "nothing else"


def test_a_takeover_holds_for_records_that_no_process_can_be_folding_otherwise() -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    first = _history(bench).last
    before = bench.clock.now
    bench.deploy([_SALES, _SUMS])

    second = _history(bench).last
    assert (first.valid_from, second.deployment) == (0, deployment_id((_SALES, _SUMS)))
    assert before + _MARGIN <= second.valid_from <= before + _MARGIN + 1
    # Back again, by a clock that is behind: the era in between has no length.
    bench.clock.advance(-_MARGIN - 60)
    bench.deploy([_SALES])
    assert _history(bench).eras == (first, Era(second.valid_from, first.deployment))


def test_an_era_more_than_an_hour_ahead_is_refused_by_whoever_takes_over_next() -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    right = _history(bench)
    _aggregator(bench, _SALES, _SUMS, skew=2 * HOUR).handle({})
    wrong = _history(bench)
    begins, now = (datetime.fromtimestamp(at, UTC).isoformat() for at in (wrong.last.valid_from, int(bench.clock())))
    expected = f"begins at {begins}, but it is {now} here: one of two machines has a wrong clock; set this one's, or "

    with pytest.raises(CheckpointError, match=re.escape(expected)):
        _aggregator(bench, _SUMS).handle({})
    assert _history(bench) == wrong
    # By a clock that agrees, and by one that is mended.
    _aggregator(bench, _SUMS, skew=2 * HOUR).handle({})
    _spoil(bench, history={"S": right.text()})
    _aggregator(bench, _SUMS).handle({})
    assert _history(bench).last.valid_from < bench.clock() + HOUR


def test_eras_of_records_too_old_to_be_folded_are_forgotten() -> None:
    bench = Workbench([_SALES])
    for declarations in ([_SUMS], [_SALES], [_SUMS]):
        bench.deploy(declarations)
        bench.clock.advance(GUARANTEE + SKEW)

    # The deployment in force when the takeover looked back, and the takeover itself.
    assert [era.deployment for era in _history(bench).eras] == [deployment_id((one,)) for one in (_SALES, _SUMS)]


def test_a_table_of_multi_region_strong_consistency_is_refused_by_name() -> None:
    """Such a table refuses every transaction."""
    bench = Workbench([_SALES])
    with pytest.raises(CheckpointError, match="expected a table without multi-Region strong consistency"):
        bench.process(StronglyConsistent(bench.table)).handle({})
    assert bench.process(StronglyConsistent(bench.table, "EVENTUAL")).handle({}).takeover


def test_deployments_that_take_turns_do_not_fill_the_item() -> None:
    bench = Workbench([])
    for number in range(301):
        report = _aggregator(bench, (_SALES, _SUMS)[number % 2]).handle({})
        bench.clock.advance(FRESH)

    assert len(_history(bench).eras) == 100
    assert "take turns" in report.takeover


@pytest.mark.parametrize("how", ["deleted", "malformed"])
def test_a_lost_history_leaves_in_doubt_what_another_deployment_may_have_counted(how: str) -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    bench.deploy([_SALES, _SUMS])
    _sell(bench, 1)
    if how == "deleted":
        bench.table.delete_item(TableName="counters", Key=history_key())
    else:
        _spoil(bench, history={"S": "what?"})

    report = bench.process().handle({"shardId": bench.shards()[0], "Records": bench.records()})

    assert (report.checkpoint_lost, report.quarantined, report.updated) == (True, 1, 0)
    assert [era.deployment for era in _history(bench).eras] == [UNKNOWN, deployment_id((_SALES, _SUMS))]
    [entry] = bench.counters.quarantined()
    assert "may have been counted" in entry.reason
    bench.clock.advance(_MARGIN + 1)
    assert bench.counters.redrive(entry)
    bench.deliver_all()
    assert bench.counters.get(_SUMS, {}).measures == {"amount": 1}


def test_a_lost_history_of_a_single_deployment_is_known() -> None:
    bench = Workbench([_SALES])
    _sell(bench, 1)
    bench.deliver_all()
    bench.table.delete_item(TableName="counters", Key=history_key())
    _sell(bench, 2)

    report = bench.process().handle({"shardId": bench.shards()[0], "Records": bench.records()})

    assert (report.checkpoint_lost, report.updated) == (False, 1)
    assert bench.counters.get(_SALES, {}).measures == {"n": 2}


def test_declarations_of_a_format_that_is_not_known_any_more_leave_their_records_in_doubt() -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    key = deployment_key(deployment_id((_SALES,)))
    item = bench.table.get_item(TableName="counters", Key=key)["Item"]
    bench.table.put_item(TableName="counters", Item={**item, "version": {"N": "0"}})
    _sell(bench, 1)
    bench.deploy([_SALES, _SUMS])
    _sell(bench, 2)

    bench.deliver_all()

    assert bench.counters.get(_SUMS, {}).measures == {"amount": 1}
    [entry] = bench.counters.quarantined()
    assert "may have been counted" in entry.reason


def test_a_control_that_was_read_amid_a_takeover_is_not_written_on() -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    before = read_control(bench.store)
    bench.deploy([_SALES, _SUMS])
    now = read_control(bench.store)
    torn = Control(now.item, before.generations)

    assert now.history is not None
    assert write_control(bench.store, torn, now.history, statuses=torn.statuses) is None
    assert write_control(bench.store, torn, now.history, runs=()) is None
    assert read_control(bench.store) == now
    assert write_control(bench.store, now, now.history, statuses=now.statuses) == now


def test_names_that_another_takeover_has_counted_stay_known() -> None:
    bench = Workbench([_SALES])
    bench.aggregator.handle({})
    before = read_control(bench.store)
    bench.deploy([_SALES, _SUMS])
    bench.deploy([_SALES])
    now = read_control(bench.store)

    assert now.statuses == before.statuses
    assert now.history is not None
    assert write_control(bench.store, Control(now.item, before.generations), now.history, runs=()) is None
    assert read_counted(read_control(bench.store).generations) == {_SALES.name, _SUMS.name}


def test_attributes_that_change_alone_are_known_and_begin_no_era() -> None:
    sale = Event("sale", key="id", attributes={"id": str, "price": int})
    priced = Aggregate("priced", sale, by="id", price=Sum("price"))
    loose = replace(priced, source=replace(sale, attributes={"id": str, "price": object}))
    undeclared = replace(priced, source=replace(sale, attributes=None))
    bench = Workbench([priced])
    bench.aggregator.handle({})
    before = read_control(bench.store)
    assert read_declarations(bench.store, before.declared) == (priced,)

    assert before.history is not None
    assert before.history.eras == (Era(0, deployment_id((undeclared,))),)

    bench.declare([loose])
    after = read_control(bench.store)
    assert read_declarations(bench.store, after.declared) == (loose,)
    assert (after.history, after.statuses) == (before.history, before.statuses)
    assert bench.process().handle({}).takeover == ""


def test_an_old_definition_goes_on_over_an_attribute_that_is_declared_no_more() -> None:
    sale = Event("sale", key="id", attributes={"id": str, "price": int})
    before = Aggregate("money", sale, by="id", price=Sum("price"))
    after = Aggregate("money", replace(sale, attributes={"id": str, "paid": int}), by="id", price=Sum("paid"))
    bench = Workbench([before])
    bench.aggregator.handle({})

    bench.declare([after])

    seen = read_control(bench.store)
    assert seen.history is not None
    assert read_declarations(bench.store, seen.declared) == (after,)
    assert seen.history.last.deployment == deployment_id((replace(before, source=replace(sale, attributes=None)),))
