"""The table as the store sees it: client, name, clock, pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config

from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CONCURRENCY: Final = 16
"""Requests under way at once."""

_FIRST_PAUSE: Final = 0.025
_LONGEST_PAUSE: Final = 2.0


@dataclass(frozen=True)
class Table:
    """One table and how to reach it.

    Parameters
    ----------
    name : str
        Table name or ARN.
    client : DynamoDBClient, optional
        Default: one made for this process with `make_client`.
    clock : callable, optional
        Gives seconds since 1970. Default ``time.time``.
    sleep : callable, optional
        Waits some seconds. Default ``time.sleep``.
    jitter : callable, optional
        Gives a float from 0 to 1, for pauses between tries. Default ``random.random``.
    """

    name: str
    client: DynamoDBClient = field(default_factory=lambda: make_client())  # noqa: PLW0108
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("name", self.name, "the name or ARN of a table")

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """Threads for requests that can run side by side."""
        return ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="dynamodb")

    def tries(self, times: int) -> Iterator[int]:
        """Count tries, with a pause of growing, random length before each but the first.

        Parameters
        ----------
        times : int
            How many tries at most.

        Yields
        ------
        int
            0, 1, 2, …

        Notes
        -----
        "Full jitter": https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        for number in range(times):
            if number:
                self.sleep(self.jitter() * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number))
            yield number


def make_client() -> DynamoDBClient:
    """Make a client fit for many requests at once.

    Returns
    -------
    DynamoDBClient
        Retries throttling and transient errors itself; its connections serve all threads of a `Table`.
    """
    return boto3.client(
        "dynamodb",
        config=Config(
            max_pool_connections=CONCURRENCY,
            connect_timeout=2,
            read_timeout=5,
            retries={"mode": "standard", "total_max_attempts": 6},
        ),
    )
