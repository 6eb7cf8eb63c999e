"""Units of the demo: every change in a table's stream, priced by DynamoDB's rules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from demo.cost import units_written


class _Streams:
    """A stream of one shard, which is closed."""

    def __init__(self, *changes: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> None:
        self._changes = changes

    def describe_stream(self, **_: Any) -> dict[str, Any]:
        return {"StreamDescription": {"Shards": [{"ShardId": "shard"}]}}

    def get_shard_iterator(self, **_: Any) -> dict[str, Any]:
        return {"ShardIterator": "first"}

    def get_records(self, **_: Any) -> dict[str, Any]:
        created = datetime(2026, 11, 20, tzinfo=UTC)
        images = [{"OldImage": old, "NewImage": new} for old, new in self._changes]
        return {"Records": [{"dynamodb": {**each, "ApproximateCreationDateTime": created}} for each in images]}


def _item(kind: str, sk: str = "S", **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "P"}, "sk": {"S": sk}, "_type": {"S": kind}, **more}


def test_a_change_costs_its_larger_image() -> None:
    large = _item("views", text={"S": "x" * 1500})
    streams = _Streams((None, _item("views")), (_item("views"), large), (large, _item("views")), (large, None))
    assert units_written(streams, "arn") == {"views": 7}


def test_a_ranked_item_costs_two_units_in_the_index() -> None:
    board = _item("views", _board={"S": "URLS"})
    assert units_written(_Streams((None, board), (board, board)), "arn") == {"views": 2, "index of views": 4}


def test_a_split_of_a_page_costs_double() -> None:
    page, half = (_item("views", "PAGE#views#0", _level={"N": level}) for level in ("1", "2"))
    assert units_written(_Streams((page, page), (page, half), (None, half)), "arn") == {"views": 5}
