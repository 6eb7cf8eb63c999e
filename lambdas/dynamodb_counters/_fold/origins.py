"""Which table a stream record is of, where items are counted of a source table next to the table of the counts.

The aggregator is fed by both streams. Shards of the source's are known by another name than Lambda's: two streams may
use one name for a shard, and a checkpoint or watermark of one says nothing of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dynamodb_counters._declarations import Declaration, Items
from dynamodb_counters._items.table_schema import TTL
from dynamodb_counters.errors import StreamUnknownError


class Origins:
    """Separates records of the table `own` from those of the table with the ARN `source`; None if there is no other."""

    def __init__(self, own: str, source: str | None) -> None:
        self._own = own.rpartition("/")[2]
        self._source = source
        self.are_two = source is not None
        """Whether there is a source table."""

    def is_foreign(self, record: Mapping[str, Any]) -> bool | None:
        """Whether a record, or Lambda's event, is of the source table; None if that is the table of the counts."""
        if self._source is None:
            return None
        arn = str(record.get("eventSourceARN", ""))
        table = table_of(arn)
        # First by the whole ARN: a table of another account or Region may have the same name.
        if table == self._source:
            return True
        if table.rpartition("/")[2] == self._own:
            return False
        raise StreamUnknownError(
            f"invalid eventSourceARN={arn!r:.200}: expected a stream of the table {self._own!r} or of {self._source!r}"
        )

    def shard(self, name: str, event: Mapping[str, Any]) -> str:
        """Name in the table of a shard that Lambda calls `name`: with the table it is of, if that is another."""
        # The end of a tumbling window has no records.
        if self._source is None or not self.is_foreign((event.get("Records") or [event])[0]):
            return name
        return f"{name}@{self._source.rpartition('/')[2]}"

    def ttl_of(self, declarations: Iterable[Declaration]) -> Callable[[Mapping[str, Any]], str | None]:
        """Attribute by which a record's item expires."""
        sources = [declared.source for declared in declarations]
        [foreign, *_] = [source._table_keys.ttl for source in sources if isinstance(source, Items)] or [None]
        return lambda record: foreign if self.is_foreign(record) else TTL


def table_of(stream: str) -> str:
    """The ARN of the table that a stream, given by its ARN, is of."""
    return stream.partition("/stream/")[0]


ONE_TABLE: Final = Origins("", None)
