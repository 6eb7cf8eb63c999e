"""What requests of every kind hold: a key and placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.harness.expressions import Placeholders, used
from tests.harness.failures import failure
from tests.harness.values import Item

_MAX_PK_BYTES: Final = 2048
_MAX_SK_BYTES: Final = 1024
_EXPRESSIONS: Final = ("ConditionExpression", "UpdateExpression", "KeyConditionExpression", "ProjectionExpression")


def key_of(item: Mapping[str, Any]) -> Item:
    """Give an item's key.

    Parameters
    ----------
    item : mapping
        Typed item.

    Returns
    -------
    dict
        As much of a key as it has.
    """
    return {name: item[name] for name in ("pk", "sk") if name in item}


def named_key(request: Mapping[str, Any]) -> Item:
    """Give the key of the item a request is about.

    Parameters
    ----------
    request : mapping
        As for boto3.

    Returns
    -------
    dict
        Its ``Key``, or the key of its ``Item``.
    """
    key: Item = request.get("Key") or key_of(request["Item"])
    return key


def check_key(operation: str, key: Mapping[str, Any]) -> None:
    """Refuse a key DynamoDB would not take.

    Parameters
    ----------
    operation : str
        Name of the API operation.
    key : mapping
        Typed key.

    Raises
    ------
    ClientError
        It has too few or too many attributes, or one that is empty or too long.
    """
    for name, limit in (("pk", _MAX_PK_BYTES), ("sk", _MAX_SK_BYTES)):
        text = key.get(name, {}).get("S")
        if not text or len(text.encode()) > limit or len(key) != 2:
            raise failure(operation, "ValidationException", "One or more parameter values were invalid: key")


def placeholders(request: Mapping[str, Any]) -> Placeholders:
    """Give what the placeholders of a request stand for.

    Parameters
    ----------
    request : mapping
        As for boto3.

    Returns
    -------
    Placeholders
        Names and values.
    """
    return Placeholders(request.get("ExpressionAttributeNames") or {}, request.get("ExpressionAttributeValues") or {})


def check_placeholders(operation: str, request: Mapping[str, Any]) -> None:
    """Refuse placeholders that are given and not used, or used and not given, as DynamoDB does.

    Parameters
    ----------
    operation : str
        Name of the API operation.
    request : mapping
        As for boto3.

    Raises
    ------
    ClientError
        Names them.
    """
    given = {*(request.get("ExpressionAttributeNames") or ()), *(request.get("ExpressionAttributeValues") or ())}
    needed = used(*(request[name] for name in _EXPRESSIONS if name in request))
    if given != needed:
        message = f"Value provided unused in expressions, or used and not provided: {sorted(given ^ needed)}"
        raise failure(operation, "ValidationException", message)
