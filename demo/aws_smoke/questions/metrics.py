"""Metrics of Lambda that alarms watch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.questions.question import Answer

_LONGEST_RUN: Final = timedelta(hours=3)
_ALIAS: Final = "watch"


def metric(
    deployed: Deployed,
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    statistic: Literal["Sum", "SampleCount"] = "Sum",
) -> float:
    """The sum of what a metric has had since the run began; 0 if it has no value."""
    now = datetime.now(UTC)
    found: Any = deployed.account.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - _LONGEST_RUN,
        EndTime=now + timedelta(minutes=1),
        Period=60,
        Statistics=[statistic],
    )
    return float(sum(point[statistic] for point in found["Datapoints"]))


def alias(deployed: Deployed) -> Answer:
    """Invoke the aggregator's function by the alias of its latest version; look for the alias's own metric."""
    deployed.not_emulated("gets no rules, and so no alias")
    name, client = deployed.outputs["AggregatorFunction"], deployed.account.client("lambda")
    version = client.get_alias(FunctionName=name, Name=_ALIAS)["FunctionVersion"]
    payload = json.dumps({"source": "aws.events"})
    failed = client.invoke(FunctionName=name, Qualifier=_ALIAS, Payload=payload).get("FunctionError")
    dimensions = {"FunctionName": name, "Resource": f"{name}:{_ALIAS}"}
    runs = deployed.until(lambda: metric(deployed, "AWS/Lambda", "Errors", dimensions, "SampleCount"), bool)
    text = f"the alias names `{version}`; its metric `Errors` has {runs:g} samples; its invocation failed: {failed}"
    return Answer(text, version == "$LATEST" and runs > 0)


def polled(deployed: Deployed) -> Answer:
    """Look for the metric of polls of the aggregator's mapping."""
    deployed.not_emulated("has no metrics of mappings")
    dimensions = {"EventSourceMappingUUID": deployed.outputs["MappingId"]}
    samples = deployed.until(
        lambda: metric(deployed, "AWS/Lambda", "PolledEventCount", dimensions, "SampleCount"), bool
    )
    return Answer(f"`PolledEventCount` has {samples:g} samples", samples > 0)
