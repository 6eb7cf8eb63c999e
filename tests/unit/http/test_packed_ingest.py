"""Packed events from the queue: accepted once, and refused with a reason where nobody can tell any more."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dynamodb_counters import Packed
from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._items.table_schema import CHUNK, TYPE
from tests.unit.http.counted import function
from tests.unit.http.functions import message
from tests.unit.http.handlers import NOW, VIEW, ranked_table

_PACKED = replace(VIEW, retention=timedelta(days=7), packed=Packed("time"))


def _view(ago: timedelta) -> dict[str, str]:
    return {"url": "/", "time": (datetime.fromtimestamp(NOW, UTC) - ago).isoformat(), "clientId": "c"}


def test_the_consumer_tells_what_is_too_late_from_what_it_has(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    table = ranked_table()
    consumer = function(
        "ingest_queue", table, DECLARATIONS=encode((_PACKED,)), QUEUE_URL="q", DEAD_LETTER_QUEUE_URL="d"
    )
    views = [_view(timedelta(minutes=number)) for number in range(5)]
    late, early = _view(timedelta(days=8)), _view(timedelta(hours=-1))
    bodies = [message(*views), message(views[0], late), message(early), message(views[1])]
    records = [{"messageId": str(n), "body": body, "eventSource": "aws:sqs"} for n, body in enumerate(bodies)]

    assert consumer({"Records": records}) == {"batchItemFailures": []}

    assert [json.loads(one.body) for one in consumer.queues["d"].messages()] == [[late], [early]]
    [metered] = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in line]
    assert {name: metered[name] for name in metered if name.startswith("Events")} == {
        "EventsAccepted": [5.0],
        "EventsDuplicate": [2.0],
        "EventsConflicting": [0.0],
        "EventsRejected": [1.0],
        "EventsTooLate": [1.0],
        "EventsFailed": [0.0],
    }
    reasons = [vars(record)["reason"] for record in caplog.records]
    assert [reason.partition(":")[0] for reason in reasons] == ["too_late", "rejected"]
    chunks = [item for item in table.items() if CHUNK in item]
    assert {item[TYPE]["S"] for item in chunks} == {"view#pack"}
