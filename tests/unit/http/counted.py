"""A table with counts of every kind: groups, averages, a leaderboard, a histogram, window buckets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dynamodb_counters._declarations.codec import encode
from simulation.memory_table import MemoryTable
from tests.unit.http.functions import Function
from tests.unit.http.handlers import NOW, VIEW

DEAD: Final = "https://dead-letters"
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
    return function("ingest_queue", client, DECLARATIONS=encode((VIEW,)), DEAD_LETTER_QUEUE_URL=DEAD)


def function(handler: str, client: MemoryTable, **variables: str) -> Function:
    base = {"POWERTOOLS_SERVICE_NAME": "counted", "POWERTOOLS_METRICS_NAMESPACE": "Counters", "TABLE_NAME": client.name}
    return Function(f"dynamodb_counters.handlers.{handler}.handler", base | variables, client)
