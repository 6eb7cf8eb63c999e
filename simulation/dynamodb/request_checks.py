"""What DynamoDB refuses of a request before it looks at any item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulation.dynamodb.client_errors import failure
from simulation.dynamodb.expression_tokens import used

_MOST_BYTES: Final = (2048, 1024)
"""Of a partition key, of a sort key."""

_EXPRESSIONS: Final = ("ConditionExpression", "UpdateExpression", "KeyConditionExpression", "ProjectionExpression")


def check_key(operation: str, names: tuple[str, ...], key: Mapping[str, Any]) -> None:
    """Refuse a key with too few or too many attributes, or one that is empty or too long."""
    for name, most in zip(names, _MOST_BYTES, strict=False):
        text = key.get(name, {}).get("S")
        if not text or len(text.encode()) > most or len(key) != len(names):
            raise failure(operation, "ValidationException", "One or more parameter values were invalid: key")


def check_placeholders(operation: str, request: Mapping[str, Any]) -> None:
    """Refuse placeholders that are given and not used, or used and not given."""
    given = {*(request.get("ExpressionAttributeNames") or ()), *(request.get("ExpressionAttributeValues") or ())}
    needed = used(*(request[name] for name in _EXPRESSIONS if name in request))
    if given != needed:
        message = f"Value provided unused in expressions, or used and not provided: {sorted(given ^ needed)}"
        raise failure(operation, "ValidationException", message)
