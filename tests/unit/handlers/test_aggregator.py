"""The Lambda handler: it demands to know the shard, gives the window's state back, and reports what it did."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from aws_lambda_powertools import Logger

from dynamodb_counters import Aggregate, Count, Counters, Event, Threshold, Window
from dynamodb_counters._declarations import flatten
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._quarantine import Waiting
from dynamodb_counters._registry import read_registry
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CheckpointError
from simulation.engines import Engine
from simulation.engines.tables import create_table
from simulation.handler_process import LAMBDA_CONTEXT
from simulation.world import World
from tests.unit.failure_bucket import Bucket
from tests.unit.fold.streams import image, record
from tests.unit.handlers.conftest import Load, Metered

_VIEW = Event("view", pk="URL#{url}", sk="ID#{id}")
_VIEWS = Aggregate("views", _VIEW, pk="URL#{url}", sk="STATISTICS", measures={"n": Count()})
_TABLE = "handled"


@pytest.fixture
def module(load: Load, moto_engine: Engine) -> Iterator[ModuleType]:
    create_table(moto_engine.client, _TABLE)
    # moto does not parse PartiQL.
    variables = {"QUARANTINE_RETENTION_DAYS": "30", "ON_FAILURE_BUCKET": "bucket", "SINGLE_SHARD": "true"}
    loaded = load("aggregator", TABLE_NAME=_TABLE, DECLARATIONS=encode((_VIEWS,)), **variables)
    loaded.aggregator.cache_clear()
    yield loaded
    loaded.aggregator.cache_clear()


def _record(sequence: int, name: str, **values: Any) -> dict[str, Any]:
    # The handler's clock is the machine's: records of long ago are quarantined.
    return record(sequence, image(name, **values), created=time.time())


def _event(*records: Any, **envelope: Any) -> dict[str, Any]:
    return {"Records": list(records), "shardId": "shardId-00000000001", "isFinalInvokeForWindow": False, **envelope}


Read = Callable[[str], Any]


@pytest.fixture
def views(moto_engine: Engine) -> Read:
    counters = Counters(_TABLE, client=moto_engine.client)
    return lambda url: counters.get(_VIEWS, {"url": url}, consistent=True).measures["n"]


def test_a_batch_is_counted_once_however_often_it_comes(module: ModuleType, views: Read) -> None:
    event = _event(_record(1, "view", url="/"), _record(2, "view", url="/"), state={"kept": 1})

    for _ in range(2):
        state = module.handler(event, LAMBDA_CONTEXT)["state"]
        assert (state["kept"], state["applied_through"]) == (1, f"{2:040}")

    assert views("/") == 2


def test_the_end_of_a_window_moves_the_checkpoint_so_that_a_redelivery_writes_nothing(
    module: ModuleType, views: Read, metered: Metered
) -> None:
    event = _event(_record(1, "view", url="/"), _record(2, "view", url="/"))
    state = module.handler(event, LAMBDA_CONTEXT)["state"]
    module.handler(_event(isFinalInvokeForWindow=True, state=state), LAMBDA_CONTEXT)
    metered()

    module.handler(event, LAMBDA_CONTEXT)

    assert metered() == {"Redelivered": 2}
    assert views("/") == 2


def test_an_event_without_shard_is_refused_unless_there_is_one(
    module: ModuleType, views: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = {"Records": [_record(1, "view", url="/")]}
    monkeypatch.delenv("SINGLE_SHARD")
    with pytest.raises(CheckpointError, match="tumbling window"):
        module.handler(event, LAMBDA_CONTEXT)
    assert views("/") == 0

    monkeypatch.setenv("SINGLE_SHARD", "true")
    module.aggregator.cache_clear()
    for _ in range(2):
        assert module.handler(event, LAMBDA_CONTEXT)["state"]["applied_through"] == f"{1:040}"
    assert views("/") == 1


_STRANGE = [{"applied_through": value} for value in (None, 7, "x", "9" * 41, ["1"])]


@pytest.mark.parametrize("state", [{}, {"a": {"b": 1}}, *_STRANGE])
def test_the_empty_last_invocation_of_a_window_gives_the_state_back_and_reports_nothing(
    module: ModuleType, state: dict[str, Any], metered: Metered
) -> None:
    event = _event(isFinalInvokeForWindow=True, state=state)

    with warnings.catch_warnings(record=True) as warned:
        assert module.handler(event, LAMBDA_CONTEXT) == {"state": state}
    assert metered() == {}
    assert warned == []


def test_metrics_say_what_was_not_counted_and_at_debug_what_was(
    module: ModuleType, metered: Metered, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CloudWatch bills a metric for each hour in which it has a value, zero included."""
    event = _event(_record(1, "view", url="/a"), _record(2, "view", url="/b"), _record(3, "view"))
    module.handler(event, LAMBDA_CONTEXT)
    first = metered()
    assert caplog.messages[-1] == "records quarantined: 1; `counters quarantine list` shows why"
    caplog.clear()
    module.handler(event, LAMBDA_CONTEXT)
    again = metered()
    assert caplog.messages == []
    assert (first, again) == ({"Quarantined": 1, "Uncounted": 1}, {"AlreadyCounted": 2})

    module.handler(_event(_record(4, "view", url="/a")), LAMBDA_CONTEXT)
    assert metered() == {}
    monkeypatch.setattr(Logger, "log_level", logging.DEBUG)
    module.handler(_event(_record(5, "view", url="/b")), LAMBDA_CONTEXT)
    assert {*metered()} == {"Records", "ItemsUpdated", "WriteUnits"}


