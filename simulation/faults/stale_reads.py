"""Reads that are eventually consistent, of a table that is always up to date."""

from __future__ import annotations

import random
from typing import Any


class StaleReads:
    """The table, of which a query that asks for no more than eventual consistency may miss the newest items.

    Each page comes from some replica: what one page misses, the next may have passed.
    """

    def __init__(self, client: Any, rng: random.Random) -> None:
        self._client = client
        self._random = rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def query(self, **request: Any) -> Any:
        answer = self._client.query(**request)
        if request.get("ConsistentRead") or not answer["Items"] or self._random.random() < 0.5:
            return answer
        seen = answer["Items"][: self._random.randint(0, len(answer["Items"]) - 1)]
        if self._random.random() < 0.5:
            answer.pop("LastEvaluatedKey", None)
        return {**answer, "Items": seen, "Count": len(seen)}
