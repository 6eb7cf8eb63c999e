"""Verification during transactions, which count before the stream has brought their records."""

from __future__ import annotations

from itertools import islice

import pytest

from dynamodb_counters import Aggregate, Count, Event
from dynamodb_counters._backfill.verification import Difference, Verification
from dynamodb_counters.errors import BackfillError
from simulation.workbench import Workbench
from tests.exactly_once.test_backfill import Stream, before_the_end, compared_and_ended, spoil, verify

JOB = Event("job", pk="JOB#{id}", sk="JOB")
JOBS = Aggregate("jobs", JOB, pk="JOBS", sk="NUMBER", measures={"jobs": Count()})


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench([JOBS], shards=3)
    bench.aggregator.handle({})
    bench.counters.record_once(JOB, {"id": 0}, [JOBS])
    bench.deliver_all()
    return bench


def counted_meanwhile(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> list[Difference]:
    """Verify, with a transaction that counts once the log has passed the scan, and whose record comes later."""
    before_the_end(monkeypatch, Verification, lambda: bench.counters.record_once(JOB, {"id": 1}, [JOBS]))
    return verify(bench, Stream(bench)).differences


def test_counts_of_a_transaction_just_now_are_no_drift(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted_meanwhile(bench, monkeypatch) == []


def test_a_group_that_drifted_and_that_a_transaction_counts_in_meanwhile_is_not_repaired(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(bench, JOBS, "jobs", 5)
    [found] = counted_meanwhile(bench, monkeypatch)
    assert (found.verdict, found.reason) == ("unknown", "a transaction counted in it meanwhile")


def test_no_transactions_are_waited_for_once_another_process_has_ended_the_run(bench: Workbench) -> None:
    _, second = compared_and_ended(bench, Stream(bench))
    spoil(bench, JOBS, "jobs", 5)
    with pytest.raises(BackfillError, match="another process has ended run"):
        list(islice(second, 1000))
