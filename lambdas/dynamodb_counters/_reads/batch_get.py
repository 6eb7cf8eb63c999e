"""Reading items by key: 100 per BatchGetItem call, many calls at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._declarations.groups import Key, identity
from dynamodb_counters._table import Table

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_PER_CALL: Final = 100


def get_items(table: Table, keys: Iterable[Key], *, consistent: bool) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The items that exist, by key; TimeoutError if DynamoDB leaves some unread after several tries."""
    different = list({identity(key): key for key in keys}.values())
    chunks = [different[start : start + _KEYS_PER_CALL] for start in range(0, len(different), _KEYS_PER_CALL)]
    return {
        identity(item): item
        for items in table.pool.map(lambda chunk: _get_chunk(table, chunk, consistent=consistent), chunks)
        for item in items
    }


def _get_chunk(table: Table, keys: list[Any], *, consistent: bool) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    for _ in table.tries():
        answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": consistent}})
        items += answer["Responses"].get(table.name, [])
        keys = answer.get("UnprocessedKeys", {}).get(table.name, {"Keys": []})["Keys"]
        if not keys:
            return items
    raise TimeoutError(f"{len(keys)} keys stayed unread after {TRIES} tries; DynamoDB throttles the reads")
