from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from demo.examples.blog.traffic import View
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account, Feed
from dynamodb_counters import Counters, Event, Outcome
from examples.blog.declarations import VIEW
from tests.unit.demo.fakes import silent


class Table:
    """Answers like `Counters`: "busy" is accepted at the third attempt, "always busy" and "bad" never."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.done: list[str] = []

    def accept_many(self, _event: Event, events: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        return [self._accept(event["url"]) for event in events]

    def _accept(self, url: str) -> Outcome:
        self.done.append(f"+{url}")
        self.seen[url] += 1
        if url == "bad":
            return Outcome("rejected", "no good")
        if url == "always busy" or (url == "busy" and self.seen[url] < 3):
            return Outcome("failed", "throttled")
        known = self.seen[url] > (3 if url == "busy" else 1)
        return Outcome("duplicate" if known else "accepted")

    def retract(self, _event: Event, values: Mapping[str, Any]) -> bool:
        self.done.append(f"-{values['url']}")
        return values["url"] in self.seen


def _send(table: Table, *deliveries: list[View]) -> Account:
    account = Account()
    account.send(cast("Counters", table), Feed(VIEW, Deliveries(*deliveries), "views"), silent())
    return account


def _views(*urls: str) -> list[View]:
    return [View(url, "2026-11-20T09:00:00+00:00", "c") for url in urls]


def test_every_event_gets_one_outcome() -> None:
    views = _views("a", "b", "a", "bad", "busy", "always busy", *map(str, range(2_000)), "b", "busy")

    account = _send(Table(), views)

    assert account.sent == len(views)
    assert account.statuses == {"accepted": 2_003, "duplicate": 3, "rejected": 1, "failed": 1}
    assert account.reasons == {"no good": 1, "throttled": 1}


def test_nothing_to_send_is_nothing_sent() -> None:
    account = _send(Table(), [])

    assert (account.sent, account.statuses) == (0, {})


def test_events_are_sent_retracted_and_sent_again() -> None:
    table = Table()

    account = _send(table, _views("a", "b"), _views("b", "never there"), _views("b"))

    assert table.done == ["+a", "+b", "-b", "-never there", "+b"]
    assert account == Account(Counter(accepted=2, duplicate=1), withdrawn=1)
