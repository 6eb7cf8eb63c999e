"""How clients are made, how long they wait, and what is worth another try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any
from zlib import crc32

from botocore.config import Config
from botocore.exceptions import (
    ChecksumError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
)
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.session import get_session

from dynamodb_counters._assumptions import IN_DOUBT, LONGEST_REQUEST, LONGEST_TRY, PASSING

_is_sent_once: ContextVar[bool] = ContextVar("is_sent_once", default=False)


def may_pass(error: Exception) -> bool:
    """Whether the same request may be answered in a moment: throttled, in conflict, no answer, no time."""
    if not isinstance(error, ClientError):
        return isinstance(error, HTTPClientError | NoConnectionError | TimeoutError)
    response: Any = error.response
    if response["Error"]["Code"] == "TransactionCanceledException":
        reasons = {reason.get("Code", "None") for reason in response.get("CancellationReasons", ())} - {"None"}
        return bool(reasons) and reasons <= PASSING
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return response["Error"]["Code"] in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def may_be_done(error: Exception) -> bool:
    """Whether the table may have done a request that failed so, or may do it yet."""
    if not isinstance(error, ClientError):
        never_sent = isinstance(error, ConnectTimeoutError | EndpointConnectionError)
        return isinstance(error, HTTPClientError | NoConnectionError | ChecksumError) and not never_sent
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return error.response["Error"]["Code"].startswith(IN_DOUBT) or status >= HTTPStatus.INTERNAL_SERVER_ERROR


@contextmanager
def sending_once(client: Any) -> Iterator[None]:
    """Have the client raise where it would send an UpdateItem again that may be done, whatever its settings."""
    client.meta.events.register("needs-retry.dynamodb.UpdateItem", _raise_in_doubt, unique_id=__name__)
    before = _is_sent_once.set(True)
    try:
        yield
    finally:
        _is_sent_once.reset(before)


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
    """Create a client as boto3.client makes it, without its import, for which a cold start would wait.

    Its requests end within so many seconds: as many tries of 3 s as fit, or a shorter one.
    """
    longest = min(LONGEST_TRY, seconds)
    config = Config(
        connect_timeout=longest / 3,
        read_timeout=longest * 2 / 3,
        retries={"mode": "standard", "total_max_attempts": max(1, int(min(seconds, LONGEST_REQUEST) / longest))},
        **settings,
    )
    return get_session().create_client(service, config=config)
