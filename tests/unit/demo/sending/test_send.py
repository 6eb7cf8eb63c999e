from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from demo.examples.blog.traffic import View
from demo.sending.deliveries import Deliveries
from demo.sending.send import Account, send
from demo.terminal import Progress


class Answer(NamedTuple):
    status: str
    reason: str | None = None


class Table:
    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def accept_many(self, events: Sequence[Mapping[str, Any]], /) -> list[Answer]:
        return [self.accept(event["url"]) for event in events]

    def accept(self, url: str) -> Answer:
        self.seen[url] += 1
        if url == "bad":
            return Answer("rejected", "no good")
        if url == "busy" and self.seen[url] < 3:
            return Answer("failed", "throttled")
        if url == "always busy":
            return Answer("failed", "throttled")
        known = self.seen[url] > (3 if url == "busy" else 1)
        return Answer("duplicate" if known else "accepted")

    def retract(self, values: Mapping[str, Any], /) -> bool:
        raise NotImplementedError


def _send(views: list[View]) -> Account:
    table = Table()
    return send(table.accept_many, table.retract, Deliveries(views), "views", Progress(io.StringIO()))


def _views(*urls: str) -> list[View]:
    return [View(url, "2026-11-20T09:00:00+00:00", "c") for url in urls]


def test_every_event_gets_one_outcome() -> None:
    views = _views("a", "b", "a", "bad", "busy", "always busy", *map(str, range(2_000)), "b", "busy")

    account = _send(views)

    assert account.sent == len(views)
    assert account.statuses == {"accepted": 2_003, "duplicate": 3, "rejected": 1, "failed": 1}
    assert account.reasons == {"no good": 1, "throttled": 1}


def test_nothing_to_send_is_nothing_sent() -> None:
    account = _send([])

    assert (account.sent, account.statuses) == (0, {})


def test_events_are_sent_retracted_and_sent_again() -> None:
    done: list[str] = []
    there: set[str] = set()

    def accept_many(events: Sequence[Mapping[str, Any]], /) -> list[Answer]:
        done.extend(f"+{event['url']}" for event in events)
        answers = [Answer("duplicate" if event["url"] in there else "accepted") for event in events]
        there.update(event["url"] for event in events)
        return answers

    def retract(values: Mapping[str, Any], /) -> bool:
        done.append(f"-{values['url']}")
        return values["url"] in there

    deliveries = Deliveries(_views("a", "b"), _views("b", "never there"), _views("b"))
    account = send(accept_many, retract, deliveries, "views", Progress(io.StringIO()))

    assert done == ["+a", "+b", "-b", "-never there", "+b"]
    assert account == Account(3, Counter(accepted=2, duplicate=1), withdrawn=1)
