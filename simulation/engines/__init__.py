"""Engines that speak DynamoDB: the same tests run over each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

REGION = "us-east-1"


class EngineUnavailableError(Exception):
    """The engine cannot run on this machine; the message says what it lacks."""


@dataclass(frozen=True)
class Engine:
    """A running DynamoDB; without `endpoint_url` it lives in this process only."""

    name: str
    client: DynamoDBClient
    streams: DynamoDBStreamsClient | None
    endpoint_url: str | None = None


def connect(name: str, endpoint_url: str | None = None) -> Engine:
    """Connect to an engine; without `endpoint_url`, to AWS's own addresses, which a mock intercepts."""
    # Retries would hide the faults tests look for. moto does not know addresses that carry an account id.
    config = Config(
        account_id_endpoint_mode="disabled",
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=64,
        connect_timeout=5,
        read_timeout=60,
    )
    make = partial(_session(name).client, endpoint_url=endpoint_url, config=config)
    return Engine(name, make("dynamodb"), make("dynamodbstreams"), endpoint_url)


@cache
def _session(_engine: str) -> boto3.Session:
    # Cached, because each session parses the API's model again. DynamoDB Local accepts only letters and digits in an
    # access key id.
    return boto3.Session("testing", "testing", "testing", region_name=REGION)
