"""Engines that speak DynamoDB: the same tests run over each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

__all__ = ["Engine", "EngineUnavailableError", "connect"]

REGION = "us-east-1"


class EngineUnavailableError(Exception):
    """The engine cannot run on this machine; the message says what it lacks."""


@dataclass(frozen=True)
class Engine:
    """A running DynamoDB.

    Parameters
    ----------
    name : str
        What tests and reports call it.
    client : DynamoDBClient
        Client of its tables.
    streams : DynamoDBStreamsClient or None
        Client of its streams; None where it has none to read.
    endpoint_url : str or None
        Where another process reaches it; None when it lives in this process only.
    """

    name: str
    client: DynamoDBClient
    streams: DynamoDBStreamsClient | None
    endpoint_url: str | None = None


def connect(name: str, endpoint_url: str | None = None) -> Engine:
    """Make the clients of an engine.

    Parameters
    ----------
    name : str
        What tests and reports call it.
    endpoint_url : str, optional
        Where it listens. By default AWS's own addresses, which a mock intercepts.

    Returns
    -------
    Engine
        With clients that share no state with boto3's default session.
    """
    # A client that retries would hide the faults tests look for.
    # moto does not know the addresses that carry an account id.
    config = Config(
        account_id_endpoint_mode="disabled",
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=64,
        connect_timeout=5,
        read_timeout=60,
    )
    # DynamoDB Local accepts letters and digits only in an access key id.
    session = boto3.Session("testing", "testing", "testing", region_name=REGION)
    return Engine(
        name=name,
        client=session.client("dynamodb", endpoint_url=endpoint_url, config=config),
        streams=session.client("dynamodbstreams", endpoint_url=endpoint_url, config=config),
        endpoint_url=endpoint_url,
    )
