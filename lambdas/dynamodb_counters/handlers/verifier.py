"""Verify the table's counts on a schedule."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from dynamodb_counters import _clients
from dynamodb_counters._backfill.scheduled import work_on_schedule
from dynamodb_counters._backfill.verdicts import Verdict
from dynamodb_counters._backfill.verification import Verification
from dynamodb_counters._backfill.wiring import ServiceTime, make_runner
from dynamodb_counters._table import Table
from dynamodb_counters.errors import BackfillError

logger = Logger()
metrics = Metrics()


@cache
def verifier() -> Callable[..., Verification | None]:
    """Create the verifier that the environment describes, once per process."""
    table, streams = Table(os.environ["TABLE_NAME"]), _clients.make_service_client("dynamodbstreams")
    # One segment: there is no hurry.
    make = partial(make_runner, Verification, table, streams, segments=1, sample=float(os.environ["SAMPLE"]))
    return partial(work_on_schedule, table, make, ServiceTime(table))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    """Begin a verification if the event says so, and go on with one that is open."""
    try:
        done = verifier()(
            begins=bool(event.get("begin")), time_left=lambda: context.get_remaining_time_in_millis() / 1000
        )
    except BackfillError as error:
        # Trying again at once would not help: the schedule begins another one.
        logger.warning(str(error))
        return
    if done is not None:
        _meter(done)


def _meter(done: Verification) -> None:
    metrics.add_metric(name="GroupsVerified", unit=MetricUnit.Count, value=done.compared)
    metrics.add_metric(name="Drift", unit=MetricUnit.Count, value=done.groups("drift"))
    metrics.add_metric(name="GroupsUnknown", unit=MetricUnit.Count, value=done.groups("unknown"))
    # Groups may name people: `counters verify` lists them.
    if drifted := _by_declaration(done, "drift"):
        logger.error("counts have drifted", extra={"groups": drifted})
    if unknown := _by_declaration(done, "unknown"):
        logger.warning("counts cannot be verified", extra={"groups": unknown})


def _by_declaration(done: Verification, verdict: Verdict) -> dict[str, int]:
    found = {(each.name, each.ref) for each in done.differences if each.verdict == verdict}
    return dict(Counter(name for name, _ in found))
