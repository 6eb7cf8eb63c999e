"""An on-failure bucket in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_LAMBDA = "aws/lambda/0e5d4c3b/shardId-1/2026/09/21"


@dataclass
class Bucket:
    """A client of S3 that lists objects, one per page: by default two of Lambda's and one of another writer."""

    now: float
    hours_old: dict[str, float] = field(
        default_factory=lambda: {f"{_LAMBDA}/a": 1.0, f"{_LAMBDA}/b": 2.0, "notes.txt": 5.0}
    )

    def get_paginator(self, operation: str) -> Bucket:
        """Only ``list_objects_v2`` has one."""
        assert operation == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        assert Bucket
        yield {}
        for key, hours in self.hours_old.items():
            if key.startswith(Prefix):
                yield {"Contents": [{"Key": key, "LastModified": datetime.fromtimestamp(self.now - hours * 3600, UTC)}]}
