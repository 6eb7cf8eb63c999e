"""The table as the runtime reaches it: client, name, clock, retries."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast

import botocore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Bulk: TypeAlias = Literal["partiql", "put"]

Incomplete: TypeAlias = Literal["tell", "error"]

CONCURRENCY: Final = 16
"""Concurrent requests."""

_FIRST_PAUSE: Final = 0.025
_LONGEST_PAUSE: Final = 2.0
_MOST_DOUBLINGS: Final = 10

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Deadline:
    """When nothing is tried again any more, by the table's clock; an invocation of a function sets it."""

    at: float = math.inf


@dataclass(frozen=True)
class Table:
    """One table and how to reach it, with the clock, the sleep and the jitter (0 to 1) injected by tests."""

    name: str
    client: DynamoDBClient = field(default_factory=lambda: make_client())  # noqa: PLW0108
    bulk: Bulk = "partiql"
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    incomplete: Incomplete = "tell"
    """Whether reading counts that are not whole is an error."""
    remembered: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a process remembers of the table, by who remembers it."""
    deadline: Deadline = field(default_factory=Deadline, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("table_name", self.name, "the name or ARN of a table")
        if self.bulk not in ("partiql", "put"):
            raise InvalidArgumentError("bulk", self.bulk, "'partiql' or 'put'")
        if self.incomplete not in ("tell", "error"):
            raise InvalidArgumentError("incomplete", self.incomplete, "'tell' or 'error'")
        if self.name.startswith("arn:"):
            # PartiQL takes names only, so no table of another account.
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-iam-actions.html
            object.__setattr__(self, "bulk", "put")

    def reached_by(self, client: Any) -> Table:
        """The same table, through another client."""
        other = copy(self)
        object.__setattr__(other, "client", client)
        return other

    def read_item(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """One item, strongly consistent; empty if there is none."""
        return dict(self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item", {}))

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """Threads for requests that run side by side."""
        return ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="dynamodb")

    def tries(self, times: int | None) -> Iterator[int]:
        """Count tries from 0, with a pause of growing, random length before each but the first ("full jitter").

        There is always a first try, and none after the deadline.

        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        for number in count() if times is None else range(times):
            if number:
                pause = self.jitter() * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(number, _MOST_DOUBLINGS))
                if self.clock() + pause >= self.deadline.at:
                    return
                self.sleep(pause)
            yield number

    def side_by_side(self, work: Callable[[T], R], items: Sequence[T]) -> list[tuple[T, R | Exception]]:
        """What became of each item, in their order; where requests failed, why."""
        # Threads that take what is next leave no gaps behind them, and cost less than a task per item.
        waiting, done = enumerate(items), dict[int, R | Exception]()
        if len(items) == 1:
            _work_off(work, waiting, done)
        else:
            tasks = [self.pool.submit(_work_off, work, waiting, done) for _ in range(min(CONCURRENCY, len(items)))]
            for task in tasks:
                task.result()
        return [(item, done[index]) for index, item in enumerate(items)]


def _work_off(work: Callable[[T], R], waiting: Iterable[tuple[int, T]], done: dict[int, R | Exception]) -> None:
    for index, item in waiting:
        try:
            done[index] = work(item)
        except (ClientError, BotoCoreError, TimeoutError) as error:
            done[index] = error


def make_client() -> DynamoDBClient:
    """Create a client that retries transient errors and has a connection for each thread of a `Table`."""
    # What boto3.client does, without importing boto3: the aggregator's cold start would wait for it.
    client: Any = get_session().create_client(
        "dynamodb",
        config=Config(
            max_pool_connections=CONCURRENCY,
            # Together a third of a call's CPU time: a user agent built anew for each call, and a check of arguments
            # that the runtime has built itself.
            user_agent=f"Botocore/{botocore.__version__} dynamodb-counters",
            parameter_validation=False,
            # Four tries of 2 s and the pauses between them: about 12 s at worst.
            connect_timeout=1,
            read_timeout=2,
            retries={"mode": "standard", "total_max_attempts": 4},
        ),
    )
    return cast("DynamoDBClient", client)
