"""A table with counts of every kind: groups, averages, a leaderboard, a histogram, window buckets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from dynamodb_counters._declarations.codec import encode
from dynamodb_counters._http.resources import CountResources
from simulation.dynamodb.client import MemoryTable
from tests.unit.http.functions import Function, Pipeline, message
from tests.unit.http.handlers import DECLARATIONS, NOW, VIEW, ranked_table, resources_of

URLS: Final = {"/": 23, "/ä?&#\u2028": 7, "0": 1}
"""How often each was viewed."""


def views() -> list[dict[str, Any]]:
    """Build views of the last day and earlier, by two clients."""
    return [
        {
            "url": url,
            "time": (datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=97 * number + 1)).isoformat(),
            "clientId": f"c{number % 2}",
            "bytes": 10 * number + 0.5,
        }
        for url, times in URLS.items()
        for number in range(times)
    ]


def consumer(client: MemoryTable) -> Function:
    """The function that accepts a queue's events."""
    return _function("ingest_queue", client, DECLARATIONS=encode((VIEW,)))


def _function(handler: str, client: MemoryTable, **variables: str) -> Function:
    base = {
        "POWERTOOLS_SERVICE_NAME": "counted",
        "POWERTOOLS_METRICS_NAMESPACE": "Counters",
        "TABLE_NAME": client.name,
    }
    return Function(f"dynamodb_counters.handlers.{handler}.handler", base | variables, client)


@pytest.fixture(scope="module")
def counted() -> CountResources:
    """Count everything by the functions themselves; return the resources over the counts."""
    client = ranked_table()
    counting = {"DECLARATIONS": encode(DECLARATIONS), "QUARANTINE_RETENTION_DAYS": "30"}
    pipeline = Pipeline(client, consumer(client), _function("aggregator", client, **counting))
    assert pipeline.accept(message(*views()), message(*views()[:9])) == []
    pipeline.settle()
    return resources_of(client)
