"""The table as the runtime reaches it: client, name, clock, retries."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import botocore
from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import FIRST_PAUSE, LONGEST_PAUSE, LONGEST_REQUEST, TRIES
from dynamodb_counters._clients import make_service_client, may_be_done, may_pass, sending_once
from dynamodb_counters._items.schema import PK, SK, TYPE
from dynamodb_counters.errors import InDoubtError, InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CONCURRENCY: Final = 16

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
STATEMENTS_PER_CALL: Final = 25
MAX_STATEMENT_CHARACTERS: Final = 8192

_MOST_DOUBLINGS: Final = 10

T = TypeVar("T")
R = TypeVar("R")

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


def calls_of(statements: Sequence[T]) -> list[Sequence[T]]:
    return [statements[start : start + STATEMENTS_PER_CALL] for start in range(0, len(statements), STATEMENTS_PER_CALL)]


@contextmanager
def ending_at(deadline: float) -> Iterator[None]:
    """Bind a deadline, by the table's clock, to what is called within, whichever thread it runs in."""
    before = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(before)


def time_left(now: float) -> float:
    """Seconds until the deadline of the caller; infinite without one."""
    return _deadline.get() - now


@dataclass(frozen=True)
class Table:
    """One table and how to reach it, with the clock, the sleep and the jitter (0 to 1) injected by tests."""

    name: str
    client: DynamoDBClient = field(default_factory=lambda: make_client())  # noqa: PLW0108
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    remembered: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """Knowledge that a process has of the table, by who remembers it."""
    pool: Executor = field(
        default_factory=lambda: ThreadPoolExecutor(CONCURRENCY, "dynamodb"), compare=False, repr=False
    )
    """Threads for requests that run side by side."""
    threads: int = CONCURRENCY
    """As many run at a time."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("table_name", self.name, "the name or ARN of a table")

    def read_item(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """One item, strongly consistent; empty if there is none."""
        return dict(self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item", {}))

    def partition(self, pk: str, prefix: str = "", **more: Any) -> Iterator[dict[str, Any]]:
        """Items of a partition whose sort keys begin so, page by page: strongly consistent unless asked otherwise."""
        condition, values = f"{PK} = :pk", {":pk": {"S": pk}}
        if prefix:
            condition, values = f"{condition} AND begins_with({SK}, :prefix)", {**values, ":prefix": {"S": prefix}}
        asked: Any = {"ConsistentRead": True, "KeyConditionExpression": condition, "ExpressionAttributeValues": values}
        asked |= more
        while True:
            page = self.client.query(TableName=self.name, **asked)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def last_of(self, pk: str, most: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The last items of a partition, the last one first, strongly consistent; so many, and these attributes."""
        shown = {f"#{name}": name for name in names}
        asked: Any = {"ProjectionExpression": ", ".join(shown), "ExpressionAttributeNames": shown, "Limit": most}
        return islice(self.partition(pk, ScanIndexForward=False, **asked), most)

    def of_types(self, *types: str, **more: Any) -> Iterator[dict[str, Any]]:
        """Items of some types, by a scan: strongly consistent unless asked otherwise."""
        values = {f":type{index}": {"S": each} for index, each in enumerate(types)}
        asked: Any = {"ConsistentRead": True, "ExpressionAttributeValues": values, **more}
        pages = self.client.get_paginator("scan").paginate(
            TableName=self.name,
            FilterExpression=" OR ".join(f"#type = {each}" for each in values),
            ExpressionAttributeNames={"#type": TYPE},
            **asked,
        )
        for page in pages:
            yield from page["Items"]

    def write(self, operation: Literal["put_item", "update_item", "delete_item"], **request: Any) -> bool:
        """Write one item on a condition; return whether that held."""
        try:
            getattr(self.client, operation)(**{"TableName": self.name, **request})
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def write_together(self, writes: Sequence[Any]) -> bool:
        """Write several items at once, on conditions; return whether all of these held."""
        try:
            self.client.transact_write_items(TransactItems=writes)
        except self.client.exceptions.TransactionCanceledException as error:
            reasons = [reason.get("Code") for reason in error.response.get("CancellationReasons", ())]
            if "ConditionalCheckFailed" not in reasons:
                raise
            return False
        return True

    def update_once(self, request: Mapping[str, Any], done: str) -> Mapping[str, Any]:
        """Return the item after an update, which is sent again only where the table refused it, so never done twice.

        `InDoubtError` if its answer is lost; the refusal of its condition is the client's.
        """
        failure: Exception | None = None
        for _ in self.tries():
            try:
                with sending_once(self.client):
                    answer: Any = self.client.update_item(
                        **request,
                        ReturnValues="ALL_NEW",
                        ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    )
            except (ClientError, BotoCoreError) as error:
                if may_be_done(error):
                    raise InDoubtError(f"may have been {done}: the answer was lost: {error}") from error
                if not may_pass(error):
                    raise
                failure = error
            else:
                return dict(answer["Attributes"])
        raise UnavailableError(f"was not {done}: {failure}") from failure

    def tries(self, times: int | None = TRIES) -> Iterator[int]:
        """Count tries from 0, with a pause of growing, random length before each but the first ("full jitter").

        There is always a first try, and none after the deadline.

        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        for number in count() if times is None else range(times):
            if number:
                pause = self.jitter() * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(number, _MOST_DOUBLINGS))
                if time_left(self.clock()) <= pause:
                    return
                self.sleep(pause)
            yield number

    def side_by_side(self, work: Callable[[T], R], items: Sequence[T]) -> list[tuple[T, R | Exception]]:
        """Outcome of each item, in their order; where requests failed, why."""

        def attempt(item: T) -> R | Exception:
            try:
                return work(item)
            except (ClientError, BotoCoreError, TimeoutError) as error:
                return error

        return list(zip(items, self.each(attempt, items), strict=True))

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The results, in the order of the items; an error is raised once no thread works any more.

        A thread that outlived its invocation would be frozen with it, and go on in one that comes much later.
        """
        # Threads that take what is next leave no gaps behind them, and cost less than a task per item.
        waiting, done, errors = enumerate(items), dict[int, R](), list[BaseException]()

        def work_off() -> None:
            for index, item in waiting:
                if errors:
                    break
                try:
                    done[index] = work(item)
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)

        tasks: list[Future[None]] = []
        try:
            for _ in range(min(CONCURRENCY, self.threads, len(items)) - 1):
                tasks.append(self.pool.submit(copy_context().run, work_off))  # noqa: PERF401
            work_off()
            for task in tasks:
                task.result()
        except BaseException as error:
            # A signal, as at the end of a request's time: no thread begins another item.
            errors.append(error)
            for task in tasks:
                task.result()
            raise
        if errors:
            raise errors[0]
        return [done[index] for index in range(len(items))]


