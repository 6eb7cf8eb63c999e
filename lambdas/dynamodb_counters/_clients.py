"""How clients are made, how long they wait, and what is worth another try."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.session import get_session

from dynamodb_counters._assumptions import LONGEST_REQUEST, LONGEST_TRY, PASSING


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
