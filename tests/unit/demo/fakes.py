"""Stand-ins for AWS and for the read library, and what most tests start from."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import boto3
from botocore.stub import Stubber

from demo.check.intervals import Interval
from demo.cost import Costs
from demo.example import Example, Finding, Numbers, Reading
from demo.options import Options, Setup
from demo.sending.send import Account
from demo.terminal import Progress
from dynamodb_counters import Aggregate, Counters, Group, Window, WindowCount

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
END = NOW + timedelta(minutes=1)
DAY = Interval(END - timedelta(hours=24), END)
SECOND = timedelta(seconds=1)
AROUND_THE_DAY = (DAY.start - SECOND, DAY.start, DAY.end - SECOND, DAY.end)
"""Four times, of which the second and the third are in `DAY`."""


def silent() -> Progress:
    return Progress(io.StringIO())


def setup(output: io.StringIO | None = None, **options: Any) -> Setup:
    generated = Options(("blog",), log=None, duplicates=0.2, seed=1, report=None, keep=False)
    return Setup(replace(generated, **options), NOW, Progress(output or io.StringIO()))


def finding(example: Example, counts: Numbers, interval: Interval = DAY, costs: Costs | None = None) -> Finding:
    """These counts, after the right responses."""
    statuses = example.responses()
    withdrawn = statuses.pop("withdrawn", 0)
    return Finding(example, Account(statuses, withdrawn=withdrawn), Reading(counts, interval), costs)


def client(service: str, operation: str, *answers: dict[str, Any] | str) -> Any:
    """A client whose calls of one operation are answered in order; a text is the code of an error."""
    created: Any = boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    stubber = Stubber(created)
    for answer in answers:
        if isinstance(answer, str):
            stubber.add_client_error(operation, answer)
        else:
            stubber.add_response(operation, answer)
    stubber.activate()
    return created


class NameLengths:
    """Answers like `Counters`: every group counts as much as its name is long, and the nameless one `site`."""

    def __init__(self, *, site: int = 2, uneven: bool = False) -> None:
        self.site = site
        self.uneven = uneven

    def get(self, aggregate: Aggregate, values: Mapping[str, Any]) -> Group:
        count = len(next(iter(values.values()))) if values else self.site
        return Group(values, dict.fromkeys(aggregate.measures, count))

    def get_many(self, groups: Iterable[tuple[Aggregate, Mapping[str, Any]]]) -> list[Group]:
        return [self.get(aggregate, values) for aggregate, values in groups]

    def window(self, _window: Window, values: Mapping[str, Any], *, last: timedelta, as_of: datetime) -> WindowCount:
        (value,) = values.values()
        end = as_of + timedelta(minutes=len(value) if self.uneven else 1)
        return WindowCount(len(value), end - last, end)


def name_lengths(*, site: int = 2, uneven: bool = False) -> Counters:
    return cast("Counters", NameLengths(site=site, uneven=uneven))
