"""A boto3 client whose requests never leave the process."""

from __future__ import annotations

import json
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse


class Raw:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> list[bytes]:
        return [self.body]


class Network:
    """Answers requests in order, and remembers them."""

    def __init__(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        self.requests.append(json.loads(request.body))
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
