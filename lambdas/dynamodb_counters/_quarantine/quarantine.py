"""Quarantine as the aggregator uses it: keep what cannot be counted, once, however often it is delivered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dynamodb_counters._fold.deltas import Unfoldable
from dynamodb_counters._fold.records import MAX_TTL_AGE, NEW, OLD, Record
from dynamodb_counters._items.bookkeeping import put_as_seen
from dynamodb_counters._items.table_schema import TTL
from dynamodb_counters._quarantine.quarantine_items import RECORD, STATE, WAITING, pack, quarantine_item, quarantine_key
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY
from dynamodb_counters.errors import CommitError

RETENTION: Final = 90 * DAY
"""How long what an operator's command has put there is kept."""

_LEAST: Final = 2 * DAY
"""How long an entry is kept at least, whatever its image says."""


class Quarantine:
    """The quarantine of one table: entries stay for `retention_seconds`, or as long as the item's own `ttl_of` says."""

    def __init__(
        self, table: Table, retention_seconds: float, ttl_of: Callable[[Record], str | None] = lambda _: TTL
    ) -> None:
        self._table, self._retention_seconds, self._ttl_of = table, retention_seconds, ttl_of

    def keep(self, shard: str, images: Sequence[Unfoldable], state: str = WAITING) -> int:
        """Keep images that are not kept yet and return how many; `CommitError` means: deliver the batch again."""
        answers = [there for _, there in self._table.side_by_side(lambda one: self.keep_one(shard, one, state), images)]
        if failures := [there for there in answers if isinstance(there, Exception)]:
            raise CommitError(failures)
        return answers.count(None)

    def keep_one(self, shard: str, image: Unfoldable, state: str = WAITING) -> dict[str, Any] | None:
        """Keep an image; return the entry that is there already: every delivery folds alike, and so names it alike."""
        expires_at = {"N": str(self._expires_at(image.record))}
        content = {RECORD: pack(image.record), STATE: {"S": state}, TTL: expires_at}
        return self.put(self.item(shard, image.entry_id, image.reason, content, image.names))

    def _expires_at(self, record: Record) -> int:
        """No later than what the image itself says, but so that there is time to look at it."""
        now, ttl = self._table.clock(), self._ttl_of(record) or ""
        images = [record["dynamodb"].get(name) or {} for name in (NEW, OLD)]
        expiries = [float(image[ttl]["N"]) for image in images if "N" in image.get(ttl, {})]
        latest = min([now + self._retention_seconds, *(at for at in expiries if at > now - MAX_TTL_AGE)])
        return int(max(latest, min(now + _LEAST, now + self._retention_seconds)))

    def item(
        self, shard: str, entry_id: str, reason: str, content: dict[str, Any], names: Sequence[str] = ()
    ) -> dict[str, Any]:
        key = quarantine_key(shard, entry_id)
        return quarantine_item(key, reason, content, names, int(self._table.clock() + self._retention_seconds))

    def put(self, item: dict[str, Any]) -> dict[str, Any] | None:
        """Put an entry that is not there; return the one that is."""
        try:
            put = put_as_seen(self._table.name, item, {}, ())
            self._table.client.put_item(**put, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except self._table.client.exceptions.ConditionalCheckFailedException as error:
            response: Any = error.response
            return dict(response["Item"])
        return None
