"""The table as the runtime reaches it: name, client, clock, threads; what is worth another try, and until when."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib import import_module
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, cast
from zlib import crc32

import botocore
from botocore import exceptions
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ChecksumError, ClientError
from botocore.session import get_session

from dynamodb_counters import _assumptions
from dynamodb_counters._assumptions import IN_DOUBT, LONGEST_REQUEST, LONGEST_TRY, PASSING, TRIES
from dynamodb_counters._items.schema import PK, SK, TYPE
from dynamodb_counters.errors import InDoubtError, InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

logger = logging.getLogger(__name__)
CONCURRENCY: Final = 16
_MOST_DOUBLINGS: Final = 10
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
STATEMENTS_PER_CALL: Final = 25
MAX_STATEMENT_CHARACTERS: Final = 8192
T = TypeVar("T")
R = TypeVar("R")
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_is_sent_once: ContextVar[bool] = ContextVar("is_sent_once", default=False)


def calls_of(statements: Sequence[T]) -> list[Sequence[T]]:
    return [statements[start : start + STATEMENTS_PER_CALL] for start in range(0, len(statements), STATEMENTS_PER_CALL)]


@contextmanager
def _bound(variable: ContextVar[T], value: T) -> Iterator[None]:
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def ending_at(deadline: float) -> AbstractContextManager[None]:
    """Bind a deadline, by the table's clock, to what is called within, whichever thread it runs in."""
    return _bound(_deadline, deadline)


