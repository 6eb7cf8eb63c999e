from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.examples.blog.traffic import View
from demo.examples.leaderboard.traffic import submissions
from demo.examples.pages.traffic import created, visited
from demo.sending.deliveries import Deliveries, with_duplicates
from demo.sending.send import Account, Feed, Repeated
from dynamodb_counters import Counters, Event, Outcome
from examples.blog.declarations import VIEW
from tests.unit.demo import fakes
from tests.unit.demo.fakes import silent


def test_what_is_retracted_is_gone_until_it_comes_again() -> None:
    deliveries = Deliveries(["a", "b", "a", "c"], ["a", "b"], ["b"])

    assert deliveries.remaining() == {"b", "c"}
    assert deliveries.responses() == {"accepted": 4, "duplicate": 1, "withdrawn": 2}


@pytest.mark.parametrize("make", [submissions, created, visited])
@pytest.mark.parametrize("seed", range(20))
def test_only_what_was_sent_is_retracted_and_only_that_is_sent_again(make: Any, seed: int) -> None:
    deliveries: Deliveries[Any] = make(random.Random(seed), 0.2)

    assert len(deliveries.sent) > len(set(deliveries.sent))
    assert 0 < len(deliveries.retracted) == len(set(deliveries.retracted))
    assert set(deliveries.resent) <= set(deliveries.retracted) <= set(deliveries.sent)
    assert len(deliveries.resent) == len(set(deliveries.resent))
    assert deliveries == make(random.Random(seed), 0.2)


@given(st.lists(st.integers(0, 50), max_size=60), st.floats(0, 1), st.integers())
def test_duplicates_are_a_share_of_the_distinct_events(events: list[int], share: float, seed: int) -> None:
    stream = with_duplicates(random.Random(seed), events, share)
    extra = Counter(stream) - Counter(events)

    assert len(stream) == len(events) + round(share * len(set(events)))
    assert Counter(stream) - extra == Counter(events)
    assert set(stream) == set(events)
    assert max(extra.values(), default=1) == 1


def test_duplicates_come_out_of_order_and_all_over_the_stream() -> None:
    stream = with_duplicates(random.Random(1), range(10_000), 0.2)
    positions = [position for position, event in enumerate(stream) if event in stream[max(0, position - 50) : position]]
    late = [position for position in range(1, len(stream)) if stream[position] < stream[position - 1]]

    assert len(positions) < 100
    assert min(late) < 100
    assert max(late) > len(stream) - 100


class Table:
    """Answers like `Counters`: "busy" is accepted at the third attempt, "always busy" and "bad" never.

    Of those that are "slow", one more is accepted at each attempt.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.done: list[str] = []

    def accept_many(self, _event: Event, events: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        if slow := [event for event in events if event["url"].startswith("slow")]:
            return [Outcome("accepted" if event is slow[0] else "failed", "throttled") for event in events]
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


def test_what_fails_is_sent_again_as_long_as_some_of_it_arrives() -> None:
    account = _send(Table(), _views(*(f"slow {number}" for number in range(12))))

    assert account.statuses == {"accepted": 12}


def test_requests_that_were_sent_again_are_told() -> None:
    repeated, known = Repeated(), fakes.client("dynamodb", "put_item", {}, {})
    repeated.watch(known)
    assert repeated.told() == ""
    known.meta.events.register_first("after-call.dynamodb", _answered_at_the_second_attempt)
    known.put_item(TableName="t", Item={"pk": {"S": "a"}})
    assert repeated.told().startswith("1 requests had no answer and were sent again")


def _answered_at_the_second_attempt(parsed: dict[str, Any], **_: Any) -> None:
    parsed["ResponseMetadata"] = {"RetryAttempts": 1}


def test_nothing_to_send_is_nothing_sent() -> None:
    account = _send(Table(), [])

    assert (account.sent, account.statuses) == (0, {})


def test_events_are_sent_retracted_and_sent_again() -> None:
    table = Table()

    account = _send(table, _views("a", "b"), _views("b", "never there"), _views("b"))

    assert table.done == ["+a", "+b", "-b", "-never there", "+b"]
    assert account == Account(Counter(accepted=2, duplicate=1), withdrawn=1)