def test_events_too_late_for_a_window_are_metered(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, metered: Metered
) -> None:
    pace = Window("pace", _VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))
    monkeypatch.setenv("DECLARATIONS", encode((pace,)))
    late = datetime.now(UTC) - timedelta(hours=26)
    module.handler(_event(_record(1, "view", url="/", time=late.isoformat())), LAMBDA_CONTEXT)
    assert metered()["LateEvents"] == 1


def test_a_group_that_other_code_has_spoiled_is_metered_and_its_thresholds_are_named(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, metered: Metered, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DECLARATIONS", encode(flatten([_VIEWS, Threshold("many", _VIEWS, at=[1])])))
    images: list[dict[str, Any]] = [{"n": "x"}, {"n": 0}, {"n": 1}, {}]
    for number, values in enumerate(images):
        event = _event(_record(number + 1, "views", pk="URL#/", sk="STATISTICS", **values))
        module.handler(event, LAMBDA_CONTEXT)
        assert metered() == ({"CrossingsSkipped": 1} if number == 0 else {})
    [entry] = [entry for entry in caplog.records if "spoiled" in entry.message]
    assert entry.thresholds == {"many": 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_alone", [True, False])
def test_the_emulator_alone_has_it_read_the_registry_before_each_batch(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, *, is_alone: bool
) -> None:
    if is_alone:
        monkeypatch.setenv("COUNTERS_DEV", "alone")
    module.handler(_event(_record(1, "view", url="/")), LAMBDA_CONTEXT)
    read = Mock(wraps=read_registry)
    monkeypatch.setattr("counters_lambda.counting.counted_names.read_registry", read)
    module.handler(_event(_record(2, "view", url="/")), LAMBDA_CONTEXT)
    assert read.call_count == is_alone


_SCHEDULED = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


@pytest.mark.parametrize(("hours_old", "reported"), [([], {}), ([2.0, 1.0], {"Uncounted": 2})])
def test_the_schedule_reports_what_waits_and_registers_nothing(
    module: ModuleType,
    moto_engine: Engine,
    metered: Metered,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    hours_old: list[float],
    reported: dict[str, float],
) -> None:
    bucket = Bucket(time.time(), {f"aws/lambda/{number}": hours for number, hours in enumerate(hours_old)})
    monkeypatch.setattr(module, "_table", SimpleNamespace(make_service_client={"s3": bucket}.__getitem__))
    assert module.handler(_SCHEDULED, LAMBDA_CONTEXT) == {}
    assert metered() == reported
    assert caplog.messages == ["records wait for repair: in the on-failure bucket"][: len(hours_old)]
    assert not read_registry(Table(_TABLE, moto_engine.client)).is_founded


def test_each_run_of_the_schedule_is_a_record_that_counts_nothing_and_leads_to_no_other(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one, a quiet stream looks like one that nothing polls."""
    world = World(_VIEWS)
    world.counters.accept(_VIEW, {"url": "/", "id": 1})
    world.settle()
    monkeypatch.setattr(module, "Table", lambda _: world.store)
    monkeypatch.setattr(module, "_table", SimpleNamespace(make_service_client={"s3": Bucket(0)}.__getitem__))
    for _ in range(2):
        world.clock.advance(900)
        before = len(world.records())
        module.handler(_SCHEDULED, LAMBDA_CONTEXT)
        # There would be none of an item that stays the same.
        [record] = world.records()[before:]
        assert record["dynamodb"]["Keys"]["sk"] == {"S": "PULSE"}
        report = world.deliver([record])
        assert (report.touched, report.moved, +report.skipped_types) == (0, {}, {})
        assert world.records()[-1] == record


@pytest.mark.parametrize("broken", ["waiting_in_quarantine", "waiting_in_bucket"])
def test_records_that_cannot_be_counted_hide_nothing_else_and_fail(
    module: ModuleType, metered: Metered, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """The error has an alarm."""

    def fail(*_: object) -> None:
        raise TimeoutError("by the test")

    clients = {"s3": Bucket(time.time())}
    monkeypatch.setattr(module, "_table", SimpleNamespace(make_service_client=clients.__getitem__))
    monkeypatch.setattr(module, "waiting_in_quarantine", lambda *_: Waiting(3))
    monkeypatch.setattr(module, broken, fail)
    with pytest.raises(TimeoutError):
        module.handler(_SCHEDULED, LAMBDA_CONTEXT)
    assert metered() == {"Uncounted": 2 if broken == "waiting_in_quarantine" else 3}


def test_the_event_of_a_complete_deployment_registers_its_names(
    module: ModuleType,
    moto_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    metered: Metered,
    caplog: pytest.LogCaptureFixture,
) -> None:
    event = {"source": "aws.cloudformation", "detail": {"status-details": {"status": "UPDATE_COMPLETE"}}}

    assert module.handler(event, LAMBDA_CONTEXT) == {"state": {}}

    assert read_registry(Table(_TABLE, moto_engine.client)).entries["views"].is_complete
    assert metered() == {}

    later = (replace(_VIEWS, on_expiry="subtract"), replace(_VIEWS, name="other"))
    monkeypatch.setenv("DECLARATIONS", encode(later))
    module.aggregator.cache_clear()
    module.handler(event, LAMBDA_CONTEXT)
    assert metered() == {"DefinitionChanged": 2}
    names = [record.names for record in caplog.records if hasattr(record, "names")]
    assert names == [["views"], ["other"]]

    monkeypatch.setenv("DECLARATIONS", encode((replace(_VIEWS, name="more", sk="MORE"),)))
    module.aggregator.cache_clear()
    module.handler(event, LAMBDA_CONTEXT)
    assert metered() == {"Undeclared": 1}
