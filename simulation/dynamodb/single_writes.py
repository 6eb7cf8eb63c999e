"""What one write makes of one item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.dynamodb.capacity import item_bytes, write_units
from simulation.dynamodb.expressions import Placeholders, apply_update, compile_condition
from simulation.dynamodb.typed_values import InvalidValueError, Item, stored

_MAX_ITEM_BYTES: Final = 400 * 1024


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write, tried but not stored; `reason` says why it is refused, with the code ``None`` if it is not."""

    old: Item | None
    new: Item | None
    old_bytes: int
    new_bytes: int
    reason: dict[str, Any] = field(default_factory=lambda: {"Code": "None"})

    @property
    def units(self) -> float:
        """A refused write is charged for the item it met."""
        return write_units(max(self.old_bytes, self.new_bytes))


def attempt(kind: str, request: Mapping[str, Any], keys: tuple[str, ...], old: Item | None) -> Attempt:
    """Try a ``Put``, ``Update``, ``Delete`` or ``ConditionCheck`` on the item it is about."""
    size = item_bytes(old) if old else 0
    try:
        condition = request.get("ConditionExpression")
        if condition and not compile_condition(condition)(old or {}, Placeholders.of(request)):
            reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old:
                reason["Item"] = dict(old)
            return Attempt(old, old, size, size, reason)
        if kind == "ConditionCheck":
            return Attempt(old, old, size, size)
        if kind == "Delete":
            return Attempt(old, None, size, 0)
        if kind == "Put":
            new = {name: stored(value) for name, value in request["Item"].items()}
        else:
            new = apply_update(request, keys, old or request["Key"])
        if (new_size := item_bytes(new)) > _MAX_ITEM_BYTES:
            raise InvalidValueError("Item size has exceeded the maximum allowed size")
        return Attempt(old, new, size, new_size)
    except InvalidValueError as error:
        return Attempt(old, old, size, size, {"Code": "ValidationError", "Message": str(error)})


def answer(request: Mapping[str, Any], done: Attempt) -> dict[str, Any]:
    """What the client returns for a write that was done."""
    told: dict[str, Any] = {}
    if request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        told["ConsumedCapacity"] = {"TableName": request["TableName"], "CapacityUnits": done.units}
    returned = request.get("ReturnValues", "NONE")
    if returned == "ALL_NEW":
        told["Attributes"] = dict(done.new or {})
    elif returned == "ALL_OLD" and done.old:
        told["Attributes"] = dict(done.old)
    return told
