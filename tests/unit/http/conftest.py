"""The handlers over an empty table, and over one that holds counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.event_requests import parse_events
from dynamodb_counters._http.resources import CountResources
from tests.unit.http.counted import consumer, function, views
from tests.unit.http.functions import Pipeline, message
from tests.unit.http.handlers import (
    CLIENTS,
    DECLARATIONS,
    HIT,
    Queue,
    counters_of,
    environment,
    ranked_table,
    resources_of,
)


@pytest.fixture(scope="module")
def queue() -> Iterator[Queue]:
    """Configure the handlers for a test module."""
    with pytest.MonkeyPatch.context() as patch:
        yield environment(patch)


@pytest.fixture(scope="module")
def counted() -> CountResources:
    """Count everything by the functions themselves; return the resources over the counts."""
    client = ranked_table()
    counting = {"DECLARATIONS": encode((*DECLARATIONS, CLIENTS._parts[0])), "QUARANTINE_RETENTION_DAYS": "30"}
    pipeline = Pipeline(client, consumer(client), function("aggregator", client, **counting))
    assert pipeline.accept(message(*views()), message(*views()[:9])) == []
    pipeline.settle()
    outcomes = counters_of(client).accept_many(HIT, parse_events(message(*views())))
    assert {outcome.status for outcome in outcomes} == {"accepted"}
    return resources_of(client)
