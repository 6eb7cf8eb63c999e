"""What one write makes of one item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.harness.conditions import compile_condition
from tests.harness.requests import placeholders
from tests.harness.updates import compile_update
from tests.harness.values import InvalidValueError, Item, parse, size, stored

_MAX_ITEM_BYTES: Final = 400 * 1024


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write, tried on an item but not stored.

    Parameters
    ----------
    old, new : dict or None
        The item before and after it; None is none.
    reason : dict
        Why it is refused, as a transaction tells it; the code ``None`` if it is not.
    """

    old: Item | None
    new: Item | None
    reason: dict[str, Any] = field(default_factory=lambda: {"Code": "None"})


def attempt(kind: str, request: Mapping[str, Any], old: Item | None) -> Attempt:
    """Try a write on an item.

    Parameters
    ----------
    kind : str
        ``Put``, ``Update``, ``Delete`` or ``ConditionCheck``.
    request : mapping
        As for boto3.
    old : dict or None
        The item it is about.

    Returns
    -------
    Attempt
        What would become of it.
    """
    try:
        condition = request.get("ConditionExpression")
        if condition and not compile_condition(condition)(old or {}, placeholders(request)):
            reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old:
                reason["Item"] = dict(old)
            return Attempt(old, old, reason)
        return Attempt(old, _outcome(kind, request, old))
    except InvalidValueError as error:
        return Attempt(old, old, {"Code": "ValidationError", "Message": str(error)})


def answer(request: Mapping[str, Any], done: Attempt) -> dict[str, Any]:
    """Give what the client is told of a write.

    Parameters
    ----------
    request : mapping
        As for boto3.
    done : Attempt
        What became of it.

    Returns
    -------
    dict
        As from boto3.
    """
    told: dict[str, Any] = {}
    if request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        units = max(1, math.ceil(max(size(done.old or {}), size(done.new or {})) / 1024))
        told["ConsumedCapacity"] = {"TableName": request["TableName"], "CapacityUnits": float(units)}
    returned = request.get("ReturnValues", "NONE")
    if returned == "ALL_NEW":
        told["Attributes"] = dict(done.new or {})
    elif returned == "ALL_OLD" and done.old:
        told["Attributes"] = dict(done.old)
    return told


def _outcome(kind: str, request: Mapping[str, Any], old: Item | None) -> Item | None:
    if kind == "Delete":
        return None
    if kind == "ConditionCheck":
        return old
    if kind == "Put":
        new = {name: stored(value) for name, value in request["Item"].items()}
    else:
        update = compile_update(request["UpdateExpression"])
        if {"pk", "sk"} & set(update.targets):
            raise InvalidValueError("Cannot update attribute. This attribute is part of the key")
        given = placeholders(request)
        for value in given.values.values():
            if "N" in value:
                parse(value["N"])
        new = update.apply(old or dict(request["Key"]), given)
    if size(new) > _MAX_ITEM_BYTES:
        raise InvalidValueError("Item size has exceeded the maximum allowed size")
    return new
