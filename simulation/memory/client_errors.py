"""Errors as boto3's client raises them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError

_NAMES: Final = ("ConditionalCheckFailedException", "TransactionCanceledException")
EXCEPTIONS: Final = SimpleNamespace(
    ClientError=ClientError, **{name: type(name, (ClientError,), {}) for name in _NAMES}
)
"""Those that the client's ``exceptions`` name."""


def failure(operation: str, code: str, message: str = "injected", **more: Any) -> ClientError:
    """Return an error of the class the client's ``exceptions`` have for the code; `more` goes into its response."""
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    kind: type[ClientError] = getattr(EXCEPTIONS, code, ClientError)
    return kind(response, operation)


def raise_first(operation: str, reasons: list[dict[str, Any]]) -> None:
    if (reason := next((reason for reason in reasons if reason["Code"] != "None"), None)) is None:
        return
    if operation == "TransactWriteItems":
        message = f"Transaction cancelled, please refer cancellation reasons [{', '.join(r['Code'] for r in reasons)}]"
        raise failure(operation, "TransactionCanceledException", message, CancellationReasons=reasons)
    if reason["Code"] == "ValidationError":
        raise failure(operation, "ValidationException", reason["Message"])
    more = {"Item": reason["Item"]} if "Item" in reason else {}
    raise failure(operation, "ConditionalCheckFailedException", reason["Message"], **more)
