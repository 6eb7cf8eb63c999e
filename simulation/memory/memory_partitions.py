"""The items of one table, what a write makes of one, and the stream of their changes."""

from __future__ import annotations

import math
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice, takewhile
from typing import Any, Final, TypeAlias

from dynamodb_counters._fold.records import MAX_TTL_AGE
from dynamodb_counters._items.schema import item_bytes, write_units
from simulation.memory import expressions
from simulation.memory.client_errors import failure
from simulation.memory.expressions import Placeholders, matcher
from simulation.memory.memory_stream import MemoryStream
from simulation.memory.typed_values import InvalidValueError, Item, comparable, stored

Key: TypeAlias = tuple[str, ...]
"""Table name and the values of the key."""

_PAGE_BYTES: Final = 1024 * 1024
_MOST_ITEM_BYTES: Final = 400 * 1024
_MOST_KEY_BYTES: Final = (2048, 1024)
"""Most bytes of a partition key, of a sort key."""

# A key condition is no general expression: the partition key, and at most one test of the sort key.
_KEY_CONDITION: Final = re.compile(
    r"""
    \s*\S+\s*=\s*(:\w+)
    (\s+AND\s+(
        \S+\s+BETWEEN\s+:\w+\s+AND\s+:\w+
        | begins_with\(\s*\S+\s*,\s*:\w+\s*\)
        | [^\s<>=]+\s*(=|<=?|>=?)\s*:\w+
    ))?\s*
    """,
    re.VERBOSE,
)


