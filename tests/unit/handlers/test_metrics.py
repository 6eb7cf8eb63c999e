"""The metrics of writers and of the aggregator say what was done, and nothing else."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta

from dynamodb_counters import Aggregate, Count, Event, Window
from dynamodb_counters._declarations.codec import encode
from simulation.memory_table import MemoryTable
from tests.unit.http.functions import Function, Pipeline, message
from tests.unit.http.handlers import NOW

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}", retention=timedelta(days=7))
VIEWS = Aggregate("views", VIEW, pk="URL#{url}", sk="STATISTICS", measures={"views": Count()})
SITE = Aggregate("site", VIEW, pk="SITE", sk="STATISTICS", measures={"site_views": Count()})
ROLLING = Window("rolling", VIEW, pk="URL#{url}", time="time", retention=timedelta(hours=25))


def _view(minutes_ago: int) -> dict[str, str]:
    moment = datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=minutes_ago)
    return {"url": "/", "time": moment.isoformat(), "clientId": "c"}


def _sums(log: str) -> Counter[str]:
    """Read embedded metrics as CloudWatch does."""
    sums: Counter[str] = Counter()
    for document in map(json.loads, log.splitlines()):
        for directive in document.get("_aws", {}).get("CloudWatchMetrics", ()):
            assert (directive["Namespace"], directive["Dimensions"]) == ("DynamoDBCounters", [["service"]])
            for metric in directive["Metrics"]:
                sums[f"{document['service']}: {metric['Name']}"] += sum(document[metric["Name"]])
    return sums


def test_the_metrics_say_what_was_done() -> None:
    table, log = MemoryTable(lambda: NOW), io.StringIO()
    common = {"TABLE_NAME": table.name, "POWERTOOLS_METRICS_NAMESPACE": "DynamoDBCounters"}
    consumed = {"DECLARATIONS": encode((VIEW,)), "DEAD_LETTER_QUEUE_URL": "dead", "TIMEOUT": "60"}
    counted = {"DECLARATIONS": encode((ROLLING, SITE, VIEWS)), "QUARANTINE_RETENTION_DAYS": "90"}
    with redirect_stdout(log):
        consumer, aggregator = (
            Function(f"dynamodb_counters.handlers.{name}.handler", common | more, table)
            for name, more in (
                ("ingest_queue", {"POWERTOOLS_SERVICE_NAME": "ingest", **consumed}),
                ("aggregator", {"POWERTOOLS_SERVICE_NAME": "aggregator", **counted}),
            )
        )
        pipeline = Pipeline(table, consumer, aggregator)
        assert pipeline.accept(message(_view(0), _view(0), _view(1)), "no JSON", message({"url": "/"})) == []
        table.put_item(TableName=table.name, Item={"pk": {"S": "p"}, "sk": {"S": "s"}, "_type": {"S": "view"}})
        assert pipeline.accept(message(_view(60 * 26))) == []
        records = pipeline.records()
        pipeline.count(records)
        pipeline.count(records)
    sums = _sums(log.getvalue())
    assert sums.pop("aggregator: WriteUnits") > 0
    # Four records, each delivered twice; one is malformed, one too late for the window. Two aggregates, one bucket.
    assert sums == {
        "aggregator: Records": 8,
        "aggregator: ItemsUpdated": 3,
        "aggregator: AlreadyCounted": 3,
        "aggregator: Quarantined": 1,
        "aggregator: Uncounted": 1,
        "aggregator: LateEvents": 2,
        "ingest: EventsAccepted": 3,
        "ingest: EventsDuplicate": 1,
        "ingest: EventsRejected": 2,
    }
