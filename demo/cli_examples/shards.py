"""A stream of several shards over what happens in one table, behind the calls that read streams."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

OPEN: Final = [
    f"shardId-0000000{1_795_157_600_000 + start}-{name}"
    for start, name in ((0, "3f6a1c9e"), (118_204, "b27d40f5"), (240_777, "70e9c2a8"))
]
CLOSED: Final = "shardId-00000001795050000000-f00dbabe"


@dataclass
class Shards:
    """Records by shard, as Lambda would deliver them."""

    until: float
    """The closed shard takes what is created before."""
    records: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in (CLOSED, *OPEN)})

    def add(self, change: Mapping[str, Any], created: float) -> None:
        """Append a change of the table to the shard of its partition key."""
        pk = change["dynamodb"]["Keys"]["pk"]["S"]
        name = CLOSED if created < self.until else OPEN[(zlib.adler32(pk.encode()) >> 4) % len(OPEN)]
        known = self.records[name]
        number = 10**20 * (1 + [CLOSED, *OPEN].index(name)) + len(known)
        dynamodb = {**change["dynamodb"], "SequenceNumber": str(number), "ApproximateCreationDateTime": created}
        known.append({**change, "dynamodb": dynamodb})

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        return {"StreamDescription": {"Shards": [self._described(name) for name in self.records]}}

    def get_shard_iterator(self, *, ShardId: str, SequenceNumber: str = "0", **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"ShardIterator": f"{ShardId} {SequenceNumber}"}

    def get_records(self, *, ShardIterator: str, Limit: int = 1000) -> dict[str, Any]:  # noqa: N803
        name, _, after = ShardIterator.partition(" ")
        # Records of the closed shard are older than a day: the stream has forgotten them.
        known = () if name == CLOSED else self.records[name]
        later = [one for one in known if int(one["dynamodb"]["SequenceNumber"]) > int(after)]
        return {"Records": [_as_read(one) for one in later[:Limit]]}

    def _described(self, name: str) -> dict[str, Any]:
        first = str(10**20 * (1 + [CLOSED, *OPEN].index(name)))
        end = {"EndingSequenceNumber": str(int(first) + len(self.records[name]))} if name == CLOSED else {}
        return {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": first, **end}}


def _as_read(record: dict[str, Any]) -> dict[str, Any]:
    """As boto3 has it, where Lambda has seconds and base64."""
    dynamodb = dict(record["dynamodb"])
    dynamodb["ApproximateCreationDateTime"] = datetime.fromtimestamp(dynamodb["ApproximateCreationDateTime"], UTC)
    for image in {"Keys", "OldImage", "NewImage"} & dynamodb.keys():
        dynamodb[image] = {name: _with_bytes(value) for name, value in dynamodb[image].items()}
    return {**record, "dynamodb": dynamodb}


def _with_bytes(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"B": base64.b64decode(value["B"])} if isinstance(value.get("B"), str) else value
