"""How far a mapping has got in one shard: what it has read, what is tried again, what is abandoned."""

from __future__ import annotations

import json
from collections.abc import Callable

from simulation.delivery.mapping_settings import Settings
from simulation.delivery.tumbling_window import TumblingWindow
from simulation.dynamodb.stream_source import Page, Record, Source


class ShardPoller:
    """The batches of one shard, in order.

    `on_failure` takes records that are not tried any more; `checkpoint` is the last sequence number that needs no
    delivery any more.
    """

    def __init__(
        self,
        shard: str,
        source: Source,
        clock: Callable[[], float],
        settings: Settings,
        on_failure: Callable[[list[Record]], None],
    ) -> None:
        self._shard = shard
        self._source = source
        self._clock = clock
        self._settings = settings
        self._on_failure = on_failure
        # Batches to try again before anything is read, the next one last.
        self._pending: list[list[Record]] = []
        self._retries = 0
        self.window = TumblingWindow(settings.window_seconds)
        self.checkpoint: str | None = None

    def page(self, batch_size: int) -> Page:
        """The batch to deliver next, of records that are not too old; `batch_size` limits one not tried yet."""
        while True:
            if not self._pending:
                page = self._source.read(self._shard, self.checkpoint, batch_size)
                batch = self._fitting(self.window.same(page.records))
                if not batch:
                    return page
                self._pending.append(batch)
            oldest = self._clock() - self._settings.max_age_seconds
            batch = self._pending[-1]
            fresh = [record for record in batch if record["dynamodb"]["ApproximateCreationDateTime"] > oldest]
            if len(fresh) == len(batch):
                return Page(batch, ended=False)
            expired = batch[: len(batch) - len(fresh)]
            self._pending[-1] = fresh
            self._abandon(expired)
            if not fresh:
                self._pending.pop()

    def advance(self, records: list[Record]) -> None:
        """Move past the first records of the batch delivered last: they were processed."""
        if not records:
            return
        self.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        rest = self._pending.pop()[len(records) :]
        if rest:
            self._pending.append(rest)

    def succeed(self) -> None:
        """The batch is through: what comes next has not been tried yet."""
        self._retries = 0

    def retry(self, cut: Callable[[int], int]) -> None:
        """Try the batch delivered last again, bisected where `cut` says for its length."""
        batch = self._pending[-1]
        if self._settings.bisect and len(batch) > 1:
            middle = min(max(cut(len(batch)), 1), len(batch) - 1)
            self._pending[-1:] = [batch[middle:], batch[:middle]]
            return
        self._retries += 1
        if self._settings.max_retries is not None and self._retries > self._settings.max_retries:
            self._abandon(self._pending.pop())

    def rewind(self, checkpoint: str | None) -> None:
        """Go back to after a sequence number, or (None) to the beginning; batches are cut anew from there."""
        self.checkpoint, self._retries = checkpoint, 0
        self._pending.clear()
        self.window.close()

    def _fitting(self, records: list[Record]) -> list[Record]:
        if self._settings.max_bytes is None:
            return records
        room = self._settings.max_bytes
        for index, record in enumerate(records):
            room -= len(json.dumps(record, default=str))
            if room < 0:
                return records[: max(index, 1)]
        return records

    def _abandon(self, records: list[Record]) -> None:
        self._on_failure(records)
        self.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        self._retries = 0
