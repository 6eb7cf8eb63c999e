"""Orders that other code keeps in a table of its own, of other names, apart from the table of the counts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from counters_lambda.counting.feeds import Shard
from dynamodb_counters._declarations import Items, TableKeys
from simulation.delivery.stream_api import Source, shard_id
from simulation.memory.memory_stream import Page, Record
from simulation.oracle.layout import is_expiry
from simulation.pairs.backend import LocalBackend, MemoryBackend
from simulation.pairs.declared import ORDER

_OURS: Final = ("pk", "sk", "_type", "ttl", "number")
"""Attributes of an order among the counts that an item of other code has not, or means otherwise."""

_MISLEADING: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"_type": {"S": "orders"}},
    {"_type": {"S": "quarantine"}, "state": {"S": "waiting"}},
    {"_type": {"S": "quarantine"}, "state": {"S": "released"}},
)
"""Attributes that would say something in the table of the counts."""

_PK: Final = "ORDER#{number}"

Image = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """How a table of other code keeps its orders: their numbers live in the keys alone."""

    keys: TableKeys

    @property
    def names(self) -> tuple[str, ...]:
        return (self.keys.partition_key, *([self.keys.sort_key] if self.keys.sort_key else []))

    @property
    def ttl(self) -> str:
        assert self.keys.ttl is not None
        return self.keys.ttl

    def source(self) -> Items:
        """Return the orders, as they are declared."""
        return replace(ORDER, pk=_PK, sk="ORDER" if self.keys.sort_key else None, keys=self.keys)

    def key(self, ours: Image) -> dict[str, Any]:
        """Its key for one of ours."""
        return {name: ours[own] for name, own in zip(self.names, ("pk", "sk"), strict=False)}

    def ours(self, item: Image) -> dict[str, Any]:
        """Return an item of it as an order among the counts."""
        attributes = {name: value for name, value in item.items() if name not in (*self.names, self.ttl, *_OURS)}
        pk = item[self.names[0]]
        number = {"S": pk["S"].removeprefix("ORDER#")}
        return attributes | {"pk": pk, "sk": {"S": "ORDER"}, "number": number, "ttl": item[self.ttl]}


SHAPES: Final = (
    Shape(TableKeys("ref", ttl="expiresAt")),
    Shape(TableKeys("owner", "what", ttl="goneAt")),
    Shape(TableKeys("sk", "pk", ttl="until")),
)


class Apart:
    """The table of the counts, whose orders lie in another."""

    def __init__(self, counts: MemoryBackend | LocalBackend, shape: Shape, rng: random.Random) -> None:
        self._counts = counts
        self._source = counts.beside("orders", shape.names, shape.ttl)
        self._shape = shape
        self._random = rng
        self.name, self.client, self.clock = counts.name, counts.client, counts.clock
        self.lag = counts.lag
        self.source_table: str | None = self._source.stream.arn.partition("/stream/")[0]
        self.stream: Source = _Both(counts.stream, self._source.stream, self._source.name)

    def items(self) -> Iterable[Image]:
        """All items, those of other code as if they were among the counts."""
        yield from self._counts.items()
        yield from map(self._shape.ours, self._source.items())

    def is_own(self, record: Record) -> bool:
        return not str(record.get("eventSourceARN", "")).startswith(f"{self.source_table}/")

    def ours(self, image: Image) -> Image:
        """Return an image of other code's table as if it were among the counts."""
        return self._shape.ours(image)

    def has_expired(self, record: Record) -> bool:
        change = record["dynamodb"]
        return is_expiry({**record, "dynamodb": {**change, "OldImage": self._shape.ours(change["OldImage"])}})

    def get(self, key: Image) -> Image | None:
        reply = self._source.client.get_item(TableName=self._source.name, Key=self._shape.key(key), ConsistentRead=True)
        return self._shape.ours(reply["Item"]) if "Item" in reply else None

    def put(self, ours: Image) -> None:
        """Write an order as other code would, with attributes that mislead."""
        shape = self._shape
        item = {name: value for name, value in ours.items() if name not in _OURS}
        # An attribute that is not the table's TTL, and would have passed.
        past = {"N": str(int(self.clock()) - 100)}
        mislead = {"ttl": past, "pk": {"N": "1"}, **self._random.choice(_MISLEADING)}
        item |= mislead | shape.key(ours) | {shape.ttl: ours["ttl"]}
        self._source.client.put_item(TableName=self._source.name, Item=item)

    def delete(self, key: Image) -> None:
        self._source.client.delete_item(TableName=self._source.name, Key=self._shape.key(key))

    def expire(self, limit: int) -> list[dict[str, Any]]:
        self._counts.expire(limit)
        return [self._shape.ours(item) for item in self._source.expire(limit)]

    def split(self, rng: random.Random) -> None:
        rng.choice((self._counts, self._source)).split(rng)

    def roll_over(self) -> None:
        self._counts.roll_over()
        self._source.roll_over()

    def trim(self, created_before: float) -> None:
        self._counts.trim(created_before)
        self._source.trim(created_before)

    def history(self) -> Iterable[tuple[str, Record]]:
        """Every record, those of other code's items as if they were among the counts."""
        yield from self._counts.history()
        for shard, record in self._source.history():
            images = {name: self._shape.ours(record["dynamodb"][name]) for name in _images(record)}
            keys = {name: next(iter(images.values()))[name] for name in ("pk", "sk")}
            yield f"{shard}@{self._source.name}", {**record, "dynamodb": record["dynamodb"] | images | {"Keys": keys}}

    def drop(self) -> None:
        self._counts.drop()
        self._source.drop()


Backend: TypeAlias = MemoryBackend | LocalBackend | Apart
"""A table with its stream and its time."""


class _Both:
    """Two streams as one source, the shards of the other named with its table."""

    def __init__(self, counts: Source, other: Source, name: str) -> None:
        self._counts = counts
        self._other = other
        self._name = name

    @property
    def arn(self) -> str:
        return self._counts.arn

    def shards(self) -> Sequence[Shard]:
        def named(shard: str) -> str:
            return shard and f"{shard}@{self._name}"

        others = [Shard(named(shard.id), named(shard.parent), shard.is_open) for shard in self._other.shards()]
        return [*self._counts.shards(), *others]

    def read(self, shard: str, after: str | None, limit: int) -> Page:
        source = self._other if "@" in shard else self._counts
        return source.read(shard_id(shard), after, limit)


def _images(record: Record) -> list[str]:
    return [name for name in ("NewImage", "OldImage") if name in record["dynamodb"]]
