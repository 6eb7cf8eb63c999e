"""Clients of other services than DynamoDB, made when they are first needed."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.session import get_session


def make_service_client(service: str) -> Any:
    """Create a client that gives up after 12 seconds at most, without importing boto3."""
    retries: Any = {"mode": "standard", "total_max_attempts": 3}
    # Three tries of at most 4 s.
    config = Config(connect_timeout=1, read_timeout=3, retries=retries)
    return get_session().create_client(service, config=config)