def time_left(now: float) -> float:
    """Return the seconds until the deadline of the caller; infinite without one."""
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
    threads: int = CONCURRENCY  # Of the pool, for requests that run side by side: as many at a time.

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("table_name", self.name, "the name or ARN of a table")

    def read_item(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """Return an item, strongly consistent; empty if there is none."""
        return dict(self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item", {}))

    def partition(self, pk: str, prefix: str = "", **request: Any) -> Iterator[dict[str, Any]]:
        """Yield items of a partition whose sort keys begin so, page by page: strongly consistent by default."""
        condition, values = f"{PK} = :pk", {":pk": {"S": pk}}
        if prefix:
            condition, values = f"{condition} AND begins_with({SK}, :prefix)", {**values, ":prefix": {"S": prefix}}
        query: Any = {"ConsistentRead": True, "KeyConditionExpression": condition, "ExpressionAttributeValues": values}
        query |= request
        while True:
            page = self.client.query(TableName=self.name, **query)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def last_of(self, pk: str, limit: int, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the last items of a partition, the last one first, strongly consistent: so many, these attributes."""
        projection = {f"#{name}": name for name in names}
        request: Any = {"ProjectionExpression": ", ".join(projection), "ExpressionAttributeNames": projection}
        return islice(self.partition(pk, ScanIndexForward=False, Limit=limit, **request), limit)

    def of_types(self, *types: str, **request: Any) -> Iterator[dict[str, Any]]:
        """Yield items of some types, by a scan: strongly consistent by default."""
        values = {f":type{index}": {"S": name} for index, name in enumerate(types)}
        scan: Any = {"ConsistentRead": True, "ExpressionAttributeValues": values, **request}
        scan["FilterExpression"] = " OR ".join(f"#type = {value}" for value in values)
        scan["ExpressionAttributeNames"] = {"#type": TYPE}
        for page in self.client.get_paginator("scan").paginate(TableName=self.name, **scan):
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

    def update_once(self, request: Mapping[str, Any], verb: str) -> Mapping[str, Any]:
        """Return the item after an update, which is sent again only where the table refused it, so never done twice."""
        # `InDoubtError` if its answer is lost; the refusal of its condition is the client's.
        request = {**request, "ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        failure: Exception | None = None
        for _ in self.tries():
            try:
                with sending_once(self.client):
                    return dict(self.client.update_item(**request)["Attributes"])
            except (ClientError, BotoCoreError) as error:
                if may_be_done(error):
                    raise InDoubtError(f"may have been {verb}: the answer was lost: {error}") from error
                if not may_pass(error):
                    raise
                failure = error
        raise UnavailableError(f"was not {verb}: {failure}") from failure

    def tries(self, times: int | None = TRIES) -> Iterator[int]:
        """Count tries from 0, with a pause of growing, random length before each but the first ("full jitter")."""
        # There is always a first try, and none after the deadline.
        # https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        for number in count() if times is None else range(times):
            if number:
                longest = _assumptions.FIRST_PAUSE * 2 ** min(number, _MOST_DOUBLINGS)
                pause = self.jitter() * min(_assumptions.LONGEST_PAUSE, longest)
                if time_left(self.clock()) <= pause:
                    return
                self.sleep(pause)
            yield number

    def side_by_side(self, work: Callable[[T], R], items: Sequence[T]) -> list[tuple[T, R | Exception]]:
        """Return the result of each item, in their order; where requests failed, why."""

        def attempt(item: T) -> R | Exception:
            try:
                return work(item)
            except (ClientError, BotoCoreError, TimeoutError) as error:
                return error

        return list(zip(items, self.each(attempt, items), strict=True))

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the results, in the order of the items; raise an error once no thread works any more."""
        # A thread that outlived its invocation would be frozen with it, and go on in one that comes much later.
        # Threads that take what is next leave no gaps behind them, and cost less than a task per item.
        queue, results, errors = enumerate(items), dict[int, R](), list[BaseException]()

        def work_off() -> None:
            for index, item in queue:
                if errors:
                    break
                try:
                    results[index] = work(item)
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
        return [results[index] for index in range(len(items))]


def item_of(refusal: ClientError) -> Mapping[str, Any]:
    return cast("dict[str, Any]", refusal.response).get("Item") or {}


class Remembered:
    """Knowledge of a table that a process has once."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @classmethod
    def of_table(cls, table: Table) -> Self:
        return cast("Self", table.remembered.setdefault(cls, cls(table)))


class RetryingClient:
    """The client of invocations: it repeats requests while what they meet may pass, and while there is time."""

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
        # A batch that failed instead would be delivered again, and cut in two: more writes for a table that is busy.
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
    # Together a third of a call's CPU time: a user agent built for each call, and a check of arguments that the runtime
    # has built itself.
    options = {"user_agent": f"Botocore/{botocore.__version__} dynamodb-counters", "parameter_validation": False}
    return cast("DynamoDBClient", make_service_client("dynamodb", seconds, max_pool_connections=CONCURRENCY, **options))


def may_pass(error: Exception) -> bool:
    """Return whether the same request may be answered in a moment: throttled, in conflict, no answer, no time."""
    if not isinstance(error, ClientError):
        return isinstance(error, exceptions.HTTPClientError | exceptions.ConnectionError | TimeoutError)
    response: Any = error.response
    if response["Error"]["Code"] == "TransactionCanceledException":
        reasons = {reason.get("Code", "None") for reason in response.get("CancellationReasons", ())} - {"None"}
        return bool(reasons) and reasons <= PASSING
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return response["Error"]["Code"] in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def may_be_done(error: Exception) -> bool:
    """Return whether the table may have done a request that failed so, or may do it yet."""
    if not isinstance(error, ClientError):
        if isinstance(error, exceptions.ConnectTimeoutError | exceptions.EndpointConnectionError):
            return False  # It was never sent.
        return isinstance(error, exceptions.HTTPClientError | exceptions.ConnectionError | ChecksumError)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return error.response["Error"]["Code"].startswith(IN_DOUBT) or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def sending_once(client: Any) -> AbstractContextManager[None]:
    """Have the client raise where it would send an UpdateItem again that may be done, whatever its settings."""
    client.meta.events.register("needs-retry.dynamodb.UpdateItem", _raise_in_doubt, unique_id=__name__)
    return _bound(_is_sent_once, True)


def _raise_in_doubt(response: Any, caught_exception: Exception | None, operation: Any, **_: Any) -> None:
    # Called before botocore's own handler, which decides about another try.
    if not _is_sent_once.get():
        return
    failure = caught_exception
    if failure is None and "Error" in response[1]:
        failure = ClientError(response[1], operation.name)
    elif failure is None:
        # botocore sends a request again whose answer came damaged.
        expected, actual = response[0].headers.get("x-amz-crc32"), str(crc32(response[0].content))
        if expected not in (None, actual):
            failure = ChecksumError(checksum_type="crc32", expected_checksum=expected, actual_checksum=actual)
    if failure is not None and may_be_done(failure):
        raise failure


def make_service_client(service: str, seconds: float = LONGEST_REQUEST, **settings: Any) -> Any:
    """Create a client whose requests end within so many seconds: as many tries of 3 s as fit, or a shorter one."""
    # As boto3.client makes it, without its import, for which a cold start would wait.
    longest = min(LONGEST_TRY, seconds)
    config = Config(
        connect_timeout=longest / 3,
        read_timeout=longest * 2 / 3,
        retries={"mode": "standard", "total_max_attempts": max(1, int(min(seconds, LONGEST_REQUEST) / longest))},
        **settings,
    )
    try:
        # Imported here, as it rests on parts of botocore that other versions may not have.
        lean = import_module("dynamodb_counters._lean_client")
        if service in lean.SERVICES:
            return lean.create_client(service, config)
    except Exception as error:  # noqa: BLE001  # What is wrong with the settings is botocore's own session to say.
        logger.info("botocore's own session makes the client: %r", error)
    return get_session().create_client(service, config=config)
