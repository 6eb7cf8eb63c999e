"""Verify the table's counts on a schedule: one run after the other, each in as many invocations as it takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, TypeAlias

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from counters_lambda.counting.feeds import ServiceTime
from counters_lambda.counting.runner import COMPLETE
from counters_lambda.counting.verification import Verification
from dynamodb_counters import _table
from dynamodb_counters._assumptions import CLOCKS, RUN_OPEN_AFTER
from dynamodb_counters._registry import read_registry
from dynamodb_counters._table import Table
from dynamodb_counters._tiers import HOUR, MINUTE
from dynamodb_counters.errors import BackfillError

Clock: TypeAlias = Callable[[], float]

logger = Logger()
metrics = Metrics()

ENOUGH: Final = MINUTE  # Seconds that must be left for another step.
LONGEST: Final = 20 * HOUR  # Then a verification is given up: while it is open, every batch is logged.


def work_on_schedule(
    table: Table, make: Callable[..., Verification], now: Clock, *, begins: bool, time_left: Clock
) -> Verification | None:
    """Go on with the run that is open, or begin if it is time to; return what is complete now."""
    runs = read_registry(table).verifications
    if not runs and not begins:
        return None
    first = min(runs, key=lambda run: run.since, default=None)
    if first is not None and now() < first.since - RUN_OPEN_AFTER + CLOCKS:
        return None  # Another process is opening it right now.
    verification = make(run=first.id if first is not None else "")
    if first is not None and now() > first.since + LONGEST:
        verification.give_up()
        raise BackfillError(f"run {first.id} was given up: it has not ended in {LONGEST / HOUR:.0f} hours")
    for step in verification.steps():
        if step.phase == COMPLETE:
            return verification
        if time_left() < ENOUGH:
            break
    return None


@cache
def verifier() -> Callable[..., Verification | None]:
    table, streams = Table(os.environ["TABLE_NAME"]), _table.make_service_client("dynamodbstreams")
    # One segment: there is no hurry.
    make = partial(Verification.of_table, table, streams, segments=1, sample=float(os.environ["SAMPLE"]))
    return partial(work_on_schedule, table, make, ServiceTime(table))


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> None:
    """Begin a verification if the event says so, and go on with one that is open."""
    try:
        verification = verifier()(
            begins=bool(event.get("begin")), time_left=lambda: context.get_remaining_time_in_millis() / 1000
        )
    except BackfillError as error:
        logger.warning(str(error))  # Trying again at once would not help: the schedule begins another one.
        return
    if verification is None:
        return
    # Groups may name people: `counters verify` lists them.
    drifted, unknown = verification.groups("drifted"), verification.groups("unknown")
    numbers = {"GroupsVerified": verification.compared, "Drift": drifted.total(), "GroupsUnknown": unknown.total()}
    for name, number in numbers.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
    if drifted:
        logger.error("counts have drifted", extra={"groups": dict(drifted)})
    if unknown:
        logger.warning("counts cannot be verified", extra={"groups": dict(unknown)})
