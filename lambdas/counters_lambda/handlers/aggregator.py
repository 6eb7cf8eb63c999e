"""Consume the table's stream and keep every aggregate and window current."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics

from counters_lambda.counting.batch import Aggregator, Report, put_pulse
from counters_lambda.handlers._metering import add_metrics, add_routine
from dynamodb_counters import _table
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._quarantine import Waiting, waiting_in_bucket, waiting_in_quarantine
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import DAY

logger = Logger()
metrics = Metrics()


@cache
def aggregator() -> Aggregator:
    return Aggregator(
        Table(os.environ["TABLE_NAME"]),
        decode(os.environ["DECLARATIONS"]),
        quarantine_retention_seconds=_retention(),
        source_table=os.environ.get("SOURCE_TABLE_ARN"),
        single_shard=os.environ.get("SINGLE_SHARD") == "true",
        always_reads="COUNTERS_DEV" in os.environ,
    )


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Count a batch of stream records; tumbling windows require the state in the response."""
    if event.get("source") == "aws.events":
        _watch()
        return {}
    report = aggregator().handle(event, lambda: context.get_remaining_time_in_millis() / 1000)
    _meter(report)
    return {"state": report.state(event)}


def _meter(report: Report) -> None:
    routine = {"Records": report.records, "ItemsUpdated": report.updated, "WriteUnits": report.write_units}
    add_routine(logger, metrics, routine)
    # The schedule counts how many there are in all; the alarm need not wait for it.
    aside = {"Quarantined": report.quarantined, "Uncounted": report.quarantined}
    again = {"AlreadyCounted": report.skipped, "Redelivered": report.redelivered}
    left_out = {"LateEvents": report.late, "UnknownTypes": report.skipped_types.total()}
    declared = {"DefinitionChanged": len(report.changed) + len(report.refused), "Undeclared": len(report.undeclared)}
    crossings = {"CrossingsSkipped": report.skipped_thresholds.total()}
    add_metrics(metrics, aside | again | left_out | declared | crossings)
    types, thresholds = (dict(names.most_common(20)) for names in (report.skipped_types, report.skipped_thresholds))
    for message, key, names in (
        ("items of undeclared types are not counted: let the where of their Items name _type", "types", types),
        ("groups whose items other code has spoiled cross no threshold", "thresholds", thresholds),
        ("names declared otherwise than they are counted: give the changed ones others", "names", [*report.changed]),
        ("names counted though nothing declares them: `counters drop` ends that", "names", [*report.undeclared]),
        ("names not counted, as they contradict what is", "names", [*report.refused]),
    ):
        if names:
            logger.warning(message, extra={key: names})
    if report.quarantined:
        logger.warning("records quarantined: %d; `counters quarantine list` shows why", report.quarantined)


def _watch() -> None:
    table, s3 = Table(os.environ["TABLE_NAME"]), _table.make_service_client("s3")
    try:
        put_pulse(table)
        _report("in quarantine", waiting_in_quarantine(table, _retention()))
    finally:
        # A table that refuses a request hides nothing of the bucket.
        _report("in the on-failure bucket", waiting_in_bucket(s3, os.environ["ON_FAILURE_BUCKET"], table.clock()))


def _report(where: str, waiting: Waiting) -> None:
    add_metrics(metrics, {"Uncounted": waiting.count})
    if waiting.count:
        extra = {"waiting": waiting.count, "oldest_seconds": waiting.oldest}
        logger.warning("records wait for repair: %s", where, extra=extra)


def _retention() -> float:
    return float(os.environ["QUARANTINE_RETENTION_DAYS"]) * DAY
