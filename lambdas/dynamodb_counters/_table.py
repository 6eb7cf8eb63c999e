"""The table as the store sees it: client, name, clock, pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import botocore
from botocore.config import Config
from botocore.session import get_session

from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Bulk: TypeAlias = Literal["partiql", "put"]

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
    bulk : {"partiql", "put"}, optional
        How many events are inserted at once: by PartiQL statements, 25 a call, or by a PutItem each, at the same write
        units but 25 times the calls: for engines and policies without PartiQL. Default ``"partiql"``.
    clock : callable, optional
        Gives seconds since 1970. Default ``time.time``.
    sleep : callable, optional
        Waits some seconds. Default ``time.sleep``.
    jitter : callable, optional
        Gives a float from 0 to 1, for pauses between tries. Default ``random.random``.
    """

    name: str
    client: DynamoDBClient = field(default_factory=lambda: make_client())  # noqa: PLW0108
    bulk: Bulk = "partiql"
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("name", self.name, "the name or ARN of a table")
        if self.bulk not in ("partiql", "put"):
            raise InvalidArgumentError("bulk", self.bulk, "'partiql' or 'put'")

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
    # What boto3.client does, without the import of boto3, which the aggregator's cold start would have to wait for.
    client: Any = get_session().create_client(
        "dynamodb",
        config=Config(
            max_pool_connections=CONCURRENCY,
            # Both take a third of the CPU time of a call together: a user agent put together for each call anew, and a
            # check of arguments that the store has made itself.
            user_agent=f"Botocore/{botocore.__version__} dynamodb-counters",
            parameter_validation=False,
            # Four tries of 2 s and the pauses between them: about 12 s for a request that meets every one of them.
            connect_timeout=1,
            read_timeout=2,
            retries={"mode": "standard", "total_max_attempts": 4},
        ),
    )
    return cast("DynamoDBClient", client)
