"""Costs by Cost Explorer, which knows a day's about a day later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from demo.aws_smoke.account import Account
from demo.aws_smoke.questions.question import Answer
from demo.platform.deployment import NAMESPACE
from dynamodb_counters._cost.dollars import MONTH

_METRICS: Final = "MetricMonitorUsage"
_SHOWN: Final = 5
_HOUR: Final = 3600.0


@dataclass(frozen=True)
class Bill:
    """Dollars and amounts by usage type, and how many metrics the runtime has had in the account lately."""

    usage: dict[str, tuple[float, float]]
    runtime_metrics: int


def bill_of(account: Account, region: str, day: date) -> Bill:
    """Ask for all that the account used in a region on a day; one cent per request."""
    # https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_GetCostAndUsage.html
    request: dict[str, Any] = {
        "TimePeriod": {"Start": day.isoformat(), "End": (day + timedelta(days=1)).isoformat()},
        "Granularity": "DAILY",
        "Metrics": ["UnblendedCost", "UsageQuantity"],
        "Filter": {"Dimensions": {"Key": "REGION", "Values": [region]}},
        "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
    }
    usage = {
        group["Keys"][0]: (
            float(group["Metrics"]["UnblendedCost"]["Amount"]),
            float(group["Metrics"]["UsageQuantity"]["Amount"]),
        )
        for page in _pages(account.client("ce"), request)
        for result in page["ResultsByTime"]
        for group in result["Groups"]
    }
    listed = account.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace=NAMESPACE)
    return Bill(usage, sum(len(page["Metrics"]) for page in listed))


def _pages(client: Any, request: dict[str, Any]) -> Iterator[Any]:
    token: dict[str, str] = {}
    while True:
        page = client.get_cost_and_usage(**request, **token)
        yield page
        if not (following := page.get("NextPageToken")):
            return
        token = {"NextPageToken": following}


def whole(bill: Bill) -> Answer:
    """The dollars of a day, and those that cost most."""
    most = sorted(bill.usage.items(), key=lambda one: -one[1][0])[:_SHOWN]
    shown = ", ".join(f"`{kind}` {dollars:.4f}" for kind, (dollars, _) in most if dollars)
    total = sum(dollars for dollars, _ in bill.usage.values())
    return Answer(f"${total:.4f} in the account's region that day; most of it: {shown or 'nothing'}", as_assumed=None)


def metrics(bill: Bill) -> Answer:
    """The custom metrics that were billed, in hours."""
    hours = sum(amount for kind, (_, amount) in bill.usage.items() if kind.endswith(_METRICS)) * MONTH / _HOUR
    text = f"{hours:.1f} hours of custom metrics in the account's region that day"
    return Answer(f"{text}; the runtime has {bill.runtime_metrics} there", as_assumed=None)