@dataclass
class Table:
    """Items by partition and sort key; a table without sort key has one item per partition."""

    name: str
    keys: tuple[str, ...]
    stream: MemoryStream
    partitions: dict[str, dict[str, Item]] = field(default_factory=dict)
    indexes: dict[str, tuple[str, str]] = field(default_factory=dict)
    ttl: str = "ttl"
    _hashed: list[tuple[int, str]] = field(default_factory=list)  # Partitions in a scan's order; none is taken out.
    late: Callable[[Item], float] = lambda _: 0.0
    """How long after it has expired an item is deleted."""

    def items(self) -> Iterator[Item]:
        for partition in self.partitions.values():
            yield from partition.values()

    def key_of(self, request: Mapping[str, Any]) -> Item:
        """Return the key of the item a request is about: its ``Key``, or as much as its ``Item`` has of one."""
        if "Key" in request:
            return dict(request["Key"])
        item = request["Item"]
        return {name: item[name] for name in self.keys if name in item}

    def address(self, key: Item) -> Key:
        """Key that capacity is accounted to."""
        return (self.name, *(key[name]["S"] for name in self.keys))

    def find(self, operation: str, key: Item) -> Item | None:
        for name, most in zip(self.keys, _MOST_KEY_BYTES, strict=False):
            text = key.get(name, {}).get("S")
            if not text or len(text.encode()) > most or len(key) != len(self.keys):
                raise failure(operation, "ValidationException", "One or more parameter values were invalid: key")
        partition, sort = self._place(key)
        return self.partitions.get(partition, {}).get(sort)

    def page(self, request: Mapping[str, Any], most: int) -> tuple[list[Item], bool]:
        """Return the items of a query's next page, whole, and whether more follow."""
        if "IndexName" in request:
            return self._of_index(request), False
        text, bindings = request["KeyConditionExpression"], Placeholders.of(request)
        if (parsed := _KEY_CONDITION.fullmatch(text)) is None:
            raise InvalidValueError(f"Invalid KeyConditionExpression: {text}")
        names = re.findall(r"(?<![:\w])#?[A-Za-z]\w*", request.get("FilterExpression", ""))
        if not {bindings.name(name) for name in names}.isdisjoint(self.keys):
            raise InvalidValueError("Filter Expression can only contain non-primary key attributes")
        partition = self.partitions.get(bindings.value(parsed[1])["S"], {})
        forward = request.get("ScanIndexForward", True)
        start = request.get("ExclusiveStartKey", {}).get(self.keys[-1], {}).get("S")
        matches = matcher(request, "KeyConditionExpression")
        keys = sorted(partition, reverse=not forward)
        if start is not None:
            keys = [key for key in keys if (key > start if forward else key < start)]
        # One more than a page has, which says whether more follow.
        items = islice((item for key in keys if matches(item := partition[key])), _most(request, most) + 1)
        return _one_page(list(items), request, most)

    def scanned(self, request: Mapping[str, Any], most: int) -> tuple[list[Item], bool]:
        """Return the items of a scan's next page, and whether more follow in the segment."""
        segment, segments = request.get("Segment", 0), request.get("TotalSegments", 1)
        start = request.get("ExclusiveStartKey")
        after = () if start is None else (_hash(start[self.keys[0]]["S"]), *self._place(start))
        if len(self._hashed) < len(self.partitions):
            self._hashed = sorted((_hash(partition), partition) for partition in self.partitions)
        first = bisect_left(self._hashed, max((-((-segment << 32) // segments),), after[:2]))
        partitions = takewhile(lambda place: place[0] * segments >> 32 == segment, self._hashed[first:])
        rest = (
            items[sort]
            for place in partitions
            for items in [self.partitions[place[1]]]
            for sort in sorted(items)
            if (*place, sort) > after
        )
        # One more than a page has, which says whether more follow.
        return _one_page(list(islice(rest, _most(request, most) + 1)), request, most)

    def _of_index(self, request: Mapping[str, Any]) -> list[Item]:
        """Items that a query finds in an index that holds keys only, on one page."""
        partition, sort = self.indexes[request["IndexName"]]
        matches = matcher(request, "KeyConditionExpression")
        items = [item for item in self.items() if sort in item and matches(item)]
        items.sort(key=lambda item: comparable(item[sort]), reverse=not request.get("ScanIndexForward", True))
        names = (*self.keys, partition, sort)
        return [{name: item[name] for name in names} for item in items]

    def store(self, key: Item, old: Item | None, new: Item | None, *, size: int, by_ttl: bool = False) -> None:
        """Replace, insert or (with None) delete an item; `size` is that of both images in bytes."""
        partition, sort = self._place(key)
        items = self.partitions.setdefault(partition, {})
        if new is None:
            items.pop(sort)
        else:
            items[sort] = new
        keys = {name: key[name] for name in self.keys}
        self.stream.append(keys, old or None, new, size=size + item_bytes(keys), by_ttl=by_ttl)

    def expire(self, now: float, limit: int | None = None) -> list[Item]:
        due = [item for item in self.items() if self._expires(item, now) <= now][:limit]
        for item in due:
            self.store(self.key_of({"Item": item}), item, None, size=item_bytes(item), by_ttl=True)
        return due

    def next_expiry(self, now: float) -> float:
        """Return when the next item expires: now, if its TTL is over; infinity if none does."""
        return min((max(self._expires(item, now), now) for item in self.items()), default=math.inf)

    def _expires(self, item: Item, now: float) -> float:
        """Return when TTL deletes an item: never if it is no number, or lies five years back."""
        ttl = float(item.get(self.ttl, {}).get("N", math.inf))
        return ttl + self.late(item) if ttl > now - MAX_TTL_AGE else math.inf

    def _place(self, key: Item) -> tuple[str, str]:
        partition, *sort = (key[name]["S"] for name in self.keys)
        return partition, sort[0] if sort else ""


def _one_page(items: list[Item], request: Mapping[str, Any], most: int) -> tuple[list[Item], bool]:
    """Return the first items, as many as are asked for and fit a page, and whether there may be more."""
    fitting = 1 + sum(size < _PAGE_BYTES for size in accumulate(map(item_bytes, items)))
    page = items[: min(fitting, _most(request, most))]
    return page, len(page) < len(items) or len(page) == request.get("Limit")


def _most(request: Mapping[str, Any], most: int) -> int:
    return int(min(most, request.get("Limit", most)))


def _hash(partition: str) -> int:
    """Return where a partition stands in a scan."""
    return zlib.crc32(partition.encode())


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
    size = item_bytes(old) if old else 0
    try:
        new = _limited({name: stored(value) for name, value in request["Item"].items()}) if kind == "Put" else None
        if kind == "Update":
            expressions.require_update(request)
        if not matcher(request, "ConditionExpression")(old or {}):
            reason: dict[str, Any] = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old:
                reason["Item"] = dict(old)
            return Attempt(old, old, size, size, reason)
        if kind == "ConditionCheck":
            return Attempt(old, old, size, size)
        if kind == "Update":
            new = _limited(expressions.apply_update(request, keys, old or request["Key"]))
        return Attempt(old, new, size, item_bytes(new or {}))
    except InvalidValueError as error:
        return Attempt(old, old, size, size, {"Code": "ValidationError", "Message": str(error)})


def _limited(item: Item) -> Item:
    if item_bytes(item) > _MOST_ITEM_BYTES:
        raise InvalidValueError("Item size has exceeded the maximum allowed size")
    return item


def answer(request: Mapping[str, Any], done: Attempt) -> dict[str, Any]:
    response: dict[str, Any] = {}
    if request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        response["ConsumedCapacity"] = {"TableName": request["TableName"], "CapacityUnits": done.units}
    returned = request.get("ReturnValues", "NONE")
    if returned == "ALL_NEW":
        response["Attributes"] = dict(done.new or {})
    elif returned == "ALL_OLD" and done.old:
        response["Attributes"] = dict(done.old)
    return response
