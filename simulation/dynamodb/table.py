"""The items of one table, and the stream of their changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulation.dynamodb.capacity import Key, item_bytes
from simulation.dynamodb.condition_expressions import compile_condition
from simulation.dynamodb.expression_tokens import Placeholders
from simulation.dynamodb.memory_stream import MemoryStream
from simulation.dynamodb.request_checks import check_key
from simulation.dynamodb.typed_values import Item, comparable


class Table:
    """Items by partition and sort key; a table without sort key has one item per partition."""

    def __init__(self, name: str, keys: tuple[str, ...], stream: MemoryStream) -> None:
        self.name = name
        self.keys = keys
        self.stream = stream
        self.partitions: dict[str, dict[str, Item]] = {}
        self.indexes: dict[str, tuple[str, str]] = {}

    def items(self) -> Iterator[Item]:
        for partition in self.partitions.values():
            yield from partition.values()

    def key_of(self, request: Mapping[str, Any]) -> Item:
        """The key of the item a request is about: its ``Key``, or as much as its ``Item`` has of one."""
        key: Item | None = request.get("Key")
        if key is None:
            item = request["Item"]
            key = {name: item[name] for name in self.keys if name in item}
        return key

    def address(self, key: Item) -> Key:
        """What capacity is accounted to."""
        return (self.name, *(key[name]["S"] for name in self.keys))

    def find(self, operation: str, key: Item) -> Item | None:
        check_key(operation, self.keys, key)
        partition, sort = self._place(key)
        return self.partitions.get(partition, {}).get(sort)

    def of_index(self, name: str, request: Mapping[str, Any]) -> list[Item]:
        """What a query finds in an index that holds keys only, on one page."""
        partition, sort = self.indexes[name]
        matches, given = compile_condition(request["KeyConditionExpression"]), Placeholders.of(request)
        found = [item for item in self.items() if sort in item and matches(item, given)]
        found.sort(key=lambda item: comparable(item[sort]), reverse=not request.get("ScanIndexForward", True))
        names = (*self.keys, partition, sort)
        return [{name: item[name] for name in names} for item in found]

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

    def expire(self, now: float, limit: int | None) -> list[Item]:
        """Delete and return items whose TTL is over."""
        due = [item for item in self.items() if "ttl" in item and float(item["ttl"]["N"]) <= now][:limit]
        for item in due:
            self.store(self.key_of({"Item": item}), item, None, size=item_bytes(item), by_ttl=True)
        return due

    def _place(self, key: Item) -> tuple[str, str]:
        names = self.keys
        return key[names[0]]["S"], key[names[1]]["S"] if len(names) > 1 else ""
