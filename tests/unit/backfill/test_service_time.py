"""The time of runs: DynamoDB's, by its answers."""

from __future__ import annotations

from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

from dynamodb_counters._backfill.feeds import ASKED_EVERY, ServiceTime
from dynamodb_counters._table import Table


class Client:
    """Answers with a date, if it has one."""

    exceptions = SimpleNamespace()

    def __init__(self, date: str | None) -> None:
        self.date = date
        self.asked = 0

    def get_item(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        return {"ResponseMetadata": {"HTTPHeaders": {} if self.date is None else {"date": self.date}}}


def service_time(client: Any, monotonic: list[float]) -> ServiceTime:
    return ServiceTime(Table("orders", client, clock=lambda: 5.0), lambda: monotonic[0])


def test_an_answers_date_is_carried_on_by_a_monotonic_clock() -> None:
    client, monotonic = Client("Fri, 20 Nov 2026 00:00:00 GMT"), [100.0]
    now = service_time(client, monotonic)
    first = now()
    assert first == 1795132800.0
    monotonic[0] += ASKED_EVERY - 1
    assert (now(), client.asked) == (first + ASKED_EVERY - 1, 1)
    monotonic[0] += 1
    client.date = "Fri, 20 Nov 2026 00:00:30 GMT"
    assert (now(), client.asked) == (first + 30, 2)


def test_it_never_goes_back() -> None:
    client, monotonic = Client("Fri, 20 Nov 2026 00:00:00 GMT"), [100.0]
    now = service_time(client, monotonic)
    first = now()
    monotonic[0] += ASKED_EVERY
    # Headers have whole seconds.
    client.date = "Fri, 20 Nov 2026 00:00:04 GMT"
    assert now() == first + ASKED_EVERY


def test_slow_answers_never_bring_it_ahead() -> None:
    client, monotonic, begun = Client(None), [100.0], 1795132800.0

    def get_item(**_: Any) -> dict[str, Any]:
        monotonic[0] += 0.5
        date = formatdate(begun + monotonic[0] - 100, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    client.get_item = get_item  # type: ignore[method-assign]
    now = service_time(client, monotonic)
    for _ in range(100):
        assert now() <= begun + monotonic[0] - 100
        monotonic[0] += ASKED_EVERY


def test_without_a_date_the_local_clock_holds() -> None:
    for date in (None, "yesterday"):
        assert service_time(Client(date), [100.0])() == 5.0
