"""Items that other code writes, with plain Python values, as boto3's table resource has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer


class OwnItems:
    """The table of a user's own items; ``counters.table`` is one.

    The methods of boto3's ``Table`` that change single items, with expressions as text. Their changes are counted
    when they return.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.name = client, name

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Call PutItem; ``Item`` and expression values are plain values."""
        return self._call("put_item", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Call UpdateItem; ``Key`` and expression values are plain values."""
        return self._call("update_item", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """Call DeleteItem; ``Key`` and expression values are plain values."""
        return self._call("delete_item", request)

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Call GetItem; ``Key`` and the returned ``Item`` are plain values."""
        return self._call("get_item", request)

    def _call(self, method: str, request: Mapping[str, Any]) -> dict[str, Any]:
        typed, plain = TypeSerializer().serialize, TypeDeserializer().deserialize
        asked = {name: request[name] for name in ("Item", "Key", "ExpressionAttributeValues") if name in request}
        sent = {name: {each: typed(value) for each, value in values.items()} for name, values in asked.items()}
        answer: dict[str, Any] = getattr(self._client, method)(TableName=self.name, **{**request, **sent})
        items = {name: answer[name] for name in ("Item", "Attributes") if name in answer}
        return answer | {name: {each: plain(value) for each, value in one.items()} for name, one in items.items()}
