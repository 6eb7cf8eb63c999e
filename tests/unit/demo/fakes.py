"""Stand-ins for AWS and for the read library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse

from dynamodb_counters import Aggregate, Group, Window, WindowCount


class Raw:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> list[bytes]:
        return [self.body]


class Network:
    """Answers a client's requests in order."""

    def __init__(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status

    def __call__(self, **_: Any) -> AWSResponse:
        body = json.dumps(self.answers.pop(0)).encode()
        return AWSResponse("http://localhost", self.status, {}, Raw(body))  # type: ignore[arg-type]


def client(service: str, network: Network) -> Any:
    created: Any = boto3.client(
        service,  # type: ignore[call-overload]
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    created.meta.events.register("before-send", network)
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
