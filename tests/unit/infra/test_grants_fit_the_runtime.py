"""Each grant allows exactly what the runtime calls: no call is denied and no action is unused."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import aws_iam as iam
from botocore.exceptions import ClientError
from constructs import Construct

from cdk_dynamodb_counters import DedupCounterTable
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._control.registry import read_registry
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Count, Counter, Event, Packed, Quota, Sum, Window
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._table import Table
from simulation.engines import Engine
from simulation.engines.tables import create_table
from tests.unit.fold.streams import image, record
from tests.unit.infra.support import actions, statements, synthesized

VIEW = Event("view", pk="URL#{url}", sk="T#{time}")
HIT = Event("hit", pk="HIT#{url}", sk="T#{time}", packed=Packed("time"))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count(), "bytes": Sum("bytes")})
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time")
STOCK = Counter("stock", by="sku")
TIME = "2026-01-01T00:00:00Z"
VALUES = {"url": "/", "time": TIME, "bytes": 1}


class Calls:
    """The IAM actions that a client's calls need."""

    def __init__(self, client: Any) -> None:
        self.actions: set[str] = set()
        client.meta.events.register("before-parameter-build.dynamodb", self._note)

    def _note(self, params: dict[str, Any], model: Any, **_: object) -> None:
        if model.name == "TransactWriteItems":
            self.actions |= {f"{kind}Item" for write in params["TransactItems"] for kind in write}
        elif model.name == "BatchExecuteStatement":
            [kind] = {statement["Statement"].partition(" ")[0].title() for statement in params["Statements"]}
            self.actions.add(f"PartiQL{kind}")
        else:
            self.actions.add(model.name)


@pytest.fixture
def client(moto_engine: Engine) -> Any:
    create_table(moto_engine.client, "counters", streams=False)
    moto_engine.client.meta.events.register_last("before-parameter-build.dynamodb.BatchExecuteStatement", _parse)
    return moto_engine.client


def _parse(**_: object) -> None:
    """Refuse what moto cannot parse."""
    raise ClientError({"Error": {"Code": "ValidationException"}}, "BatchExecuteStatement")


def batch(first: int, *sizes: int | str, shard: str = "shardId-1") -> dict[str, Any]:
    images = [image("view", pk="URL#/", sk=f"T#{TIME}", url="/", time=TIME, bytes=size) for size in sizes]
    records = [record(10**21 + number, new, created=time.time()) for number, new in enumerate(images, start=first)]
    return {"Records": records, "shardId": shard, "state": {}}


def _aggregate(client: Any, *batches: dict[str, Any]) -> None:
    table = Table("counters", client)
    aggregator = Aggregator(table, (VIEWS, ROLLING, STOCK), quarantine_retention_seconds=86_400.0, single_shard=False)
    for each in batches:
        aggregator.handle(each)


def _aggregate_some(client: Any) -> None:
    # One is counted, one quarantined; the second batch's sum has more digits than an item can hold.
    _aggregate(client, batch(1, 1, "x"), batch(3, 10**38 - 1, 10**38 - 1))


def _accept(counters: Counters) -> None:
    counters.accept(VIEW, VALUES)
    counters.accept_many(VIEW, [VALUES])


def _accept_packed(counters: Counters) -> None:
    assert [outcome.status for outcome in counters.accept_many(HIT, [VALUES, VALUES])] == ["accepted", "duplicate"]
    # Another process, which reads what this one has written.
    again = Counters("counters", client=counters._table.client)
    assert again.accept(HIT, VALUES).status == "duplicate"
    assert again.retract(HIT, VALUES)


def _redrive(counters: Counters) -> None:
    [record, *_] = counters.quarantined()
    assert counters.redrive(record)


def _erase(counters: Counters) -> None:
    table = counters._table
    counters.accept(VIEW, VALUES)
    counters.accept_many(HIT, [VALUES])
    assert read_registry(table).declarations, "where `counters erase` finds the event"
    for event in (VIEW, HIT):
        found = Eraser(table, event, {"time": TIME}).erase("keep")
        assert (found.events + found.packed, bool(found.quarantined)) == (1, event == VIEW)


def _read(counters: Counters) -> None:
    counters.get(VIEWS, {"url": "/"})
    counters.get_many([(VIEWS, {"url": url}) for url in "ab"])
    counters.window(ROLLING, url="/").last(timedelta(hours=24))
    assert [*counters.events(VIEW, {"url": "/"}), *counters.events(HIT)] == []
    assert counters.explain(VIEWS, {"url": "/"}).difference


def _lease(counters: Counters) -> None:
    with counters.leases(Quota("calls", limit=10, per="day", by=("customer",)), {"customer": "c1"}) as leases:
        assert [leases.take(), leases.take(2)] == [True, True]


JOBS: dict[str, Callable[..., object]] = {
    "grant_accept": _accept,
    "grant_record_once": lambda counters: counters.record_once(VIEW, VALUES, [VIEWS, ROLLING]),
    "grant_increment": lambda counters: counters.increment(STOCK, sku="a"),
    "grant_erase": _erase,
    "grant_leases": _lease,
    "grant_retract": lambda counters: counters.retract(VIEW, VALUES),
    "grant_reset": lambda counters: [counters.increment(STOCK, sku="a"), counters.reset(STOCK, sku="a")],
    "grant_redrive": _redrive,
    "grant_read": _read,
}


def dynamodb_actions(scope: Construct) -> set[str]:
    granted = {action for statement in statements(synthesized(scope)) for action in actions(statement)}
    return {action.removeprefix("dynamodb:") for action in granted if action.startswith("dynamodb:")}


@pytest.mark.parametrize("grant", sorted(JOBS))
def test_writer_and_reader_may_do_their_job_and_no_more(
    grant: str, client: Any, counters: DedupCounterTable, role: iam.Role
) -> None:
    _aggregate_some(client)
    if grant == "grant_erase":  # Nothing is erased while a copy waits.
        assert all(map(Counters("counters", client=client).redrive, Counters("counters", client=client).quarantined()))
    seen = Calls(client)
    JOBS[grant](Counters("counters", client=client))
    getattr(counters, grant)(role, *([VIEW] if grant == "grant_accept" else []))
    assert seen.actions == dynamodb_actions(role)
    assert all(one["Resource"] == role.stack.resolve(counters.table_arn) for one in statements(synthesized(role)))


def test_a_grant_to_accept_a_packed_event_fits_it(client: Any, counters: DedupCounterTable, role: iam.Role) -> None:
    seen = Calls(client)
    _accept_packed(Counters("counters", client=client))
    counters.grant_accept(role, HIT)
    assert seen.actions == dynamodb_actions(role)


def test_who_may_take_calls_from_quotas_reaches_no_count(counters: DedupCounterTable, role: iam.Role) -> None:
    counters.grant_leases(role)
    [statement] = statements(synthesized(role))
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["LEASES#*"]}}


def test_every_grant_has_a_job() -> None:
    assert set(JOBS) == {name for name in dir(DedupCounterTable) if name.startswith("grant_")}
