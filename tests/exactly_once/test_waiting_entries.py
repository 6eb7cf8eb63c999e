"""Groups for which entries of the quarantine wait: verified as such, never repaired, right once they are redriven."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamodb_counters import Aggregate, Count, Event, Packed, Sum, Window
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._control.registry import read_registry
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, mend, spoil, verify
from tests.exactly_once.test_run_commands import Counters, lines

VIEW = Event("view", pk="URL#{url}", sk="T#{at}#{id}", retention=timedelta(days=35))
PACKED = replace(VIEW, packed=Packed("at", timedelta(minutes=10), future_tolerance=None))
AHEAD = Window("ahead", VIEW, pk="URL#{url}", time="at", precision=timedelta(hours=1), longest=timedelta(hours=3))
TAGS = Aggregate("tags", VIEW, pk="TAG#{tags[]}", sk="ALL", measures={"views": Count()}, max_groups=2)
SALE = Event("sale", pk="SALE#{id}", sk="SALE")
SHOPS = Aggregate("shops", SALE, pk="SHOP#{shop}", sk="SALES", measures={"n": Count(), "taken": Sum("price")})


def verdicts(verifying: Verification) -> set[tuple[str, str]]:
    return {(each.verdict, each.reason) for each in verifying.differences}


def redrive_all(bench: Workbench, stream: Stream) -> None:
    for entry in list(bench.counters.quarantined()):
        assert bench.counters.redrive(entry)
    stream.deliver()


def tagged() -> tuple[Workbench, Stream]:
    """An event of three tags, more than the groups that were allowed when it came."""
    bench = Workbench([TAGS])
    bench.aggregator.handle({})
    stream = Stream(bench)
    bench.counters.accept(VIEW, {"url": "/", "at": int(bench.clock()), "id": 1, "tags": ["a", "b", "c"]})
    stream.deliver()
    mend(bench, replace(TAGS, max_groups=3))
    return bench, stream


def tags(bench: Workbench, tags: str = "abc") -> list[Any]:
    declared = read_registry(bench.store).entries["tags"].declaration
    assert isinstance(declared, Aggregate)
    return [bench.counters.get(declared, {"tags[]": tag}).measures["views"] for tag in tags]


def test_an_image_that_waits_for_more_groups_is_counted_once() -> None:
    bench, stream = tagged()
    verifying = verify(bench, stream)
    assert verdicts(verifying) == {("waits", "1 entry of the quarantine waits for it")}
    assert verifying.groups("waits").total() == 3
    assert verifying.repair() == (0, 0)
    redrive_all(bench, stream)
    assert tags(bench) == [1, 1, 1]
    assert verify(bench, stream).differences == []


def test_an_entry_that_is_redriven_while_groups_are_read_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, stream = tagged()
    read = Verification._read

    def late(self: Any, *arguments: Any) -> Any:
        held = read(self, *arguments)
        for entry in list(bench.counters.quarantined()):
            bench.counters.redrive(entry)
        return held

    monkeypatch.setattr(Verification, "_read", late)
    verifying = verify(bench, stream)
    assert {verdict for verdict, _ in verdicts(verifying)} <= {"waits"}
    verifying.repair()
    stream.deliver()
    assert tags(bench) == [1, 1, 1]


def test_a_group_for_which_nothing_waits_is_repaired_while_others_wait() -> None:
    bench, stream = tagged()
    bench.counters.accept(VIEW, {"url": "/", "at": int(bench.clock()), "id": 2, "tags": ["d"]})
    stream.deliver()
    spoil(bench, TAGS, "views", -4, **{"tags[]": "d"})
    counters = Counters(bench)
    stream.skip()
    counters.stream = stream
    done = counters("verify", "--repair", "--yes")
    assert (done.code, lines(done.out)) == (4, ["1 item repaired"])
    found = counters("verify")
    assert found.code == 4
    assert lines(found.out)[-1].startswith(
        "4 groups compared: none drifted, 0 cannot be verified, 3 wait for the quarantine; "
    )
    assert tags(bench) == [0, 0, 0]
    assert tags(bench, "d") == [1]
