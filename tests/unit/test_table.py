"""Work that a table does in several threads: none outlives its caller, and each knows the caller's deadline."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamodb_counters._table import CONCURRENCY, Table, ending_at, time_left


@pytest.fixture
def table() -> Table:
    client: Any = object()
    return Table("counters", client, clock=lambda: 0.0, sleep=lambda _: None)


def test_a_table_of_one_thread_works_in_its_callers(table: Table) -> None:
    assert set(replace(table, threads=1).each(lambda _: threading.get_ident(), range(99))) == {threading.get_ident()}


@pytest.mark.parametrize("error", [KeyError, MemoryError, KeyboardInterrupt])
def test_an_unexpected_error_is_raised_once_every_thread_has_ended(table: Table, error: type[BaseException]) -> None:
    running, goes_on, ended = threading.Semaphore(0), threading.Event(), list[int]()

    def work(number: int) -> None:
        if number == 0:
            for _ in range(CONCURRENCY - 1):
                assert running.acquire(timeout=10)
            threading.Timer(0.1, goes_on.set).start()
            raise error
        running.release()
        assert goes_on.wait(10)
        ended.append(number)

    with pytest.raises(error):
        table.side_by_side(work, range(1000))
    # Work that had begun is done, and nothing else has begun.
    assert sorted(ended) == list(range(1, CONCURRENCY))


def test_a_signal_ends_a_call_once_every_thread_has_ended(table: Table) -> None:
    begun, ended = threading.Event(), list[int]()

    def work(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(10)
        else:
            begun.set()
            time.sleep(0.4)
            ended.append(number)

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError):
            table.each(work, range(2))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(ended) == 1


def test_a_request_that_fails_stops_no_other(table: Table) -> None:
    failure = ClientError({"Error": {"Code": "ValidationException"}}, "UpdateItem")

    def work(number: int) -> int:
        if number % 2:
            raise failure
        return number

    assert table.side_by_side(work, range(6)) == [(0, 0), (1, failure), (2, 2), (3, failure), (4, 4), (5, failure)]


def test_a_deadline_is_that_of_the_call_in_every_thread(table: Table) -> None:
    begun, goes_on, found = threading.Semaphore(0), threading.Event(), list[float]()

    def work(_: int) -> None:
        begun.release()
        assert goes_on.wait(10)
        found.append(time_left(0.0))

    def first() -> None:
        with ending_at(60.0):
            table.each(work, range(4))

    caller = threading.Thread(target=first)
    caller.start()
    for _ in range(4):
        assert begun.acquire(timeout=10)
    # The next invocation has another deadline, while threads of the one before are still there.
    with ending_at(900.0):
        assert table.each(lambda _: time_left(0.0), range(4)) == [900.0] * 4
        goes_on.set()
        caller.join(10)
    assert found == [60.0] * 4


def test_nothing_is_tried_again_after_the_deadline(table: Table) -> None:
    with ending_at(0.0):
        assert table.each(lambda _: list(table.tries(3)), range(2)) == [[0], [0]]
    assert list(table.tries(3)) == [0, 1, 2]