def item_of(refusal: ClientError) -> Mapping[str, Any]:
    answer: dict[str, Any] = dict(refusal.response)
    return answer.get("Item") or {}


class Remembered:
    """Knowledge of a table that a process has once."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @classmethod
    def of_table(cls, table: Table) -> Self:
        found: Self = table.remembered.setdefault(cls, cls(table))
        return found


class RetryingClient:
    """The client of invocations, each of which ends at its deadline.

    Requests are repeated while what they meet may pass, such as throttling, and while there is time. A batch that
    failed instead would be delivered again, and cut in two: more writes for a table that is busy.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def has_time(self) -> bool:
        return time_left(self._table.clock()) >= LONGEST_REQUEST

    def __getattr__(self, name: str) -> Any:
        if name in ("exceptions", "meta"):
            return getattr(self._table.client, name)
        call = self.__dict__[name] = lambda **request: self._send(name, request)
        return call

    def _send(self, name: str, request: dict[str, Any]) -> Any:
        failure: Exception = TimeoutError("the invocation's time is nearly up")
        for _ in self._table.tries(None):
            if not self.has_time():
                break
            try:
                return getattr(self._table.client, name)(**request)
            except (ClientError, BotoCoreError) as error:
                if not may_pass(error):
                    raise
                failure = error
        raise failure


def make_client(seconds: float = LONGEST_REQUEST) -> DynamoDBClient:
    """Create a client that retries transient errors for so long, with a connection for each thread of a `Table`."""
    client: DynamoDBClient = make_service_client(
        "dynamodb",
        seconds,
        max_pool_connections=CONCURRENCY,
        # Together a third of a call's CPU time: a user agent built for each call, and a check of arguments
        # that the runtime has built itself.
        user_agent=f"Botocore/{botocore.__version__} dynamodb-counters",
        parameter_validation=False,
    )
    return client
